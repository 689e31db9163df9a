"""Hashes and equality of rows against plain Python."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.columns import arrays, twins, types

from evert.trace import keys, mixing
from evert.trace.keys import hash_rows, same_rows


@st.composite
def columns(draw):
    count = draw(st.integers(0, 8))
    return [draw(arrays(kind, count)) for kind in draw(st.lists(types, min_size=1, max_size=3))], count


def all_pairs(count):
    return np.repeat(np.arange(count), count), np.tile(np.arange(count), count)


@settings(max_examples=150, deadline=None)
@given(columns(), st.booleans())
def test_rows_are_the_same_where_python_finds_them_equal(drawn, exact):
    found, count = drawn
    left, right = all_pairs(count)
    rows = twins(found, exact=exact)
    expected = [rows[a] == rows[b] for a, b in zip(left, right, strict=True)]
    assert same_rows(found, left, found, right, exact=exact).tolist() == expected


@settings(max_examples=150, deadline=None)
@given(columns())
def test_hashes_are_equal_where_rows_are_and_differ_elsewhere(drawn):
    found, count = drawn
    left, right = all_pairs(count)
    hashes = hash_rows(found, count)
    assert hashes.dtype == np.uint64
    assert (hashes[left] == hashes[right]).tolist() == same_rows(found, left, found, right).tolist()
    assert (hash_rows(found, count, 3) == hashes & np.uint64(7)).all()


@settings(max_examples=100, deadline=None)
@given(columns(), st.data())
def test_a_hash_does_not_depend_on_the_rows_around_it(drawn, data):
    found, count = drawn
    start = data.draw(st.integers(0, count))
    part = [column.slice(start) for column in found]
    chunked = [pa.chunked_array([column.slice(0, start), column.slice(start)]) for column in found]
    assert hash_rows(part, count - start).tolist() == hash_rows(found, count)[start:].tolist()
    assert hash_rows(chunked, count).tolist() == hash_rows(found, count).tolist()


PINNED = [
    0xBDD732262FEB6E95,
    0x7FD38A26C7193621,
    0xD6DAB18E1392608A,
    0xA7B77319D39F7883,
    0xD4D64F236A290E5F,
    0x952F1E0DB6CDE06C,
    0xA09D2A25DD537C44,
]
PINNED_ROW = 0x5FBCFB5A10ED5059


def test_hashes_are_the_same_for_ever_as_long_as_the_format_is():
    row = [
        pa.array([42], pa.int32()),
        pa.array(["evert, a database inside out"]),
        pa.array([1.5]),
        pa.array([None], pa.int8()),
        pa.array([Decimal("1.50")]),
        pa.array([[1, None]]),
        pa.array([[("k", {"a": True})]], pa.map_(pa.string(), pa.struct([("a", pa.bool_())]))),
    ]
    assert [int(hash_rows([column], 1)[0]) for column in row] == PINNED
    assert int(hash_rows(row, 1)[0]) == PINNED_ROW


def test_no_columns_hash_to_zero_and_are_all_the_same():
    assert hash_rows([], 3).tolist() == [0, 0, 0]
    assert same_rows([], np.arange(2), [], np.arange(2)).tolist() == [True, True]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([-5, None], pa.int8()), pa.array([-5, None], pa.int64())),
        (pa.array([1.5, math.nan], pa.float32()), pa.array([1.5, math.nan], pa.float64())),
        (pa.array([Decimal("1.50"), Decimal("-3.00")]), pa.array([Decimal("1.500"), Decimal("-3.000")])),
        (
            pa.array([Decimal(10**30)], pa.decimal128(38, 0)),
            pa.array([Decimal(10**30)], pa.decimal128(38, 4)),
        ),
        (
            pa.array([Decimal(-(10**20)), Decimal(1)], pa.decimal128(38, 10)),
            pa.array([Decimal(-(10**20)), Decimal(1)], pa.decimal256(70, 30)),
        ),
        (pa.array(["a", None, ""]), pa.array(["a", None, ""], pa.large_string())),
        (pa.nulls(2), pa.array([None, None], pa.string())),
        (pa.array(["a", None]), pa.array(["a", None]).dictionary_encode()),
    ],
)
def test_the_width_of_a_type_does_not_count(one, other):
    at = np.arange(len(one))
    assert hash_rows([one], len(one)).tolist() == hash_rows([other], len(one)).tolist()
    assert same_rows([one], at, [other], at).all()


def test_a_whole_decimal_hashes_like_the_integer():
    decimals = pa.array([Decimal("7.00"), Decimal("-7.00")])
    assert hash_rows([decimals], 2).tolist() == hash_rows([pa.array([7, -7])], 2).tolist()


def test_what_lies_under_a_null_does_not_count():
    hidden = pa.array([[1, 2], [3], [4]], pa.list_(pa.int64()))
    lists = pa.ListArray.from_arrays(hidden.offsets, hidden.values, mask=pa.array([True, False, True]))
    structs = pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["a"], mask=pa.array([True, False, True]))
    for column in (lists, structs):
        hashes = hash_rows([column], 3)
        assert hashes[0] == hashes[2] != hashes[1]
        assert same_rows([column], np.array([0, 0]), [column], np.array([2, 1])).tolist() == [True, False]


def test_a_null_struct_is_not_a_struct_of_nulls():
    column = pa.array([None, {"a": None}], pa.struct([("a", pa.int64())]))
    assert len(set(hash_rows([column], 2).tolist())) == 2
    assert not same_rows([column], np.array([0]), [column], np.array([1])).any()


def test_every_nan_is_one_whatever_its_bits():
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64)
    short = np.array([0x7FC00000, 0xFFC00001, 0x7F800001], np.uint32)
    for column in (pa.array(bits.view(np.float64)), pa.array(short.view(np.float32))):
        assert len(set(hash_rows([column], 3).tolist())) == 1
        left, right = all_pairs(3)
        assert same_rows([column], left, [column], right, exact=True).all()


def test_long_texts_and_many_texts_are_hashed_in_blocks(monkeypatch):
    texts = ["x" * (n * 37 % 200) + str(n) for n in range(500)] + ["y" * 5000, "y" * 5000 + "z", "y" * 4999]
    column = pa.array(texts)
    whole = hash_rows([column], len(texts))
    assert len(set(whole.tolist())) == len(texts)
    monkeypatch.setattr(mixing, "_BLOCK_BYTES", 100)
    monkeypatch.setattr(mixing, "_BLOCK_ROWS", 7)
    assert hash_rows([column], len(texts)).tolist() == whole.tolist()


def test_texts_are_compared_in_blocks(monkeypatch):
    monkeypatch.setattr(keys, "TEXT_BYTES", 10)
    column = pa.array(["a", "b", "x" * 30, "x" * 29 + "y", "", None])
    left, right = all_pairs(6)
    assert same_rows([column], left, [column], right).tolist() == (left == right).tolist()


@pytest.mark.parametrize("name", ["counting", "strided", "texts", "pairs", "floats"])
def test_all_bits_of_a_hash_are_used_evenly(name):
    count = 1 << 16
    number = np.arange(count)
    column = {
        "counting": [pa.array(number)],
        "strided": [pa.array(number << 40)],
        "texts": [pa.array([f"user-{n}" for n in number])],
        "pairs": [pa.array(number % 256), pa.array(number // 256)],
        "floats": [pa.array(number / 4)],
    }[name]
    hashes = hash_rows(column, count)
    assert len(np.unique(hashes)) == count
    for bit in range(64):
        share = int(((hashes >> np.uint64(bit)) & np.uint64(1)).sum()) / count
        assert abs(share - 0.5) < 0.012, bit
    for shards in (2, 3, 7, 16):
        sizes = np.bincount((hashes % np.uint64(shards)).astype(int), minlength=shards)
        assert abs(sizes * shards / count - 1).max() < 0.1
