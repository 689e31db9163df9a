"""JSON lines and CSV decoded to tables."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
import math
from decimal import Decimal as PyDecimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.random_schemas import schemas_with_rows

from evert.errors import BadRow
from evert.schema.decode import csv, json_lines
from evert.schema.rows import to_table
from evert.schema.schema import Schema
from evert.schema.types import Array, DataType, Decimal, Interval, Map, Struct

Case = tuple[Schema, list[dict[str, Any]]]


def read_json(ddl: str, *lines: bytes | str, **options: Any) -> list[dict[str, Any]]:
    tables = json_lines(lines, Schema.parse(ddl), topic="t", **options)
    return [row for table in tables for row in table.to_pylist()]


def read_csv(ddl: str, text: str | bytes, **options: Any) -> list[dict[str, Any]]:
    stream: Any = io.BytesIO(text) if isinstance(text, bytes) else io.StringIO(text, newline="")
    return [
        row for table in csv(stream, Schema.parse(ddl), topic="t", **options) for row in table.to_pylist()
    ]


def as_json(kind: DataType, value: Any) -> Any:
    """A value in the form in which a careful writer puts it into JSON."""
    match kind, value:
        case _, None:
            return None
        case Struct(fields), _:
            return {field.name: as_json(field.type, value[field.name]) for field in fields}
        case Array(element), _:
            return [as_json(element, one) for one in value]
        case Map(key, inner), _:
            texts = [(as_json(key, one), as_json(inner, two)) for one, two in value]
            return {one if isinstance(one, str) else json.dumps(one): two for one, two in texts}
        case Decimal(), _:
            return str(value)
        case Interval(), _:
            micros = value // dt.timedelta(microseconds=1)
            seconds, rest = divmod(abs(micros), 1_000_000)
            return f"{'-' if micros < 0 else ''}PT{seconds}.{rest:06}S"
        case _, bytes():
            return base64.b64encode(value).decode()
        case _, dt.date() | dt.time():
            return value.isoformat()
        case _, float() if not math.isfinite(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


@given(schemas_with_rows())
def test_what_was_written_as_json_is_read_back(case: Case) -> None:
    schema, rows = case
    lines: list[bytes | str] = [
        json.dumps({c.name: as_json(c.type, row[c.name]) for c in schema.columns}) for row in rows
    ]
    got = [row for table in json_lines(lines, schema, topic="t", chunk=2) for row in table.to_pylist()]
    assert got == to_table(schema, rows, topic="t").to_pylist()


def test_numbers_of_json_keep_their_digits() -> None:
    line = '{"i": 9007199254740993, "m": 0.10, "big": 12345678901234567890.123, "d": 0.1}'
    ddl = "i BIGINT, m DECIMAL(5,2), big DECIMAL(38,3), d DOUBLE"
    want = {"i": 2**53 + 1, "m": PyDecimal("0.10"), "big": PyDecimal("12345678901234567890.123"), "d": 0.1}
    assert read_json(ddl, line) == [want]


def test_blank_lines_a_byte_order_mark_and_chunks_make_no_difference() -> None:
    lines: list[bytes | str] = ['\ufeff{"a": 1}\n', "\n", b'{"a": 2}\r\n', "  ", '{"a": 3}']
    tables = list(json_lines(lines, Schema.parse("a INT"), topic="t", chunk=2))
    assert [table.num_rows for table in tables] == [2, 1]
    assert read_json("a INT") == []


BAD_JSON = [
    '{"a": 1',
    "[1]",
    "5",
    '{"a": NaN}',
    '{"a": "x"}',
    '{"a": true}',
    '{"a": 1.0}',
    '{"a": 99999999999}',
    '{"d": 1e400}',
    '{"d": "1.5"}',
    '{"d": Infinity}',
    '{"b": "not base64!"}',
    '{"s": 5}',
    '{"s": "\\ud800"}',
    '{"unknown": 1}',
    '{"t": "yesterday"}',
    '{"a": ' + "9" * 5000 + "}",
    "[" * 100_000,
    b'{"s": "\xff"}',
]


@pytest.mark.parametrize("ddl", ["", ", m DECIMAL(5,2)"])
@pytest.mark.parametrize("line", BAD_JSON)
def test_a_bad_line_is_named_by_its_number_or_set_aside(line: str | bytes, ddl: str) -> None:
    ddl = "a INT, d DOUBLE, b BINARY, s STRING, t TIMESTAMP" + ddl
    lines: list[str | bytes] = ['{"a": 1}', "", line, '{"a": 4}']
    with pytest.raises(BadRow, match=r"^line 3 for t") as caught:
        read_json(ddl, *lines)
    assert caught.value.details["row"] == 3
    assert caught.value.details["reason"]
    aside: list[tuple[int, str, str]] = []
    rows = read_json(ddl, *lines, rejected=lambda *args: aside.append(args))
    assert [row["a"] for row in rows] == [1, 4]
    assert [number for number, _, _ in aside] == [3]
    raw = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    assert aside[0][1] == raw


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 15))
def test_any_mixture_of_good_and_bad_lines_is_told_apart(good: list[bool], chunk: int) -> None:
    lines = [json.dumps({"a": number if fine else "x"}) for number, fine in enumerate(good)]
    aside: list[int] = []
    rows = read_json("a INT", *lines, chunk=chunk, rejected=lambda number, raw, why: aside.append(number - 1))
    assert [row["a"] for row in rows] == [number for number, fine in enumerate(good) if fine]
    assert aside == [number for number, fine in enumerate(good) if not fine]


def test_not_null_columns_and_those_of_the_key_are_checked_line_by_line() -> None:
    with pytest.raises(BadRow, match="line 1 for t, column b: is NULL, and the column is part of the key"):
        read_json("a INT, b INT", '{"a": 1}', required=["b"])
    with pytest.raises(BadRow, match="line 2 for t, column a: is NULL"):
        read_json("a INT NOT NULL", '{"a": 1}', "{}")


def test_the_keys_of_a_map_are_read_by_their_type() -> None:
    assert read_json("m MAP<INT, DOUBLE>", '{"m": {"5": 1, "-6": "NaN"}}')[0]["m"][0] == (5, 1.0)
    with pytest.raises(BadRow):
        read_json("m MAP<INT, INT>", '{"m": {"x": 1}}')


def test_csv_cells_are_typed_by_the_schema() -> None:
    ddl = (
        "i INT, d DOUBLE, m DECIMAL(5,2), s STRING, b BOOLEAN, t TIMESTAMP, x BINARY, l ARRAY<INT>, v CHAR(3)"
    )
    text = (
        "s,i,d,m,b,t,x,l\r\n"
        '"a, ""quoted""\r\ntext",5,1.5,2.5,true,2024-01-01T00:00:00Z,eA==,"[1, 2]"\r\n'
        ",,NaN,,,,,\r\n"
    )
    first, second = read_csv(ddl, text)
    assert first == {
        "i": 5,
        "d": 1.5,
        "m": PyDecimal("2.50"),
        "s": 'a, "quoted"\r\ntext',
        "b": True,
        "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
        "x": b"x",
        "l": [1, 2],
        "v": None,
    }
    assert math.isnan(second.pop("d"))
    assert set(second.values()) == {None}
    assert read_csv(ddl, text.encode())[0] == first


def test_csv_without_a_header_has_the_columns_in_order() -> None:
    got = read_csv("a INT, b STRING", "1;x\n2;\\N\n", header=False, delimiter=";", null="\\N")
    assert got == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def test_a_bad_csv_record_is_named_by_its_first_line_or_set_aside() -> None:
    text = 'a,b\n1,"two\nlines"\nx,y\n3\n4,z,z\n5,ok\n6.5,no\n'
    with pytest.raises(BadRow, match=r"^line 4 for t, column a") as caught:
        read_csv("a INT, b STRING", text.replace("3\n4,z,z\n", ""))
    assert caught.value.details["row"] == 4
    aside: list[tuple[int, str]] = []
    rows = read_csv("a INT, b STRING", text, rejected=lambda number, raw, why: aside.append((number, raw)))
    assert rows == [{"a": 1, "b": "two\nlines"}, {"a": 5, "b": "ok"}]
    assert sorted(aside) == [(4, "x,y"), (5, "3"), (6, "4,z,z"), (8, "6.5,no")]


@pytest.mark.parametrize("text", ["a,c\n1,2\n", "a,a\n1,2\n"])
def test_a_header_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(BadRow, match="line 1 for t"):
        read_csv("a INT, b INT", text, rejected=lambda *args: None)


def test_csv_text_that_is_not_utf_8_is_refused_by_its_line() -> None:
    with pytest.raises(BadRow, match="line 3 for t, column b"):
        read_csv("a INT, b STRING", b"a,b\n1,x\n2,\xff\n")
