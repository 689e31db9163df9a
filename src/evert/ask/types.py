"""Spark's rules for types, and what DuckDB calls them.

A TIMESTAMP is a moment, TIMESTAMP WITH TIME ZONE in DuckDB, whose session is in UTC; TIMESTAMP_NTZ is DuckDB's
TIMESTAMP. All else has the same name, or nearly.
"""

from __future__ import annotations

from evert.schema.types import INTEGERS, Array, Atom, DataType, Decimal, Map, Struct, Text, Time

VOID, BOOLEAN = Atom("VOID"), Atom("BOOLEAN")
TINYINT, SMALLINT, INT, BIGINT = (Atom(name) for name in INTEGERS)
FLOAT, DOUBLE, BINARY, DATE = Atom("FLOAT"), Atom("DOUBLE"), Atom("BINARY"), Atom("DATE")
TIMESTAMP, TIMESTAMP_NTZ = Atom("TIMESTAMP"), Atom("TIMESTAMP_NTZ")
STRING = Text()

DIGITS = 38
_DIGITS_OF = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_IN_DUCKDB = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BINARY": "BLOB",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP_NTZ": "TIMESTAMP",
}


def in_duckdb(kind: DataType) -> str | None:
    """DuckDB's name of a type; None if DuckDB does not carry it as Evert does."""
    match kind:
        case Atom(name):
            return _IN_DUCKDB.get(name)
        case Decimal(precision, scale):
            return f"DECIMAL({precision}, {scale})"
        case Text():
            return "VARCHAR" if kind.collation is None else None
        case Time():
            return "TIME"
        case Array(element):
            inner = in_duckdb(element)
            return None if inner is None else f"{inner}[]"
        case Struct(fields):
            inners = [(field.name.replace('"', '""'), in_duckdb(field.type)) for field in fields]
            if any(inner is None for _, inner in inners):
                return None
            return "STRUCT(" + ", ".join(f'"{name}" {inner}' for name, inner in inners) + ")"
        case Map(key, value):
            parts = in_duckdb(key), in_duckdb(value)
            return None if None in parts else f"MAP({parts[0]}, {parts[1]})"
    return None


def plain(kind: DataType) -> DataType:
    """The type that an expression has: lengths of CHAR and VARCHAR bind columns, not values."""
    match kind:
        case Text(collation=None):
            return STRING
        case Array(element):
            return Array(plain(element))
        case Map(key, value):
            return Map(plain(key), plain(value))
        case _:
            return kind


def is_integer(kind: DataType) -> bool:
    return isinstance(kind, Atom) and kind.name in INTEGERS


def is_floating(kind: DataType) -> bool:
    return kind in (FLOAT, DOUBLE)


def is_number(kind: DataType) -> bool:
    return is_integer(kind) or is_floating(kind) or isinstance(kind, Decimal)


def is_moment(kind: DataType) -> bool:
    return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def comparable(kind: DataType) -> bool:
    """Whether values can be compared, grouped and sorted, and both engines do it alike."""
    return (
        kind == STRING
        or is_number(kind)
        or is_moment(kind)
        or kind in (BOOLEAN, BINARY, VOID)
        or isinstance(kind, Time)
    )


def as_decimal(kind: DataType) -> Decimal:
    """The decimal that holds all values of an integer type."""
    if isinstance(kind, Decimal):
        return kind
    assert isinstance(kind, Atom)
    return Decimal(_DIGITS_OF[kind.name], 0)


def bounded(precision: int, scale: int) -> Decimal | None:
    """A decimal that fits into 38 digits; Spark would give up digits of others, so there is none for them."""
    return Decimal(precision, scale) if precision <= DIGITS else None


def wider_decimal(one: Decimal, two: Decimal) -> Decimal | None:
    scale = max(one.scale, two.scale)
    return bounded(max(one.precision - one.scale, two.precision - two.scale) + scale, scale)


def common(one: DataType, two: DataType) -> DataType | None:
    """The type of values of two types that meet in CASE, COALESCE, UNION, IN or a comparison; None if none is."""
    if one == two or two == VOID:
        return one
    if one == VOID:
        return two
    if is_number(one) and is_number(two):
        return _common_number(one, two)
    if is_moment(one) and is_moment(two):
        return TIMESTAMP if TIMESTAMP in (one, two) else TIMESTAMP_NTZ
    if isinstance(one, Array) and isinstance(two, Array):
        inner = common(one.element, two.element)
        return None if inner is None else Array(inner)
    return None


def _common_number(one: DataType, two: DataType) -> DataType | None:
    if is_integer(one) and is_integer(two):
        assert isinstance(one, Atom)
        assert isinstance(two, Atom)
        return max(one, two, key=lambda kind: INTEGERS.index(kind.name))
    if is_floating(one) or is_floating(two):
        return DOUBLE
    return wider_decimal(as_decimal(one), as_decimal(two))


def compared(one: DataType, two: DataType) -> DataType | None:
    """As `common`; a STRING that is compared with another type is read as that type."""
    for text, other in ((one, two), (two, one)):
        if text == STRING and other != STRING:
            if is_integer(other):
                return BIGINT
            if is_number(other):
                return DOUBLE
            if is_moment(other) or other == BOOLEAN:
                return other
    return common(one, two)


def sum_of(one: Decimal, two: Decimal) -> Decimal | None:
    scale = max(one.scale, two.scale)
    return bounded(max(one.precision - one.scale, two.precision - two.scale) + scale + 1, scale)


def product_of(one: Decimal, two: Decimal) -> Decimal | None:
    return bounded(one.precision + two.precision + 1, one.scale + two.scale)


def quotient_of(one: Decimal, two: Decimal) -> Decimal | None:
    scale = max(6, one.scale + two.precision + 1)
    return bounded(one.precision - one.scale + two.scale + scale, scale)


def remainder_of(one: Decimal, two: Decimal) -> Decimal | None:
    scale = max(one.scale, two.scale)
    return bounded(min(one.precision - one.scale, two.precision - two.scale) + scale, scale)
