"""Rows of every kind brought to the columns of a topic, or refused by row, column and reason."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import subprocess
import sys
from decimal import Decimal as PyDecimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.random_schemas import schemas_with_rows

from evert.errors import BadRow
from evert.schema.rows import digest, keys_table, to_table
from evert.schema.schema import Schema, upgrade

Case = tuple[Schema, list[dict[str, Any]]]


def taken(ddl: str, *values: Any) -> list[Any]:
    schema = Schema.parse("c " + ddl)
    table = to_table(schema, [{"c": value} for value in values], topic="t")
    assert table.schema == schema.arrow
    return [row["c"] for row in table.to_pylist()]


def refused(ddl: str, value: Any, *, topic_rows: Any = None) -> str:
    schema = Schema.parse("c " + ddl)
    rows = [{"c": None}, {"c": value}] if topic_rows is None else topic_rows
    with pytest.raises(BadRow) as caught:
        to_table(schema, rows, topic="t")
    assert caught.value.details["row"] == 1
    assert str(caught.value.details["column"]).startswith("c")
    assert caught.value.details["reason"] in caught.value.message
    return str(caught.value.details["reason"])


@given(schemas_with_rows())
def test_rows_come_back_as_they_were_given(case: Case) -> None:
    schema, rows = case
    table = to_table(schema, rows, topic="t")
    assert table.schema == schema.arrow
    assert table.to_pylist() == rows
    table.validate(full=True)


@given(schemas_with_rows())
def test_a_table_that_fits_is_taken_as_it_is(case: Case) -> None:
    table = to_table(case[0], case[1], topic="t")
    assert to_table(case[0], table, topic="t").equals(table)
    assert to_table(case[0], table.to_reader(), topic="t").equals(table)
    assert to_table(case[0], table.slice(1), topic="t").equals(table.slice(1))


def test_a_mapping_is_not_changed_by_reading_it() -> None:
    row: dict[str, Any] = collections.defaultdict(int, a=1)
    assert to_table(Schema.parse("a INT, b INT"), [row], topic="t").to_pylist() == [{"a": 1, "b": None}]
    assert row == {"a": 1}


@dataclasses.dataclass
class Item:
    sku: str
    n: int


@dataclasses.dataclass
class Basket:
    id: int
    items: list[Item]


def test_dataclasses_dicts_and_iterators_are_taken_one_or_many() -> None:
    schema = Schema.parse("id BIGINT, items ARRAY<STRUCT<sku: STRING, n: INT>>")
    want = [{"id": 1, "items": [{"sku": "a", "n": 2}]}]
    basket = Basket(1, [Item("a", 2)])
    for given_rows in (basket, [basket], iter([basket]), want[0], want, (row for row in want)):
        assert to_table(schema, given_rows, topic="t").to_pylist() == want
    assert to_table(schema, [], topic="t").schema == schema.arrow


def test_missing_columns_are_null_and_unknown_ones_are_refused() -> None:
    schema = Schema.parse("id BIGINT, note STRING")
    assert to_table(schema, [{"id": 1}, {"note": "x"}], topic="t").to_pylist() == [
        {"id": 1, "note": None},
        {"id": None, "note": "x"},
    ]
    for rows in ([{"id": 1}, {"nota": 2}], pa.table({"id": [1], "nota": [2]}), pd.DataFrame({"nota": [1]})):
        with pytest.raises(BadRow) as caught:
            to_table(schema, rows, topic="t")
        assert caught.value.details["column"] == "nota"
        assert "did you mean 'note'" in str(caught.value.hint)


@pytest.mark.parametrize("rows", [3, "text", b"x", None, [3], [None], [("a", 1)]])
def test_what_is_not_a_row_is_refused(rows: Any) -> None:
    with pytest.raises(BadRow):
        to_table(Schema.parse("a INT"), rows, topic="t")


class Colour(enum.StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("ddl", "value", "want"),
    [
        ("BIGINT", np.int32(5), 5),
        ("INT", np.uint8(5), 5),
        ("BOOLEAN", np.bool_(True), True),
        ("DOUBLE", 2**53, float(2**53)),
        ("DOUBLE", np.float32(1.5), 1.5),
        ("DOUBLE", float("inf"), float("inf")),
        ("FLOAT", 3, 3.0),
        ("DECIMAL(5,2)", 7, PyDecimal("7.00")),
        ("DECIMAL(5,2)", " 7.5 ", PyDecimal("7.50")),
        ("DECIMAL(5,2)", PyDecimal("1.200"), PyDecimal("1.20")),
        ("DECIMAL(5,2)", PyDecimal("1E+2"), PyDecimal("100.00")),
        ("DECIMAL(5,2)", PyDecimal("0E+50"), PyDecimal("0.00")),
        ("DECIMAL(38,0)", 10**38 - 1, PyDecimal(10**38 - 1)),
        ("STRING", Colour.RED, "red"),
        ("CHAR(4)", "é", "é   "),
        ("BINARY", bytearray(b"x"), b"x"),
        ("BINARY", memoryview(b"x"), b"x"),
        ("DATE", "2024-02-29", dt.date(2024, 2, 29)),
        ("DATE", np.datetime64("2024-02-29"), dt.date(2024, 2, 29)),
        ("TIMESTAMP", dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("TIMESTAMP", "2024-01-01T02:00+02:00", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("TIMESTAMP", "2024-01-01T00:00:00Z", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        (
            "TIMESTAMP",
            pd.Timestamp("2024-01-01 00:00:00.000001"),
            dt.datetime(2024, 1, 1, 0, 0, 0, 1, dt.UTC),
        ),
        ("TIMESTAMP_NTZ", "2024-01-01 12:30:00.5", dt.datetime(2024, 1, 1, 12, 30, 0, 500_000)),
        ("TIMESTAMP_NTZ", np.datetime64("2024-01-01T00:00:01"), dt.datetime(2024, 1, 1, 0, 0, 1)),
        ("TIME(3)", "12:30:00.125", dt.time(12, 30, 0, 125_000)),
        ("INTERVAL DAY TO SECOND", "-P1DT2H30M4.5S", -dt.timedelta(1, 9004, 500_000)),
        ("INTERVAL DAY", dt.timedelta(3), dt.timedelta(3)),
        ("ARRAY<INT>", np.array([1, 2]), [1, 2]),
        ("ARRAY<INT>", (1, None), [1, None]),
        ("MAP<STRING, INT>", {"a": 1}, [("a", 1)]),
    ],
)
def test_values_that_can_be_held_exactly_are_taken(ddl: str, value: Any, want: Any) -> None:
    assert taken(ddl, None, value) == [None, want]


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("TINYINT", 128),
        ("BIGINT", 2**63),
        ("BIGINT", 2**70),
        ("INT", True),
        ("INT", 1.0),
        ("INT", "1"),
        ("INT", PyDecimal(1)),
        ("BOOLEAN", 1),
        ("BOOLEAN", "true"),
        ("DOUBLE", 2**53 + 1),
        ("DOUBLE", 10**400),
        ("DOUBLE", True),
        ("DOUBLE", "1.5"),
        ("DOUBLE", PyDecimal("1.5")),
        ("FLOAT", 1e300),
        ("FLOAT", 2**24 + 1),
        ("DECIMAL(5,2)", PyDecimal("1.234")),
        ("DECIMAL(5,2)", PyDecimal("1000")),
        ("DECIMAL(5,2)", PyDecimal("NaN")),
        ("DECIMAL(5,2)", 1.5),
        ("DECIMAL(5,2)", True),
        ("DECIMAL(5,2)", "x"),
        ("STRING", 5),
        ("STRING", b"x"),
        ("STRING", "\ud800"),
        ("VARCHAR(2)", "abc"),
        ("CHAR(2)", "abc"),
        ("BINARY", "x"),
        ("DATE", dt.datetime(2024, 1, 1)),
        ("DATE", "2024-13-01"),
        ("DATE", 5),
        ("TIMESTAMP", 5),
        ("TIMESTAMP", dt.date(2024, 1, 1)),
        ("TIMESTAMP", pd.NaT),
        ("TIMESTAMP", pd.Timestamp(1)),
        ("TIMESTAMP", "2024-01-01T00:00:00.0000001"),
        ("TIMESTAMP", dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))),
        ("TIMESTAMP", dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=2)))),
        ("TIMESTAMP_NTZ", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
        ("TIME", dt.time(1, tzinfo=dt.UTC)),
        ("TIME(3)", dt.time(1, 0, 0, 1)),
        ("INTERVAL DAY", dt.timedelta(hours=1)),
        ("INTERVAL DAY TO SECOND", dt.timedelta.max),
        ("INTERVAL DAY TO SECOND", "P1M"),
        ("INTERVAL DAY TO SECOND", "P"),
        ("VOID", 1),
        ("ARRAY<INT>", "12"),
        ("ARRAY<INT>", {"a": 1}),
        ("MAP<INT, INT>", [(1, 1), (1, 2)]),
        ("MAP<INT, INT>", [(None, 1)]),
        ("MAP<INT, INT>", 5),
        ("STRUCT<x: INT>", 5),
        ("STRUCT<x: INT>", {"y": 1}),
        ("STRUCT<x: INT NOT NULL>", {}),
    ],
)
def test_nothing_is_converted_with_loss(ddl: str, value: Any) -> None:
    assert refused(ddl, value)


@pytest.mark.parametrize(
    ("value", "column"),
    [
        ([{"sku": "a", "n": 1}, {"sku": "b", "n": 1.5}], "items[1].n"),
        ([{"sku": "a", "n": 1}, None, {"sku": None, "n": 1}], "items[2].sku"),
        ([{"sku": "a", "m": 1}], "items[0].m"),
        ([5], "items[0]"),
    ],
)
def test_the_column_of_an_error_is_a_path(value: Any, column: str) -> None:
    schema = Schema.parse("items ARRAY<STRUCT<sku: STRING NOT NULL, n: INT>>")
    rows = [{"items": []}, {"items": [{"sku": "z"}]}, {"items": None}, {"items": value}]
    with pytest.raises(BadRow) as caught:
        to_table(schema, rows, topic="shop")
    assert (caught.value.details["row"], caught.value.details["column"]) == (3, column)
    assert f"row 3 for shop, column {column}: " in caught.value.message


def test_the_value_of_a_map_is_named_by_its_key() -> None:
    with pytest.raises(BadRow) as caught:
        to_table(Schema.parse("m MAP<STRING, INT>"), [{"m": {"a": 1, "b": "x"}}], topic="t")
    assert caught.value.details["column"] == "m['b']"


def test_columns_of_the_key_and_not_null_columns_must_have_values() -> None:
    schema = Schema.parse("id BIGINT, n INT NOT NULL")
    for rows in ([{"id": 1, "n": 1}, {"id": None, "n": 1}], pa.table({"id": [1, None], "n": [1, 1]})):
        with pytest.raises(
            BadRow, match="row 1 for t, column id: is NULL, and the column is part of the key"
        ):
            to_table(schema, rows, topic="t", required=["id"])
    with pytest.raises(BadRow, match="row 0 for t, column n: is NULL, and the column is NOT NULL"):
        to_table(schema, {"id": 1}, topic="t")


@pytest.mark.parametrize(
    ("ddl", "array", "want"),
    [
        ("BIGINT", pa.array([5], pa.uint8()), 5),
        ("TINYINT", pa.array([5], pa.int64()), 5),
        ("DOUBLE", pa.array([1.5], pa.float32()), 1.5),
        ("DECIMAL(4,1)", pa.array([5], pa.int64()), PyDecimal("5.0")),
        ("DECIMAL(4,1)", pa.array([PyDecimal("5.100")], pa.decimal256(40, 3)), PyDecimal("5.1")),
        ("STRING", pa.array(["x"]).dictionary_encode(), "x"),
        ("STRING", pa.array(["x"], pa.large_string()), "x"),
        ("STRING", pa.array(["x"], pa.string_view()), "x"),
        ("CHAR(3)", pa.array(["x"]), "x  "),
        ("BINARY", pa.array([b"xy"], pa.binary(2)), b"xy"),
        ("TIMESTAMP", pa.array([1], pa.timestamp("s")), dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)),
        (
            "TIMESTAMP",
            pa.array([0], pa.timestamp("ns", tz="Asia/Tokyo")),
            dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        ),
        ("DATE", pa.array([86_400_000], pa.date64()), dt.date(1970, 1, 2)),
        ("TIME", pa.array([1], pa.time32("s")), dt.time(0, 0, 1)),
        ("INT", pa.nulls(1), None),
        ("INT", pa.array([None], pa.string()), None),
        ("ARRAY<INT>", pa.array([[1]], pa.large_list(pa.int64())), [1]),
        ("ARRAY<INT>", pa.array([[1, 2]], pa.list_(pa.int64(), 2)), [1, 2]),
        ("ARRAY<INT>", pa.array([[1, 2]], pa.list_view(pa.int64())), [1, 2]),
        ("STRUCT<x: INT, y: STRING>", pa.array([{"y": "a"}]), {"x": None, "y": "a"}),
        ("MAP<STRING, BIGINT>", pa.array([[("a", 1)]], pa.map_(pa.large_string(), pa.int8())), [("a", 1)]),
    ],
)
def test_arrow_data_is_cast_where_that_is_exact(ddl: str, array: pa.Array, want: Any) -> None:
    table = to_table(Schema.parse("c " + ddl), pa.table({"c": array}), topic="t")
    assert table.to_pylist() == [{"c": want}]
    table.validate(full=True)


BROKEN_TEXT = pa.array([b"ok", b"\xff"]).view(pa.string())


@pytest.mark.parametrize(
    ("ddl", "array"),
    [
        ("TINYINT", pa.array([1, 300])),
        ("INT", pa.array([None, 1.0])),
        ("INT", pa.array([None, True])),
        ("DOUBLE", pa.array([1, 2**53 + 1])),
        ("FLOAT", pa.array([1.0, 1e300])),
        ("DECIMAL(3,1)", pa.array([PyDecimal("1.00"), PyDecimal("1.25")])),
        ("DECIMAL(3,1)", pa.array([1, 1000])),
        ("STRING", BROKEN_TEXT),
        ("STRING", pa.array([None, b"x"])),
        ("VARCHAR(2)", pa.array(["é", "abc"])),
        ("DATE", pa.array([0, 2_932_897], pa.int32()).cast(pa.date32())),
        ("TIMESTAMP", pa.array([0, -62_135_596_800_000_001]).cast(pa.timestamp("us", tz="UTC"))),
        ("TIMESTAMP", pa.array([0, 1], pa.timestamp("ns"))),
        ("TIMESTAMP_NTZ", pa.array([None, 1], pa.timestamp("us", tz="UTC"))),
        ("ARRAY<VARCHAR(2)>", pa.array([["a"], ["b", "abc"]])),
        ("ARRAY<TINYINT>", pa.array([[1], [1, 300]])),
        ("STRUCT<x: INT NOT NULL>", pa.array([{"x": 1}, {"x": None}])),
        ("STRUCT<x: STRUCT<y: DATE>>", pa.array([None, {"x": {"y": "text"}}])),
        ("MAP<INT, INT>", pa.array([[(1, 1)], [(2, 1), (2, 2)]], pa.map_(pa.int32(), pa.int32()))),
    ],
)
def test_arrow_data_that_does_not_fit_is_refused_by_its_row(ddl: str, array: pa.Array) -> None:
    assert refused(ddl, None, topic_rows=pa.table({"c": array}))
    chunks = pa.chunked_array([array.slice(0, 1), array.slice(1)])
    assert refused(ddl, None, topic_rows=pa.table({"c": chunks}))


def test_null_structs_with_not_null_fields_are_taken_from_arrow() -> None:
    schema = Schema.parse("s STRUCT<x: INT NOT NULL, y: ARRAY<STRING> NOT NULL>")
    array = pa.array([None, {"x": 1, "y": ["a"]}])
    assert to_table(schema, pa.table({"s": array}), topic="t").to_pylist() == [
        {"s": None},
        {"s": {"x": 1, "y": ["a"]}},
    ]


def test_pandas_frames_are_taken_with_nan_as_null_and_without_the_index() -> None:
    schema = Schema.parse("i BIGINT, d DOUBLE, s STRING, t TIMESTAMP, o ARRAY<INT>, m DECIMAL(5,2), c STRING")
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None], dtype="Int64"),
            "d": [1.5, float("nan")],
            "s": ["x", None],
            "t": [pd.Timestamp("2024-01-01"), pd.NaT],
            "o": [[1, 2], np.nan],
            "m": [PyDecimal("1.5"), pd.NA],
            "c": pd.Categorical(["a", "b"]),
        },
        index=[7, 7],
    )
    first, second = to_table(schema, frame, topic="t").to_pylist()
    assert first["t"] == dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    assert (first["o"], first["m"], first["c"]) == ([1, 2], PyDecimal("1.50"), "a")
    assert second == {"i": None, "d": None, "s": None, "t": None, "o": None, "m": None, "c": "b"}


def test_a_value_in_a_pandas_frame_that_does_not_fit_is_named() -> None:
    refused("STRING", None, topic_rows=pd.DataFrame({"c": ["x", 5]}))
    refused("BIGINT", None, topic_rows=pd.DataFrame({"c": [float("nan"), 1.0]}))


def test_polars_frames_are_taken() -> None:
    schema = Schema.parse("a STRING, b ARRAY<BIGINT>, c STRUCT<z: INT>, d DATE, e DOUBLE")
    rows = [{"a": "x", "b": [1, None], "c": {"z": 1}, "d": dt.date(2024, 1, 1), "e": 0.5}]
    assert to_table(schema, pl.DataFrame(rows), topic="t").to_pylist() == rows


def test_neither_pandas_nor_polars_is_needed() -> None:
    code = """
import sys
class Absent:
    def find_spec(name, path=None, target=None):
        if name in ("pandas", "polars", "pyspark"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
from evert.schema.schema import Schema
from evert.schema.rows import to_table
to_table(Schema.parse("a INT"), [{"a": 1}], topic="t")
to_table(Schema.parse("a INT"), iter([{"a": 1}]), topic="t")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_keys_are_scalars_tuples_dicts_or_tables() -> None:
    schema = Schema.parse("a BIGINT, b STRING, n INT NOT NULL")
    one = [{"a": 1, "b": None, "n": None}, {"a": 2, "b": None, "n": None}]
    for keys in ([1, 2], (1, 2), [(1,), (2,)], [{"a": 1}, {"a": 2}], pa.table({"a": [1, 2]}), iter([1, 2])):
        assert keys_table(schema, keys, ("a",), topic="t").to_pylist() == one
    more = (pa.array([1, 2]), pd.Series([1, 2]), pl.Series([1, 2]), pa.table({"a": [1, 2]}).to_reader())
    for keys in more:
        assert keys_table(schema, keys, ("a",), topic="t").to_pylist() == one
    assert keys_table(schema, 1, ("a",), topic="t").to_pylist() == one[:1]
    two = [{"a": 1, "b": "x", "n": None}]
    for keys in ((1, "x"), [(1, "x")], {"a": 1, "b": "x"}, pl.DataFrame({"b": ["x"], "a": [1]})):
        assert keys_table(schema, keys, ("a", "b"), topic="t").to_pylist() == two


@pytest.mark.parametrize("keys", [[(1, 2)], [None], [{"n": 1}], [{}], ["x"]])
def test_keys_that_do_not_fit_are_refused(keys: Any) -> None:
    with pytest.raises(BadRow):
        keys_table(Schema.parse("a BIGINT, n INT"), keys, ("a",), topic="t")


@given(schemas_with_rows(6), st.integers(0, 6), st.randoms())
def test_the_digest_is_of_the_content_alone(case: Case, cut: int, random: Any) -> None:
    table = to_table(case[0], case[1], topic="t")
    parts = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    names = list(table.schema.names)
    random.shuffle(names)
    want = digest(table)
    assert len(want) == 16
    assert digest(parts) == want
    assert digest(parts.select(names)) == want
    assert digest(table.append_column("nothing", pa.nulls(len(table), pa.list_(pa.int8())))) == want
    padded = pa.concat_tables([table, table, table]).combine_chunks()
    assert digest(padded.slice(len(table), len(table))) == want


def test_the_digest_survives_the_widening_of_a_schema() -> None:
    old = Schema.parse(
        "a INT, b DECIMAL(5,2), c ARRAY<STRUCT<x: TINYINT>>, d FLOAT, e MAP<INT, INT>, f VARCHAR(3)"
    )
    new = Schema.parse(
        "z DATE, a DECIMAL(20,3), b DECIMAL(30,9), c ARRAY<STRUCT<x: BIGINT, y: STRING>>, d DOUBLE,"
        " e MAP<BIGINT, DECIMAL(12,1)>, f STRING"
    )
    rows = [
        {"a": 5, "b": "1.50", "c": [{"x": 1}, None], "d": 0.5, "e": {1: -2}, "f": "x"},
        {"a": -100, "b": None, "c": None, "d": None, "e": None, "f": ""},
    ]
    table = to_table(old, rows, topic="t")
    assert digest(upgrade(table, new)) == digest(table) == digest(to_table(new, rows, topic="t"))


DIFFERENT = [
    [{"a": 1}],
    [{"a": 2}],
    [{"a": None}],
    [{"a": 1}, {"a": None}],
    [{"a": None}, {"a": 1}],
    [{"a": 1}, {"a": 1}],
    [{"a": 0}, {"a": 1}],
    [{"b": ""}],
    [{"b": "ab"}, {"b": "c"}],
    [{"b": "a"}, {"b": "bc"}],
    [{"c": "a"}],
    [{"b": "a"}],
    [{"l": []}],
    [{"l": [None]}],
    [{"l": [[]]}],
    [{"l": [[1]]}],
    [{"l": [[1], []]}],
    [],
]


def test_different_content_has_different_digests() -> None:
    schema = Schema.parse("a INT, b STRING, c STRING, l ARRAY<ARRAY<INT>>")
    found = {digest(to_table(schema, rows, topic="t")) for rows in DIFFERENT}
    assert len(found) == len(DIFFERENT)
