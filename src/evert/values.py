"""Arrow values as JSON and as cells of a table on the screen.

What is written as JSON is what `evert append` reads: bytes as base64, times in ISO 8601 (TIMESTAMP with Z),
decimals as text, NaN and the infinities as text, a MAP as an object.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Convert = Callable[[Any], Any]

_MICROSECOND = dt.timedelta(microseconds=1)


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as values that `json.dumps` takes."""
    names = batch.schema.names
    columns = [column_of(batch.column(i)) for i in range(batch.num_columns)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def as_json(row: Mapping[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """One row of Python values as `rows_of` would have it."""
    return {name: _inner(converter(schema.field(name).type))(value) for name, value in row.items()}


def column_of(array: pa.Array) -> list[Any]:
    if pa.types.is_timestamp(array.type):
        return _moments(array)
    convert = converter(array.type)
    values = array.to_pylist()
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
"""A value of `rows_of` as JSON."""


def _moments(array: pa.Array) -> list[str | None]:
    """ISO 8601, also for years that Python's own type does not have."""
    texts = pc.replace_substring(array.cast(pa.string()), " ", "T", max_replacements=1)
    whole = pc.replace_substring_regex(texts, r"\.000000(Z?)$", r"\1")
    found: list[str | None] = whole.to_pylist()
    return found


def cell(value: Any) -> str:
    """A value of `rows_of` as people read it."""
    if isinstance(value, str):
        return value
    if value is None:
        return "NULL"
    return dumps(value)


def converter(kind: pa.DataType) -> Convert | None:
    """How values of a type that Python gives become JSON; None if they are that already."""
    types = pa.types
    if types.is_floating(kind):
        return _number
    if types.is_decimal(kind):
        return lambda value: format(value, "f")
    if types.is_binary(kind):
        return lambda value: base64.b64encode(value).decode()
    if types.is_timestamp(kind):
        return _utc if kind.tz else _iso
    if types.is_date(kind) or types.is_time(kind):
        return _iso
    if types.is_duration(kind):
        return _duration
    if types.is_list(kind):
        return _list(converter(kind.value_type))
    if types.is_map(kind):
        return _map(converter(kind.key_type), converter(kind.item_type))
    if types.is_struct(kind):
        return _struct({kind.field(i).name: converter(kind.field(i).type) for i in range(kind.num_fields)})
    return None


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _utc(value: dt.datetime) -> str:
    return value.replace(tzinfo=None).isoformat() + "Z"


def _iso(value: dt.date | dt.time) -> str:
    return value.isoformat()


def _duration(value: dt.timedelta) -> str:
    """
    >>> _duration(dt.timedelta(days=1, seconds=-30))
    'PT23H59M30S'
    """
    micros = value // _MICROSECOND
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    seconds, micros = divmod(micros, 1_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    fraction = f".{micros:06}".rstrip("0") if micros else ""
    time = "".join(f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n)
    if seconds or fraction or not (days or time):
        time += f"{seconds}{fraction}S"
    return f"{sign}P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")


def _inner(convert: Convert | None) -> Convert:
    return lambda value: value if value is None or convert is None else convert(value)


def _list(element: Convert | None) -> Convert | None:
    return None if element is None else lambda value: [_inner(element)(item) for item in value]


def _map(key: Convert | None, item: Convert | None) -> Convert:
    def convert(value: list[tuple[Any, Any]]) -> dict[str, Any]:
        return {cell(_inner(key)(k)): _inner(item)(v) for k, v in value}

    return convert


def _struct(fields: dict[str, Convert | None]) -> Convert:
    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return {name: _inner(fields[name])(inner) for name, inner in value.items()}

    return convert
