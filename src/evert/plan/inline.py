"""Which chains workers can do themselves, in Arrow: those of nothing but expressions of a short list.

A term is read from its JSON, in one call into the JVM: its nodes in the order of a walk from the root.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from evert.delta.functions import FUNCTIONS
from evert.delta.inline import Call, Constant, Expression, Field, Keep, Make, Work
from evert.plan.chains import Pipe, Select, Where
from evert.plan.signatures import Kind, result
from evert.plan.tree import Column, Term

_KINDS: Mapping[str, pa.DataType] = {
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "date": pa.date32(),
    "double": pa.float64(),
    "float": pa.float32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "short": pa.int16(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DAYTIME = re.compile(r"interval (day|hour|minute|second)( to (hour|minute|second))?")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_SAME = {"KnownNotNull", "KnownNullable", "Alias"}
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_STEP = re.compile(r"(-?\d+) (day|hour|minute|second)s?")
_MICROS = {"day": 86_400_000_000, "hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def inlined(pipe: Pipe, terms: Sequence[Term]) -> Work | None:
    """The work of a pipe that ends in these terms, if workers can do it."""
    places = _places(pipe.columns)
    steps: list[Keep | Make] = []
    try:
        for step in pipe.steps:
            match step:
                case Where(condition):
                    steps.append(Keep(_read(condition, places)))
                case Select(columns, chosen):
                    steps.append(Make(tuple(_read(term, places) for term in chosen)))
                    places = _places(columns)
                case _:
                    return None
        return Work((*steps, Make(tuple(_read(term, places) for term in terms))))
    except _NotHereError:
        return None


class _NotHereError(Exception):
    """Spark must evaluate this."""


_Typed = tuple[Expression, Kind]


def _places(columns: Sequence[Column]) -> dict[int, int]:
    return {column.id: place for place, column in enumerate(columns)}


def _read(term: Term, places: Mapping[int, int]) -> Expression:
    text = term.toJSON()
    if "expressions.Like" in text and " ESCAPE " in term.sql():  # which character escapes is not in the JSON
        raise _NotHereError
    return _expression(iter(json.loads(text)), places)[0]


def _expression(nodes: Iterator[dict[str, Any]], places: Mapping[int, int]) -> _Typed:
    node = next(nodes)
    name = node["class"].rpartition(".")[2]
    if name == "AttributeReference":
        number = node["exprId"][0]["id"] if isinstance(node["exprId"], list) else node["exprId"]["id"]
        if number not in places:
            raise _NotHereError
        return Field(places[number]), _kind(node["dataType"])
    if name == "Literal":
        return _literal(node)
    arguments = [_expression(nodes, places) for _ in range(node["num-children"])]
    if name in _SAME:
        return arguments[0]
    kinds = [kind for _, kind in arguments]
    values = tuple(value for value, _ in arguments)
    if name == "CreateNamedStruct":
        return _struct(values, kinds)
    if name == "GetStructField":
        return _field(values[0], kinds[0], node["ordinal"])
    if name not in FUNCTIONS:
        raise _NotHereError
    kind = result(name, node, values, kinds, _kind(node.get("dataType", "")))
    if kind is None:
        raise _NotHereError
    return Call(name, values, kind), kind


def _literal(node: Mapping[str, Any]) -> _Typed:
    kind, value = _kind(node["dataType"]), node.get("value")
    if node["dataType"] == "interval" and value is not None:
        kind, value = pa.duration("us"), _micros(value)
    if kind is None:
        raise _NotHereError
    if value is None or pa.types.is_string(kind):
        return Constant(value, kind), kind
    if pa.types.is_boolean(kind):
        return Constant(value == "true", kind), kind
    if pa.types.is_integer(kind) or pa.types.is_duration(kind):
        return Constant(int(value), kind), kind
    if pa.types.is_decimal(kind):
        return Constant(Decimal(value), kind), kind
    if pa.types.is_date32(kind) and _DAY.fullmatch(value):
        return Constant(date.fromisoformat(value), kind), kind
    if pa.types.is_float64(kind) and float(value) > 0:  # as keys of a dict, 0.0 and -0.0 are the same
        return Constant(float(value), kind), kind
    raise _NotHereError


def _micros(interval: str) -> int:
    """The microseconds of an interval of days, hours, minutes and seconds; in UTC a day is a day."""
    steps = _STEP.findall(interval)
    if " ".join(f"{number} {unit}" for number, unit in steps) != re.sub(r"s\b", "", interval):
        raise _NotHereError
    return sum(int(number) * _MICROS[unit] for number, unit in steps)


def _struct(values: Sequence[Expression], kinds: Sequence[pa.DataType | None]) -> _Typed:
    """A struct of names and values in turns."""
    names = [value.value for value in values[::2] if isinstance(value, Constant)]
    if len(names) * 2 != len(values) or any(kind is None for kind in kinds):
        raise _NotHereError
    fields = [pa.field(str(name), kind) for name, kind in zip(names, kinds[1::2], strict=True)]
    kind = pa.struct(fields)
    return Call("struct", tuple(values[1::2]), kind), kind


def _field(value: Expression, kind: pa.DataType | None, place: int) -> _Typed:
    if kind is None:
        raise _NotHereError
    return Call("field", (value,), kind.field(place).type, place), kind.field(place).type


def _kind(text: Any) -> pa.DataType | None:
    """The Arrow type of a type as Catalyst writes it, if it is one of those that are known here."""
    if isinstance(text, dict):
        # A field's collation is not in its type, but beside it.
        fields = [
            (one["name"], None if one["metadata"] else _kind(one["type"])) for one in text.get("fields", ())
        ]
        known = text["type"] == "struct" and all(kind is not None for _, kind in fields)
        return pa.struct(fields) if known else None
    if _DAYTIME.fullmatch(text):
        return pa.duration("us")
    decimal = _DECIMAL.fullmatch(text)
    return pa.decimal128(int(decimal[1]), int(decimal[2])) if decimal else _KINDS.get(text)
