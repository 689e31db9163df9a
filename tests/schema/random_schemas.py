"""Hypothesis strategies for schemas of all types, and for rows that fit them."""

from __future__ import annotations

import datetime as dt
import unicodedata
from decimal import Context
from decimal import Decimal as PyDecimal
from functools import partial
from typing import Any

from hypothesis import strategies as st

from evert.schema.schema import Schema
from evert.schema.types import Array, Atom, Column, DataType, Decimal, Interval, Map, Struct, Text, Time

UTC = dt.UTC
_CONTEXT = Context(prec=60)
BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

plain_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).map(lambda n: "c" + n)

atoms = st.sampled_from(
    ["BOOLEAN", *BITS, "FLOAT", "DOUBLE", "BINARY", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "VOID"]
).map(Atom)


@st.composite
def decimals(draw: st.DrawFn) -> Decimal:
    precision = draw(st.integers(1, 38))
    return Decimal(precision, draw(st.integers(0, precision)))


leaves = st.one_of(
    atoms,
    decimals(),
    st.just(Text()),
    st.builds(Text, st.sampled_from(["CHAR", "VARCHAR"]), st.integers(1, 12)),
    st.builds(Time, st.integers(0, 6)),
    st.sampled_from([Interval(), Interval("DAY", "DAY"), Interval("HOUR", "MINUTE")]),
)
keys = st.sampled_from([Atom("INT"), Atom("BIGINT"), Text(), Atom("DATE"), Decimal(12, 3)])


def columns(kinds: st.SearchStrategy[DataType], most: int = 4) -> st.SearchStrategy[tuple[Column, ...]]:
    column = st.builds(Column, names, kinds, st.booleans(), st.none() | plain_text)
    unique = st.lists(column, min_size=1, max_size=most, unique_by=lambda c: _folded(c.name))
    return unique.map(lambda found: tuple(_nullable_void(one) for one in found))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).lower()


def _nullable_void(column: Column) -> Column:
    nullable = column.nullable or column.type == Atom("VOID")
    return Column(column.name, column.type, nullable, column.comment)


types: st.SearchStrategy[DataType] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Array, inner), st.builds(Map, keys, inner), st.builds(Struct, columns(inner, 3))
    ),
    max_leaves=6,
)
schemas = columns(types).map(Schema)


def values(kind: DataType) -> st.SearchStrategy[Any]:
    """Values in the form in which Arrow gives them back."""
    match kind:
        case Atom("BOOLEAN"):
            return st.booleans()
        case Atom(name) if name in BITS:
            half = 2 ** (BITS[name] - 1)
            return st.integers(-half, half - 1)
        case Atom("FLOAT"):
            return st.floats(width=32, allow_nan=False)
        case Atom("DOUBLE"):
            return st.floats(allow_nan=False)
        case Atom("BINARY"):
            return st.binary(max_size=12)
        case Atom("DATE"):
            return st.dates()
        case Atom("TIMESTAMP"):
            return st.datetimes(timezones=st.just(UTC))
        case Atom("TIMESTAMP_NTZ"):
            return st.datetimes()
        case Decimal(precision, scale):
            most = 10**precision - 1
            return st.integers(-most, most).map(lambda n: PyDecimal(n).scaleb(-scale, _CONTEXT))
        case Text("CHAR", int() as length):
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=length).map(
                partial(_blank_filled, length)
            )
        case Text("VARCHAR", length):
            return st.text(st.characters(exclude_categories=["Cs"]), max_size=length)
        case Text():
            return plain_text
        case Time():
            day = 86_400_000_000 // kind.grain
            return st.integers(0, day - 1).map(lambda n: _time(n * kind.grain))
        case Interval():
            most = 10**17 // kind.grain
            return st.integers(-most, most).map(lambda n: dt.timedelta(microseconds=n * kind.grain))
        case Array(element):
            return st.lists(st.none() | values(element), max_size=3)
        case Map(key, value):
            pairs = st.tuples(values(key), st.none() | values(value))
            return st.lists(pairs, max_size=3, unique_by=lambda pair: pair[0])
        case Struct(fields):
            return st.fixed_dictionaries({field.name: cells(field) for field in fields})
        case _:
            return st.none()


def cells(column: Column) -> st.SearchStrategy[Any]:
    return st.none() | values(column.type) if column.nullable else values(column.type)


def rows(schema: Schema, most: int = 5) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries({column.name: cells(column) for column in schema.columns})
    return st.lists(row, max_size=most)


def schemas_with_rows(most: int = 5) -> st.SearchStrategy[tuple[Schema, list[dict[str, Any]]]]:
    return schemas.flatmap(lambda schema: st.tuples(st.just(schema), rows(schema, most)))


def _blank_filled(length: int, text: str) -> str:
    return text.ljust(length)


def _time(micros: int) -> dt.time:
    return (dt.datetime.min + dt.timedelta(microseconds=micros)).time()
