"""Schemas: their Arrow form, how they may change, and old data under a new version."""

from __future__ import annotations

import io
from decimal import Decimal as PyDecimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from tests.schema.random_schemas import schemas, schemas_with_rows

from evert.errors import BadSchema, SchemaChangeRefused, UnknownColumn
from evert.schema.rows import to_table
from evert.schema.schema import Schema, check_evolution, upgrade


def test_types_map_to_arrow() -> None:
    schema = Schema.parse(
        "a TIMESTAMP, b TIMESTAMP_NTZ, c TIME, d INTERVAL DAY, e ARRAY<STRUCT<x: INT NOT NULL>>"
    )
    inner = pa.struct([pa.field("x", pa.int32(), nullable=False)])
    assert schema.arrow.types == [
        pa.timestamp("us", tz="UTC"),
        pa.timestamp("us"),
        pa.time64("us"),
        pa.duration("us"),
        pa.list_(pa.field("element", inner)),
    ]


@given(schemas_with_rows(3))
def test_every_type_survives_parquet(case: tuple[Schema, list[dict[str, object]]]) -> None:
    schema, rows = case
    table = to_table(schema, rows, topic="t")
    file = io.BytesIO()
    pq.write_table(table, file)
    back = pq.read_table(io.BytesIO(file.getvalue()))
    assert back.schema.types == table.schema.types
    assert back.to_pylist() == table.to_pylist()


@given(schemas)
def test_from_arrow_inverts_arrow(schema: Schema) -> None:
    assert Schema.from_arrow(schema.arrow).arrow == schema.arrow


def test_from_arrow_folds_forms_and_units() -> None:
    schema = Schema.from_arrow(
        pa.schema(
            [
                ("a", pa.dictionary(pa.int8(), pa.large_string())),
                ("b", pa.uint64()),
                ("c", pa.timestamp("ns", tz="Europe/Paris")),
                ("d", pa.list_(pa.binary_view(), 3)),
                ("e", pa.decimal256(20, 3)),
                ("f", pa.time32("s")),
                ("g", pa.date64()),
            ]
        )
    )
    assert schema.ddl() == (
        "a STRING, b DECIMAL(20,0), c TIMESTAMP, d ARRAY<BINARY>, e DECIMAL(20,3), f TIME(6), g DATE"
    )


@pytest.mark.parametrize("kind", [pa.decimal256(60, 2), pa.month_day_nano_interval(), pa.struct([])])
def test_from_arrow_refuses_what_has_no_place(kind: pa.DataType) -> None:
    with pytest.raises(BadSchema, match=r"column s\.element"):
        Schema.from_arrow(pa.schema([("s", pa.list_(kind))]))


def test_a_column_is_found_by_its_name_else_without_regard_to_case() -> None:
    schema = Schema.parse("Id BIGINT, note STRING")
    assert schema.column("ID").name == "Id"
    with pytest.raises(UnknownColumn) as caught:
        schema.column("note2")
    assert caught.value.hint == "did you mean 'note'? the columns are Id, note"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a INT", "b STRING, a INT COMMENT 'x'"),
        ("a TINYINT", "a SMALLINT"),
        ("a INT", "a BIGINT"),
        ("a INT", "a DECIMAL(12,2)"),
        ("a BIGINT", "a DECIMAL(20)"),
        ("a FLOAT", "a DOUBLE"),
        ("a DECIMAL(5,2)", "a DECIMAL(7,4)"),
        ("a VARCHAR(3)", "a VARCHAR(4)"),
        ("a VARCHAR(3)", "a STRING"),
        ("a INT NOT NULL", "a INT"),
        ("a STRUCT<x: INT NOT NULL>", "a STRUCT<x: BIGINT, y: STRING>"),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<x: INT, y: DATE>>"),
        ("a MAP<STRING, INT>", "a MAP<STRING, BIGINT>"),
        ("k INT", "k BIGINT"),
    ],
)
def test_changes_that_keep_the_meaning_of_old_rows_are_allowed(old: str, new: str) -> None:
    check_evolution(Schema.parse(old), Schema.parse(new), ("k",))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a INT, b INT", "a INT"),
        ("a INT, b INT", "b INT, a INT"),
        ("a INT", "A INT"),
        ("a INT", "a INT, b INT NOT NULL"),
        ("a INT", "a INT NOT NULL"),
        ("a BIGINT", "a INT"),
        ("a INT", "a DOUBLE"),
        ("a INT", "a DECIMAL(9)"),
        ("a DOUBLE", "a FLOAT"),
        ("a DECIMAL(5,2)", "a DECIMAL(6,4)"),
        ("a STRING", "a VARCHAR(9)"),
        ("a STRING", "a STRING COLLATE UNICODE_CI"),
        ("a CHAR(3)", "a CHAR(4)"),
        ("a DATE", "a TIMESTAMP"),
        ("a TIMESTAMP", "a TIMESTAMP_NTZ"),
        ("a STRUCT<x: INT>", "a STRUCT<y: INT, x: INT>"),
        ("a STRUCT<x: INT, y: INT>", "a STRUCT<x: INT>"),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT, y: INT NOT NULL>"),
        ("a STRUCT<x: INT>", "a STRUCT<x: INT NOT NULL>"),
        ("k INT", "k DECIMAL(10)"),
        ("k FLOAT", "k DOUBLE"),
        ("k VARCHAR(3)", "k STRING"),
        ("k INT NOT NULL", "k INT"),
    ],
)
def test_other_changes_are_refused_with_a_way_out(old: str, new: str) -> None:
    with pytest.raises(SchemaChangeRefused) as caught:
        check_evolution(Schema.parse(old), Schema.parse(new), ("k",))
    assert "create a new topic" in str(caught.value.hint)
    assert caught.value.details["column"]


@given(schemas)
def test_a_schema_may_always_become_itself(schema: Schema) -> None:
    check_evolution(schema, schema, schema.names[:1])


@given(schemas_with_rows(4))
def test_upgrading_to_the_same_schema_changes_nothing(case: tuple[Schema, list[dict[str, object]]]) -> None:
    table = to_table(case[0], case[1], topic="t")
    assert upgrade(table, case[0]).equals(table)


def test_old_data_is_brought_to_the_new_schema_inside_and_out() -> None:
    old = Schema.parse("a INT, b DECIMAL(5,2), c ARRAY<STRUCT<x: TINYINT>>, d MAP<INT, FLOAT>")
    new = Schema.parse(
        "a DECIMAL(12,1), n STRING, b DECIMAL(9,4), c ARRAY<STRUCT<x: INT, y: ARRAY<DATE>>>,"
        " d MAP<BIGINT, DOUBLE>"
    )
    check_evolution(old, new, ())
    rows = [
        {"a": 7, "b": PyDecimal("1.25"), "c": [{"x": 1}, None], "d": {1: 0.5}},
        {"a": None, "b": None, "c": None, "d": None},
    ]
    table = to_table(old, rows, topic="t")
    table = table.append_column("_offset", pa.array([4, 5], pa.int64())).slice(0)
    got = upgrade(table, new)
    assert got.schema.names == [*new.names, "_offset"]
    assert got.drop(["_offset"]).schema == new.arrow
    assert got.to_pylist() == [
        {
            "a": PyDecimal("7.0"),
            "n": None,
            "b": PyDecimal("1.2500"),
            "c": [{"x": 1, "y": None}, None],
            "d": [(1, 0.5)],
            "_offset": 4,
        },
        {"a": None, "n": None, "b": None, "c": None, "d": None, "_offset": 5},
    ]
    assert upgrade(table.slice(1), new).to_pylist() == got.slice(1).to_pylist()


def test_a_subset_of_columns_is_upgraded_in_the_order_asked_for() -> None:
    table = to_table(Schema.parse("a INT, b STRING"), [{"a": 1, "b": "x"}], topic="t")
    new = Schema.parse("a BIGINT, b STRING, c DATE")
    assert upgrade(table, new, ["c", "a"]).to_pylist() == [{"c": None, "a": 1}]
