"""Text decoded to tables, typed by the schema of the topic: JSON lines and CSV.

JSON: numbers keep all their digits; dates, times and intervals are ISO 8601 text, DECIMAL is a number or
text, BINARY is base64 text, a MAP is an object, and DOUBLE takes "NaN", "Infinity" and "-Infinity" as text
(bare NaN is not JSON and refused). Where an object holds a name twice the last one counts, as in most
readers of JSON.

CSV: cells as in JSON, without quotes where JSON has them; ARRAY, MAP and STRUCT are JSON text in a cell. A
cell that equals `null` is NULL. Not told apart: an empty cell and a quoted empty text.

Without `rejected` the first bad line raises BadRow and ends the iteration; tables given before stay given.
With it, a bad line is handed over as (line number, raw line, reason) and the rest goes on.
"""

from __future__ import annotations

import csv as csv_reader
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal as PyDecimal
from typing import IO, Any

import pyarrow as pa

from evert.errors import BadRow
from evert.schema.fit_values import Plan, refuse_constant
from evert.schema.rows import from_values
from evert.schema.schema import Schema, columns_hint
from evert.schema.types import Array, DataType, Decimal, Map, Struct

Rejected = Callable[[int, str, str], None]


@dataclass(slots=True)
class _Line:
    number: int
    raw: str
    row: dict[str, Any]


def json_lines(
    lines: Iterable[bytes | str],
    schema: Schema,
    *,
    topic: str,
    chunk: int = 10_000,
    required: Sequence[str] = (),
    rejected: Rejected | None = None,
) -> Iterator[pa.Table]:
    """Tables of at most `chunk` rows from lines of one JSON object each; blank lines are passed over.

    `required` names columns that must not be NULL, as the key's, besides those that are NOT NULL.
    """
    decoder = _Decoder(schema, schema.json_plan, topic, required, rejected)
    read = json_reader(schema)
    waiting: list[_Line] = []
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode() if isinstance(line, bytes) else line
            if number == 1:
                text = text.removeprefix("\ufeff")
            if not text.strip():
                continue
            row = read(text)
        except UnicodeDecodeError:
            decoder.refuse(number, _raw(line), "is not valid UTF-8")
            continue
        except (ValueError, RecursionError) as error:
            decoder.refuse(number, _raw(line), f"is not JSON: {error}")
            continue
        if not isinstance(row, dict):
            decoder.refuse(number, _raw(line), f"is a JSON {_json_name(row)}, not an object")
            continue
        waiting.append(_Line(number, text, row))
        if len(waiting) >= chunk:
            yield from decoder.tables(waiting)
            waiting = []
    yield from decoder.tables(waiting)


def json_reader(schema: Schema) -> Callable[[str], Any]:
    """How JSON is read for a schema: with all digits of its numbers, where it has a DECIMAL."""
    exact = any(_has_decimal(column.type) for column in schema.columns)
    return json.JSONDecoder(parse_float=PyDecimal if exact else None, parse_constant=refuse_constant).decode


def csv(
    stream: IO[Any] | Iterable[str | bytes],
    schema: Schema,
    *,
    topic: str,
    header: bool = True,
    delimiter: str = ",",
    null: str = "",
    chunk: int = 10_000,
    required: Sequence[str] = (),
    rejected: Rejected | None = None,
) -> Iterator[pa.Table]:
    """Tables of at most `chunk` rows from CSV text; a record's line number is that of its first line.

    With `header` the first record names the columns, in any order; columns it leaves out are NULL. Without,
    the cells are the columns of the schema in order. Every record has as many cells as there are columns.
    """
    decoder = _Decoder(schema, schema.text_plan, topic, required, rejected)
    source = _Remembered(stream)
    reader = csv_reader.reader(source, delimiter=delimiter, strict=True)
    names = list(schema.names)
    named = not header
    waiting: list[_Line] = []
    while True:
        start = source.count + 1
        source.seen.clear()
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv_reader.Error as error:
            decoder.refuse(start, source.raw(), f"is not CSV: {error}")
            continue
        if not cells:
            continue
        if not named:
            names, named = decoder.header(cells, start), True
            continue
        if len(cells) != len(names):
            decoder.refuse(start, source.raw(), f"has {len(cells)} cells, not {len(names)}")
            continue
        row = {name: None if cell == null else cell for name, cell in zip(names, cells, strict=True)}
        waiting.append(_Line(start, source.raw() if rejected is not None else "", row))
        if len(waiting) >= chunk:
            yield from decoder.tables(waiting)
            waiting = []
    yield from decoder.tables(waiting)


class _Decoder:
    def __init__(
        self, schema: Schema, plan: Plan, topic: str, required: Sequence[str], rejected: Rejected | None
    ) -> None:
        self._schema = schema
        self._plan = plan
        self._topic = topic
        self._required = required
        self._rejected = rejected

    def tables(self, lines: list[_Line]) -> Iterator[pa.Table]:
        if lines:
            table = self._table(lines)
            if table.num_rows:
                yield table

    def _table(self, lines: list[_Line]) -> pa.Table:
        """The lines that fit; bad ones are found by halving, so that a few cost little."""
        try:
            rows = [line.row for line in lines]
            return from_values(self._schema, self._plan, rows, topic=self._topic, required=self._required)
        except BadRow as error:
            details = error.details
            if self._rejected is None:
                number = lines[details["row"]].number
                self.refuse(number, "", details["reason"], column=details.get("column"), hint=error.hint)
            if len(lines) == 1:
                where = f"column {details['column']}: " if "column" in details else ""
                self.refuse(lines[0].number, lines[0].raw, where + details["reason"])
                return self._schema.arrow.empty_table()
        middle = len(lines) // 2
        return pa.concat_tables([self._table(lines[:middle]), self._table(lines[middle:])])

    def header(self, cells: list[str], number: int) -> list[str]:
        """The names of the first record, which cannot be set aside when they are wrong."""
        for place, name in enumerate(cells):
            if name not in self._schema.names:
                hint = columns_hint(name, self._schema.names)
                self._raise(number, f"the header names {name!r}, which is no column", name, hint)
            if name in cells[:place]:
                self._raise(number, f"the header names {name!r} twice", name, None)
        return cells

    def refuse(
        self, number: int, raw: str, reason: str, *, column: str | None = None, hint: str | None = None
    ) -> None:
        if self._rejected is None:
            self._raise(number, reason, column, hint)
        else:
            self._rejected(number, raw.rstrip("\r\n"), reason)

    def _raise(self, number: int, reason: str, column: str | None, hint: str | None) -> None:
        where = f", column {column}" if column else ""
        message = f"line {number} for {self._topic}{where}: {reason}"
        raise BadRow(
            message, hint=hint, topic=self._topic, row=number, column=column, reason=reason
        ) from None


class _Remembered:
    """The lines of a stream as text, kept until the record they belong to is read."""

    def __init__(self, stream: Iterable[str | bytes]) -> None:
        self._lines = iter(stream)
        self.count = 0
        self.seen: list[str] = []

    def __iter__(self) -> _Remembered:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.count += 1
        text = line.decode("utf-8", "surrogateescape") if isinstance(line, bytes) else line
        if self.count == 1:
            text = text.removeprefix("\ufeff")
        self.seen.append(text)
        return text

    def raw(self) -> str:
        return "".join(self.seen).encode("utf-8", "replace").decode()


def _raw(line: bytes | str) -> str:
    return line.decode("utf-8", "replace") if isinstance(line, bytes) else line


def _json_name(value: Any) -> str:
    if value is None:
        return "null"
    return {list: "array", str: "text", bool: "boolean"}.get(type(value), "number")


def _has_decimal(kind: DataType) -> bool:
    match kind:
        case Decimal():
            return True
        case Struct(fields):
            return any(_has_decimal(field.type) for field in fields)
        case Array(element):
            return _has_decimal(element)
        case Map(key, value):
            return _has_decimal(key) or _has_decimal(value)
        case _:
            return False
