"""JSON lines read by Arrow's own reader, many times as fast, where it reads them as `decode.json_lines` does.

Whatever it might read otherwise is left to `decode`, which also knows what to say of lines that are wrong:
types besides those below, two objects in a line or one over several, integers too large for a DOUBLE, minus
zero, NaN, and anything that Arrow refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from evert.schema.schema import Schema
from evert.schema.types import Atom, Column, DataType, Decimal, Text

_LARGEST = 1 << 30
_EXACT = float(1 << 53)
_FIRST_DAY = -719_162
"""0001-01-01 as days since 1970: Arrow knows a year 0, we do not."""
_FIRST_MOMENT = _FIRST_DAY * 86_400 * 1_000_000


class _Unlike(Exception):
    """Arrow might read this otherwise than we do."""


def read(data: bytes, schema: Schema, required: Sequence[str] = ()) -> pa.Table | None:
    """The rows of lines of JSON, as `decode.json_lines` makes them; None if that has to do it."""
    finishers = [_finisher(column.type) for column in schema.columns]
    if not all(finishers) or not 0 < len(data) < _LARGEST or not _line_by_line(data):
        return None
    try:
        found = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(data)),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([(one.name, _asked(one.type)) for one in schema.columns]),
                unexpected_field_behavior="error",
            ),
        )
        if found.num_rows != _lines(data):
            return None
        arrays = []
        for column, finish in zip(schema.columns, finishers, strict=True):
            assert finish is not None
            array = finish(found.column(column.name).combine_chunks())
            _check_nulls(array, column, required)
            arrays.append(array)
    except (pa.ArrowInvalid, _Unlike):
        return None
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def _line_by_line(data: bytes) -> bool:
    """Whether every line begins and ends like an object, so that no object goes over two lines.

    A bracket that ends an object is never followed by one that begins another, but between two rows.
    """
    body = data.removesuffix(b"\n")
    return (
        b"\r" not in data
        and body.startswith(b"{")
        and body.endswith(b"}")
        and body.count(b"\n") == body.count(b"}\n{")
    )


def _lines(data: bytes) -> int:
    return data.removesuffix(b"\n").count(b"\n") + 1


def _check_nulls(array: pa.Array, column: Column, required: Sequence[str]) -> None:
    if array.null_count and (not column.nullable or column.name in required):
        raise _Unlike


def _asked(kind: DataType) -> pa.DataType:
    """What Arrow's reader is asked for: times as text, which its cast is stricter with."""
    return pa.string() if _is_time(kind) else kind.arrow


def _is_time(kind: DataType) -> bool:
    return isinstance(kind, Atom) and kind.name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")


def _finisher(kind: DataType) -> Callable[[pa.Array], pa.Array] | None:
    """What is still to do with a column that Arrow has read; None for types that it reads otherwise."""
    match kind:
        case Atom("DOUBLE"):
            return _double
        case Atom("DATE"):
            return _date
        case Atom("TIMESTAMP"):
            return _timestamp
        case Atom("TIMESTAMP_NTZ"):
            return _timestamp_ntz
        case Atom("BOOLEAN" | "TINYINT" | "SMALLINT" | "INT" | "BIGINT") | Decimal() | Text("STRING"):
            return _valid
        case _:
            return None


def _valid(array: pa.Array) -> pa.Array:
    """Text that is UTF-8, decimals with no more digits than there may be: the reader does not look at either."""
    array.validate(full=True)
    return array


def _double(array: pa.Array) -> pa.Array:
    """Small enough that an integer is exact, and no zero that has lost its sign or got one."""
    ends = pc.min_max(pc.abs(array))
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if low is not None and not (high < _EXACT and (low > 0 or not _minus_zero(array))):
        raise _Unlike
    if pc.any(pc.is_nan(array)).as_py():
        raise _Unlike
    return array


def _minus_zero(array: pa.Array) -> bool:
    zeros = array.filter(pc.equal(array, 0.0))
    return bool(pc.any(pc.less(pc.divide(1.0, zeros), 0.0)).as_py())


def _date(array: pa.Array) -> pa.Array:
    found = array.cast(pa.date32())
    _after(found.cast(pa.int32()), _FIRST_DAY)
    return found


def _timestamp(array: pa.Array) -> pa.Array:
    """With a zone all of them, or without one all of them, which is UTC."""
    try:
        found = array.cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        found = array.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    _after(found.cast(pa.int64()), _FIRST_MOMENT)
    return found


def _timestamp_ntz(array: pa.Array) -> pa.Array:
    found = array.cast(pa.timestamp("us"))
    _after(found.cast(pa.int64()), _FIRST_MOMENT)
    return found


def _after(numbers: pa.Array, first: int) -> None:
    least = pc.min(numbers).as_py()
    if least is not None and least < first:
        raise _Unlike
