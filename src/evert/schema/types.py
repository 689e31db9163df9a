"""The types a column can have: what Spark calls them, and how Arrow carries them.

    Spark                          Arrow
    BOOLEAN                        bool
    TINYINT SMALLINT INT BIGINT    int8 int16 int32 int64
    FLOAT DOUBLE                   float32 float64
    DECIMAL(p, s)                  decimal128(p, s)
    STRING CHAR(n) VARCHAR(n)      string
    BINARY                         binary
    DATE                           date32
    TIME(p)                        time64[us]
    TIMESTAMP                      timestamp[us, UTC]
    TIMESTAMP_NTZ                  timestamp[us]
    INTERVAL DAY TO SECOND         duration[us]
    VOID                           null
    ARRAY<e>                       list<element: e>
    MAP<k, v>                      map<k, v>
    STRUCT<...>                    struct<...>

The elements of an ARRAY and the values of a MAP may always be NULL, since Spark's text form of a type cannot
say otherwise. Types are values: equal when they mean the same, and usable as keys.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

MAX_PRECISION = 38
MAX_DEPTH = 64

DAY_TIME_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
_UNIT_MICROS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1}

_ATOMS: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "VOID": pa.null(),
}

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
"""The integer types from narrow to wide."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def quote_name(name: str) -> str:
    """A column name as Spark's DDL wants it, in backquotes where it needs them.

    >>> quote_name("total"), quote_name("odd `name`")
    ('total', '`odd ``name```')
    """
    return name if _PLAIN_NAME.match(name) else "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string literal of Spark SQL.

    >>> print(quote_text("it's"))
    'it\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return "'" + escaped + "'"


@dataclass(frozen=True, slots=True)
class Atom:
    """A type without parameters; `name` is Spark's canonical word for it."""

    name: str

    @property
    def arrow(self) -> pa.DataType:
        return _ATOMS[self.name]

    def ddl(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of `precision` digits, `scale` of them after the point."""

    precision: int = 10
    scale: int = 0

    @property
    def arrow(self) -> pa.DataType:
        return pa.decimal128(self.precision, self.scale)

    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Text:
    """STRING, or CHAR(n) and VARCHAR(n) whose length counts characters; a collation only with STRING."""

    kind: str = "STRING"
    length: int | None = None
    collation: str | None = None

    @property
    def arrow(self) -> pa.DataType:
        return pa.string()

    def ddl(self) -> str:
        if self.length is not None:
            return f"{self.kind}({self.length})"
        return f"STRING COLLATE {self.collation}" if self.collation else "STRING"


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day with `precision` digits of the second."""

    precision: int = 6

    @property
    def arrow(self) -> pa.DataType:
        return pa.time64("us")

    @property
    def grain(self) -> int:
        """Every value is a multiple of this many microseconds."""
        return int(10 ** (6 - self.precision))

    def ddl(self) -> str:
        return f"TIME({self.precision})"


@dataclass(frozen=True, slots=True)
class Interval:
    """A length of time from days to seconds; `end` is the finest unit it has."""

    start: str = "DAY"
    end: str = "SECOND"

    @property
    def arrow(self) -> pa.DataType:
        return pa.duration("us")

    @property
    def grain(self) -> int:
        """Every value is a multiple of this many microseconds."""
        return _UNIT_MICROS[self.end]

    def ddl(self) -> str:
        return f"INTERVAL {self.start}" + ("" if self.start == self.end else f" TO {self.end}")


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type."""

    element: DataType

    @property
    def arrow(self) -> pa.DataType:
        return pa.list_(pa.field("element", self.element.arrow))

    def ddl(self) -> str:
        return f"ARRAY<{self.element.ddl()}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values by key; keys are never NULL and never twice in one map."""

    key: DataType
    value: DataType

    @property
    def arrow(self) -> pa.DataType:
        return pa.map_(self.key.arrow, pa.field("value", self.value.arrow))

    def ddl(self) -> str:
        return f"MAP<{self.key.ddl()}, {self.value.ddl()}>"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a schema, or a field of a STRUCT."""

    name: str
    type: DataType
    nullable: bool = True
    comment: str | None = None

    @property
    def arrow(self) -> pa.Field:
        return pa.field(self.name, self.type.arrow, nullable=self.nullable)

    def ddl(self, *, colon: bool = False) -> str:
        parts = [quote_name(self.name) + (":" if colon else ""), self.type.ddl()]
        if not self.nullable:
            parts.append("NOT NULL")
        if self.comment is not None:
            parts.append("COMMENT " + quote_text(self.comment))
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Struct:
    """A row within a row."""

    fields: tuple[Column, ...]

    @property
    def arrow(self) -> pa.DataType:
        return pa.struct([field.arrow for field in self.fields])

    def ddl(self) -> str:
        return "STRUCT<" + ", ".join(field.ddl(colon=True) for field in self.fields) + ">"


DataType: TypeAlias = Atom | Decimal | Text | Time | Interval | Array | Map | Struct


def is_integer(kind: DataType) -> bool:
    return isinstance(kind, Atom) and kind.name in INTEGERS


def has_floats(kind: DataType) -> bool:
    """Whether values of this type may differ in their bytes though they are equal, as 0.0 and -0.0 do."""
    match kind:
        case Struct(fields):
            return any(has_floats(field.type) for field in fields)
        case Array(element):
            return has_floats(element)
        case Map(key, value):
            return has_floats(key) or has_floats(value)
        case _:
            return isinstance(kind, Atom) and kind.name in ("FLOAT", "DOUBLE")


def is_nested(kind: DataType) -> bool:
    return isinstance(kind, Array | Map | Struct)
