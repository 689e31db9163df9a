"""The type of a column that holds what an Arrow type describes: the inverse of the table in `types`."""

from __future__ import annotations

import pyarrow as pa

from evert.errors import BadSchema
from evert.schema.types import (
    MAX_DEPTH,
    MAX_PRECISION,
    Array,
    Atom,
    Column,
    DataType,
    Decimal,
    Interval,
    Map,
    Struct,
    Text,
    Time,
)

_SIMPLE: dict[pa.DataType, DataType] = {
    pa.bool_(): Atom("BOOLEAN"),
    pa.int8(): Atom("TINYINT"),
    pa.uint8(): Atom("SMALLINT"),
    pa.int16(): Atom("SMALLINT"),
    pa.uint16(): Atom("INT"),
    pa.int32(): Atom("INT"),
    pa.uint32(): Atom("BIGINT"),
    pa.int64(): Atom("BIGINT"),
    pa.uint64(): Decimal(20, 0),
    pa.float16(): Atom("FLOAT"),
    pa.float32(): Atom("FLOAT"),
    pa.float64(): Atom("DOUBLE"),
    pa.string(): Text(),
    pa.large_string(): Text(),
    pa.string_view(): Text(),
    pa.binary(): Atom("BINARY"),
    pa.large_binary(): Atom("BINARY"),
    pa.binary_view(): Atom("BINARY"),
    pa.date32(): Atom("DATE"),
    pa.date64(): Atom("DATE"),
    pa.null(): Atom("VOID"),
}


def type_from_arrow(kind: pa.DataType, path: str, level: int = 0) -> DataType:
    """The type for an Arrow type; `path` names the column in the error for one that has none."""
    types = pa.types
    if level > MAX_DEPTH:
        raise BadSchema(
            f"column {path[:80]}: types nest deeper than {MAX_DEPTH} levels", hint="split it into columns"
        )
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if isinstance(kind, pa.BaseExtensionType):
        return type_from_arrow(kind.storage_type, path, level)
    if types.is_dictionary(kind) or types.is_run_end_encoded(kind):
        return type_from_arrow(kind.value_type, path, level)
    if types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        return Atom("BINARY")
    if types.is_timestamp(kind):
        return Atom("TIMESTAMP_NTZ" if kind.tz is None else "TIMESTAMP")
    if types.is_time(kind):
        return Time(6)
    if types.is_duration(kind):
        return Interval()
    if types.is_decimal(kind):
        if kind.precision > MAX_PRECISION or not 0 <= kind.scale <= kind.precision:
            _refuse(kind, path, f"cast it to at most {MAX_PRECISION} digits with a scale of zero or more")
        return Decimal(kind.precision, kind.scale)
    if types.is_map(kind):
        return Map(
            type_from_arrow(kind.key_type, path + ".key", level + 1),
            type_from_arrow(kind.item_type, path + ".value", level + 1),
        )
    if types.is_struct(kind):
        fields = [
            Column(one.name, type_from_arrow(one.type, f"{path}.{one.name}", level + 1), one.nullable)
            for one in kind
        ]
        if not fields:
            _refuse(kind, path, "a STRUCT needs at least one field; Parquet cannot hold an empty one")
        return Struct(tuple(fields))
    if hasattr(kind, "value_type"):
        return Array(type_from_arrow(kind.value_type, path + ".element", level + 1))
    return _refuse(kind, path, "cast it to another type first")


def _refuse(kind: pa.DataType, path: str, way_out: str) -> DataType:
    raise BadSchema(
        f"column {path}: Arrow {kind} has no place in a topic", hint=way_out, column=path, type=str(kind)
    )
