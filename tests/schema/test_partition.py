"""Which partition a key belongs to; the pinned numbers are on disk for ever."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal as PyDecimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evert.errors import BadSchema
from evert.schema.partition import assign, check_key, hashes
from evert.schema.schema import Schema


def hashed(values: list[object], kind: pa.DataType) -> list[int]:
    found: list[int] = hashes(pa.table({"k": pa.array(values, kind)}), ("k",)).tolist()
    return found


PINNED = [
    (
        [0, 1, -1, 2**63 - 1, None],
        pa.int64(),
        [
            16294208416658607535,
            10451216379200822465,
            16490336266968443936,
            3055647633038352039,
            12085254679833835651,
        ],
    ),
    (
        ["", "a", "é", "session-42", None],
        pa.string(),
        [
            16294208416658607535,
            7709698455328021014,
            17514808759697704023,
            12752016096788412459,
            12085254679833835651,
        ],
    ),
    ([b"", b"\x00\xff"], pa.binary(), [16294208416658607535, 16180024576625634971]),
    (
        [0.0, 1.5, float("inf"), float("nan")],
        pa.float64(),
        [16294208416658607535, 15481881892811333770, 2638638862653029785, 14351126860892846918],
    ),
    (
        [PyDecimal("1.50"), PyDecimal("-2.00"), PyDecimal("123456789012345678901.25")],
        pa.decimal128(30, 2),
        [9863529221410715020, 17519071339639777313, 13659463964150265126],
    ),
    ([dt.date(2024, 2, 29)], pa.date32(), [15820024857312553229]),
    ([dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)], pa.timestamp("us", tz="UTC"), [13705808309184621642]),
    ([True, False], pa.bool_(), [10451216379200822465, 16294208416658607535]),
]


@pytest.mark.parametrize(("values", "kind", "numbers"), PINNED)
def test_hashes_never_change(values: list[object], kind: pa.DataType, numbers: list[int]) -> None:
    assert hashed(values, kind) == numbers


def test_the_partitions_of_keys_never_change() -> None:
    table = pa.table({"a": ["x", "y", None, "x"], "b": [1, 2, 3, 1]})
    assert assign(table, ("a", "b"), 16).tolist() == [2, 10, 12, 2]
    assert assign(table, ("a", "b"), 16).dtype == np.int32


@given(st.lists(st.integers(-128, 127) | st.none()))
def test_integers_hash_alike_in_every_width(values: list[int | None]) -> None:
    kinds = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.decimal128(5, 2))
    assert len({tuple(hashed(list(values), kind)) for kind in kinds}) == 1


@given(st.lists(st.integers(-(10**20), 10**20)), st.integers(0, 3), st.integers(0, 8))
def test_decimals_hash_by_value_whatever_their_scale(numbers: list[int], scale: int, more: int) -> None:
    values = [PyDecimal(number).scaleb(-scale) for number in numbers]
    assert hashed(list(values), pa.decimal128(38, scale)) == hashed(
        list(values), pa.decimal128(38, scale + more)
    )


def test_floats_have_one_zero_and_one_nan() -> None:
    other_nan = np.frombuffer(np.uint64(0xFFF8000000000123).tobytes(), "<f8")[0]
    zero, minus, nan, strange = hashed([0.0, -0.0, float("nan"), other_nan], pa.float64())
    assert (zero, nan) == (minus, strange)
    assert hashed([1.5, float("nan")], pa.float32()) == hashed([1.5, float("nan")], pa.float64())


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.none(), max_size=100), st.integers(0, 5)
)
def test_slices_and_chunks_do_not_matter(values: list[str | None], cut: int) -> None:
    whole = pa.table({"k": pa.array(values, pa.string())})
    parts = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    assert hashes(parts, ("k",)).tolist() == hashes(whole, ("k",)).tolist()
    assert hashes(whole.slice(cut), ("k",)).tolist() == hashes(whole, ("k",)).tolist()[cut:]
    alone = [number for value in values for number in hashed([value], pa.string())]
    assert alone == hashes(whole, ("k",)).tolist()


def test_keys_spread_evenly() -> None:
    for column in (pa.array(range(10_000)), pa.array([f"user-{n}" for n in range(10_000)])):
        counts = np.bincount(assign(pa.table({"k": column}), ("k",), 10), minlength=10)
        assert counts.min() > 850


def test_without_a_key_or_with_one_partition_all_rows_go_to_the_first() -> None:
    table = pa.table({"k": [1, 2, 3]})
    assert assign(table, (), 4).tolist() == [0, 0, 0]
    assert assign(table, ("k",), 1).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (("nokey",), "no column"),
        (("a", "a"), "twice"),
        (("b",), "ARRAY<INT>"),
        (("c",), "MAP"),
        (("d",), "STRUCT"),
        (("e",), "VOID"),
        (("f",), "collation"),
    ],
)
def test_columns_that_cannot_be_a_key_are_refused(key: tuple[str, ...], said: str) -> None:
    schema = Schema.parse(
        "a INT, b ARRAY<INT>, c MAP<INT, INT>, d STRUCT<x: INT>, e VOID, f STRING COLLATE UNICODE, g DOUBLE"
    )
    with pytest.raises(BadSchema, match=said):
        check_key(schema, key)
    check_key(schema, ("a", "g"))
