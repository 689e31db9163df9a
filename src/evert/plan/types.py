"""Types between Spark, whose DDL both sides read, and Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from evert.errors import BadSchema
from evert.plan.tree import Recompute, Term
from evert.schema.ddl import parse_columns
from evert.schema.from_arrow import type_from_arrow
from evert.schema.types import Array, Column, DataType, Map, Struct, Text, quote_name


def kind_of(term: Term) -> DataType:
    """The type of a Catalyst expression; one that Arrow cannot carry makes the view recompute."""
    text = type_text(term)
    try:
        return parse_columns(f"x {text}")[0].type
    except BadSchema:
        raise Recompute(f"a column of type {text}") from None


def type_text(term: Term) -> str:
    return str(term.dataType().sql())


def arrow_schema(kinds: Iterable[DataType]) -> pa.Schema:
    """Columns `c0`, `c1`, ... of these types, all nullable."""
    return pa.schema([pa.field(f"c{place}", _arrow(kind)) for place, kind in enumerate(kinds)])


def named_schema(names: Sequence[str], kinds: Sequence[DataType]) -> pa.Schema:
    """The columns of a view as its readers see them."""
    return pa.schema([pa.field(name, _arrow(kind)) for name, kind in zip(names, kinds, strict=True)])


def kinds_in(schema: pa.Schema) -> tuple[DataType, ...]:
    """The types in which Spark sees the columns of an Arrow schema."""
    return tuple(loose(type_from_arrow(field.type, field.name)) for field in schema)


def carried(kind: DataType) -> DataType:
    """The type in which Spark sees a value that went through Arrow: without collation, precision and NOT NULL."""
    return loose(type_from_arrow(_arrow(kind), "x"))


def ddl(names: Iterable[str], kinds: Iterable[DataType]) -> str:
    return ", ".join(f"{quote_name(name)} {kind.ddl()}" for name, kind in zip(names, kinds, strict=True))


def loose(kind: DataType) -> DataType:
    """The type with every part nullable, and CHAR and VARCHAR as the STRING that Spark makes of them."""
    match kind:
        case Struct(fields):
            return Struct(tuple(Column(field.name, loose(field.type)) for field in fields))
        case Array(element):
            return Array(loose(element))
        case Map(key, value):
            return Map(loose(key), loose(value))
        case Text(_, _, collation):
            return Text(collation=collation)
        case _:
            return kind


def check_key(kind: DataType, what: str) -> None:
    """Raises Recompute for types whose equality is not that of their bytes."""
    for part in _parts(kind):
        if isinstance(part, Map):
            raise Recompute(f"{what} by a MAP")
        if isinstance(part, Text) and part.collation not in (None, "UTF8_BINARY"):
            raise Recompute(f"{what} by a STRING COLLATE {part.collation}")


def check_ordered(kind: DataType, what: str) -> None:
    """Raises Recompute for types that a kernel cannot order as Spark does."""
    check_key(kind, what)
    if not is_ordered(kind):
        raise Recompute(f"{what} of {kind.ddl()}")


def is_ordered(kind: DataType) -> bool:
    """Whether a kernel can order values as Spark does, collations aside."""
    return not isinstance(kind, Struct | Array)


def _parts(kind: DataType) -> Iterable[Any]:
    yield kind
    match kind:
        case Struct(fields):
            for field in fields:
                yield from _parts(field.type)
        case Array(element):
            yield from _parts(element)
        case Map(key, value):
            yield from _parts(key)
            yield from _parts(value)


def _arrow(kind: DataType) -> pa.DataType:
    return loose(kind).arrow
