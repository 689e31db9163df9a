"""The columns of a topic: read from DDL or Arrow, compared with an older version, and applied to older data.

>>> schema = Schema.parse("id BIGINT NOT NULL, note STRING")
>>> schema.arrow
id: int64 not null
note: string
>>> Schema.parse(schema.ddl()) == schema
True
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import pyarrow as pa

from evert.errors import BadName, BadSchema, SchemaChangeRefused, UnknownColumn
from evert.schema.ddl import parse_columns
from evert.schema.fit_arrow import Misfit, recast
from evert.schema.fit_values import Plan
from evert.schema.from_arrow import type_from_arrow
from evert.schema.types import (
    INTEGERS,
    Array,
    Atom,
    Column,
    DataType,
    Decimal,
    Map,
    Struct,
    Text,
    is_integer,
    quote_name,
)

__all__ = ["RESERVED", "Column", "Schema", "check_evolution", "check_names", "upgrade"]

RESERVED = frozenset({"_position", "_partition", "_offset", "_ingested_at", "_deleted", "_watermark"})
"""The system columns of every topic."""

_MAX_NAME = 255


@dataclass(frozen=True)
class Schema:
    """The columns of a topic, in order; equal when names, types, NOT NULL and comments are."""

    columns: tuple[Column, ...]

    def __post_init__(self) -> None:
        if not self.columns:
            raise BadSchema("the schema has no columns", hint="for example: id BIGINT NOT NULL, note STRING")
        check_names(self.columns)

    @classmethod
    def parse(cls, ddl: str) -> Schema:
        """The schema of a Spark DDL text such as `"id BIGINT NOT NULL, tags ARRAY<STRING>"`."""
        return cls(parse_columns(ddl))

    @classmethod
    def from_arrow(cls, schema: pa.Schema) -> Schema:
        """The schema that holds what this Arrow schema describes.

        Forms of one type are folded (large, view, dictionary), unsigned integers become the next wider type,
        and times of another unit become microseconds: a nanosecond value that is not a whole number of
        microseconds is refused when its row comes, not here.
        """
        return cls(
            tuple(Column(one.name, type_from_arrow(one.type, one.name), one.nullable) for one in schema)
        )

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of the rows as they are stored, without system columns."""
        return pa.schema([column.arrow for column in self.columns])

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @cached_property
    def plan(self) -> Plan:
        """How Python values become columns of this schema."""
        return Plan(self.columns, "python")

    @cached_property
    def json_plan(self) -> Plan:
        """How the values of a JSON document become columns of this schema."""
        return Plan(self.columns, "json")

    @cached_property
    def text_plan(self) -> Plan:
        """How the cells of a text file become columns of this schema."""
        return Plan(self.columns, "text")

    def ddl(self) -> str:
        """The canonical text, which `parse` reads back to an equal schema."""
        return ", ".join(column.ddl() for column in self.columns)

    def column(self, name: str) -> Column:
        """The column of this name, else the one whose name differs in case only."""
        for column in self.columns:
            if column.name == name:
                return column
        for column in self.columns:
            if _folded(column.name) == _folded(name):
                return column
        raise UnknownColumn(f"there is no column {name!r}", hint=columns_hint(name, self.names), column=name)


def columns_hint(name: str, known: Sequence[str]) -> str:
    """What to say to someone who named a column that is not there."""
    listed = "the columns are " + ", ".join(map(quote_name, known))
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}? {listed}" if close else listed


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).lower()


def check_names(columns: Iterable[Column], path: str = "") -> None:
    """Raises BadName for a name that cannot be used; inside a STRUCT only the system names are allowed."""
    seen: dict[str, str] = {}
    for column in columns:
        name = column.name
        reason = _bad_name(name, top=not path)
        if reason is None and _folded(name) in seen:
            reason = f"is the same as {seen[_folded(name)]!r}, for names differ in more than case"
        if reason is not None:
            inside = f" in {path}" if path else ""
            hint = "choose another name"
            raise BadName(
                f"the column name {name[:80]!r}{inside} {reason}", hint=hint, column=(path + name)[:300]
            )
        seen[_folded(name)] = name
        if column.comment is not None and not _encodable(column.comment):
            raise BadSchema(f"column {name}: its comment is not valid Unicode text", column=path + name)
        _check_inner_names(column.type, f"{path}{name}.")


def _check_inner_names(kind: DataType, path: str) -> None:
    match kind:
        case Struct(fields):
            check_names(fields, path)
        case Array(element):
            _check_inner_names(element, path + "element.")
        case Map(key, value):
            _check_inner_names(key, path + "key.")
            _check_inner_names(value, path + "value.")


def _bad_name(name: str, *, top: bool) -> str | None:
    if not name:
        return "is empty"
    if len(name) > _MAX_NAME:
        return f"has {len(name)} characters, more than {_MAX_NAME}"
    if any(unicodedata.category(letter) == "Cc" for letter in name):
        return "holds a control character"
    if not _encodable(name):
        return "is not valid Unicode text"
    if top and name.startswith("__"):
        return "starts with two underscores, as only names of the system do"
    if top and name.lower() in RESERVED:
        return "is the name of a system column"
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_evolution(old: Schema, new: Schema, key: tuple[str, ...]) -> None:
    """Raises SchemaChangeRefused unless every row written under `old` means the same under `new`.

    Allowed: new nullable columns, wider numbers and VARCHARs, NOT NULL given up, other comments, and the same
    inside of nested types (new STRUCT fields at the end). A key column may only become a wider integer.
    """
    kept = [name for name in new.names if name in old.names]
    for name in old.names:
        if name not in kept:
            _refuse(name, "it is gone; columns cannot be dropped or renamed")
    if kept != list(old.names):
        _refuse(
            next(b for a, b in zip(old.names, kept, strict=True) if a != b), "the order of columns changed"
        )
    for column in new.columns:
        if column.name not in old.names:
            if not column.nullable:
                _refuse(column.name, "it is new and NOT NULL, and the rows that exist have no value for it")
            continue
        before = old.column(column.name)
        if before.nullable and not column.nullable:
            _refuse(column.name, "it became NOT NULL, and rows that exist may hold NULL")
        if column.name in key:
            if before.nullable != column.nullable:
                _refuse(column.name, "it is part of the key, and NOT NULL was given up")
            if before.type != column.type and not (
                is_integer(column.type) and _widens(before.type, column.type)
            ):
                _refuse(
                    column.name,
                    f"it is part of the key: {before.type.ddl()} cannot become {column.type.ddl()}",
                )
        _check_type(before.type, column.type, column.name)


def _refuse(column: str, reason: str) -> None:
    raise SchemaChangeRefused(
        f"column {column}: {reason}",
        hint="create a new topic with the new schema and copy the rows with a view or `evert append`",
        column=column,
        reason=reason,
    )


def _check_type(old: DataType, new: DataType, path: str) -> None:
    match old, new:
        case Struct(before), Struct(after):
            if [field.name for field in after[: len(before)]] != [field.name for field in before]:
                _refuse(path, "fields of a STRUCT keep their names and order; new ones come at the end")
            for one, two in zip(before, after, strict=False):
                if one.nullable and not two.nullable:
                    _refuse(f"{path}.{two.name}", "it became NOT NULL, and rows that exist may hold NULL")
                _check_type(one.type, two.type, f"{path}.{two.name}")
            for field in after[len(before) :]:
                if not field.nullable:
                    _refuse(f"{path}.{field.name}", "it is new and NOT NULL")
        case Array(one), Array(two):
            _check_type(one, two, f"{path}.element")
        case Map(one, before), Map(two, after):
            _check_type(one, two, f"{path}.key")
            _check_type(before, after, f"{path}.value")
        case _:
            if old != new and not _widens(old, new):
                _refuse(path, f"{old.ddl()} cannot become {new.ddl()}{_digits_needed(old, new)}")


def _spark_digits(kind: DataType) -> int:
    """The digits before the point that Spark asks for when it reads stored integers as DECIMAL."""
    return 20 if kind == Atom("BIGINT") else 10


def _digits_needed(old: DataType, new: DataType) -> str:
    if is_integer(old) and isinstance(new, Decimal):
        return f"; it needs {_spark_digits(old)} digits before the point"
    return ""


def _widens(old: DataType, new: DataType) -> bool:
    match old, new:
        case Atom("FLOAT"), Atom("DOUBLE"):
            return True
        case Atom(one), Atom(two) if one in INTEGERS and two in INTEGERS:
            return INTEGERS.index(two) > INTEGERS.index(one)
        case Atom(), Decimal(precision, scale) if is_integer(old):
            return precision - scale >= _spark_digits(old)
        case Decimal(), Decimal():
            return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        case Text("VARCHAR", int() as length), Text(kind, wider, collation):
            if kind == "VARCHAR":
                return (wider or 0) > length
            return kind == "STRING" and collation is None
        case _:
            return False


def upgrade(table: pa.Table, to: Schema, columns: Sequence[str] | None = None) -> pa.Table:
    """Data stored under an older version of a schema, in the form of a newer one.

    Columns are found by name; those the data lacks are NULL. Columns that are not of the schema and start
    with an underscore (the system's) are kept at the end, others are dropped. With `columns`, only these of
    the schema are given, in this order. The data is trusted: NOT NULL and lengths are not checked again.
    """
    wanted = to.columns if columns is None else tuple(to.column(name) for name in columns)
    arrays: list[pa.ChunkedArray] = []
    fields: list[pa.Field] = []
    for column in wanted:
        field = to.arrow.field(column.name)
        place = table.schema.get_field_index(column.name)
        if place < 0:
            arrays.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
        elif table.schema.field(place).type == field.type:
            arrays.append(table.column(place))
        else:
            arrays.append(_recast_column(table.column(place), column))
        fields.append(field if place >= 0 else field.with_nullable(True))
    for place, field in enumerate(table.schema):
        if field.name.startswith("_") and field.name not in to.names:
            arrays.append(table.column(place))
            fields.append(field)
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _recast_column(data: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    try:
        return pa.chunked_array([recast(chunk, column.type) for chunk in data.chunks], type=column.type.arrow)
    except Misfit as miss:
        raise SchemaChangeRefused(
            f"column {column.name}{miss.path}: stored data {miss.reason}",
            column=column.name,
            reason=miss.reason,
        ) from None
