"""Sums in digits are exact, and rounded once."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evert.delta import wide
from evert.trace.groups import Groups

HARD = st.builds(
    math.ldexp,
    st.sampled_from([1, -1, 3, 2**53 - 1, 1 - 2**53, 2**52 + 1]),
    st.sampled_from([0, 1, -1, 11, 31, 32, 33, 53, 54, 64, 96, -53, -54, -1074, -1070, -1022, 970, 971 - 1]),
)
FINITE = HARD | st.floats(allow_nan=False, allow_infinity=False)
WEIGHTS = st.sampled_from([1, 1, -1, -1, 2, -3, 2**31, 2**40, -(2**62), 2**63 - 1])


def double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def together(rows: int) -> Groups:
    return Groups.in_order(np.array([0]), rows)


def one(sums: pa.Array, kind: pa.DataType) -> Any:
    (found,) = wide.result(sums, kind, np.array([False])).to_pylist()
    return found


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.tuples(FINITE, WEIGHTS), min_size=1, max_size=6), st.integers(0, 6))
def test_a_sum_of_doubles_is_the_nearest_to_the_exact_one(terms: list[tuple[float, int]], cut: int) -> None:
    parts = [part for part in (terms[:cut], terms[cut:]) if part]
    sums = [
        wide.total(
            pa.array([value for value, _ in part]), np.array([w for _, w in part]), together(len(part))
        )
        for part in parts
    ]
    exact = sum((Fraction(value) * weight for value, weight in terms), Fraction(0))
    merged = wide.merged(pa.concat_arrays(sums), together(len(sums)))
    assert repr(one(merged, pa.float64())) == repr(double(exact))
    assert wide.empty(merged).tolist() == [exact == 0]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), WEIGHTS), min_size=1, max_size=6))
def test_a_sum_of_integers_has_38_digits(terms: list[tuple[int, int]]) -> None:
    sums = wide.total(
        pa.array([v for v, _ in terms], pa.int64()), np.array([w for _, w in terms]), together(len(terms))
    )
    exact = sum(value * weight for value, weight in terms)
    if abs(exact) < 10**38:
        assert int(one(sums, pa.decimal128(38, 0))) == exact
    else:
        with pytest.raises(wide.DataError, match="more than 38 digits"):
            one(sums, pa.decimal128(38, 0))


@settings(max_examples=500, deadline=None)
@given(st.integers(-(2**190), 2**190) | st.sampled_from([10**38, 10**38 - 1, -(10**38), 1 - 10**38, 2**127]))
def test_a_number_beyond_38_digits_is_recognised(number: int) -> None:
    digits, left, position = [], number, 0
    while left:
        digit = ((left + 2**31) & (2**32 - 1)) - 2**31
        if digit:
            digits.append(position * 2**32 + digit)
        left, position = (left - digit) >> 32, position + 1
    sums = pa.array([digits], wide.DIGITS)
    if abs(number) < 10**38:
        assert int(one(sums, pa.decimal128(38, 0))) == number
    else:
        with pytest.raises(wide.DataError):
            one(sums, pa.decimal128(38, 0))


@pytest.mark.parametrize("groups", [1, 7, 3000, 100_000])
def test_many_rows_are_summed(groups: int) -> None:
    random = np.random.default_rng(groups)
    rows = 100_000
    numbers = random.integers(-(2**40), 2**40, rows)
    starts = np.sort(random.choice(np.arange(1, rows), groups - 1, replace=False))
    starts = np.append(0, starts)
    weights = random.choice([-1, 1, 2], rows)
    expected = np.add.reduceat(numbers * weights, starts)
    for values in (pa.array(numbers), pa.array(numbers / 4096.0)):
        sums = wide.total(values, weights, Groups.in_order(starts, rows))
        kind = wide.sum_of(values.type)
        found = wide.result(sums, kind, np.zeros(groups, bool)).cast(pa.float64()).to_numpy()
        scale = 1.0 if values.type == pa.int64() else 4096.0
        assert (found * scale == expected).all()
        assert wide.merged(sums, Groups.in_order(np.arange(groups), groups)).equals(sums)


def test_a_small_sum_has_one_digit_whatever_its_sign() -> None:
    for values in (pa.array([5, -7]), pa.array([0.0, -2.0])):
        sums = wide.total(values, np.array([1, 1]), together(2))
        assert sums.to_pylist() == [[-2]]
