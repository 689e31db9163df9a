"""Arrow arrays as numpy sees them: views of their buffers, and copies of single places only where asked.

Nothing here reads more of an array than it was asked for, so that a look into a mapped run touches few pages.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from evert.schema.digest import whole

_SIGNED = {8: "<i1", 16: "<i2", 32: "<i4", 64: "<i8"}
_FLOATING = {16: "<f2", 32: "<f4", 64: "<f8"}


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The column as one plain array, copied only where it is in several chunks or a dictionary."""
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in _chunks(column)], column.type.value_type
        )
    return whole(column) if isinstance(column, pa.ChunkedArray) else column


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def late(array: pa.Array, at: np.ndarray) -> pa.Array:
    """The values at these places; text is copied only when it is asked for, by `one_chunk` or `decoded`.

    Until then it is a dictionary: the array as it is, and the places in it. What is filtered out is never copied.
    """
    if is_text(array.type):
        return pa.DictionaryArray.from_arrays(pa.array(at, pa.int64()), array, safe=False)
    return take(array, at)


def decoded(table: pa.Table) -> pa.Table:
    """The table without late columns."""
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            kind = pa.field(field.name, field.type.value_type)
            table = table.set_column(place, kind, one_chunk(table.column(place)))
    return table


def arrays_of(table: pa.Table, names: Sequence[str]) -> list[pa.Array]:
    return [one_chunk(table.column(name)) for name in names]


def take(array: pa.Array, at: np.ndarray) -> pa.Array:
    """The values at these places; the places are trusted."""
    return array.take(pa.array(at)) if len(at) else array.slice(0, 0)


def take_rows(table: pa.Table, at: np.ndarray) -> pa.Table:
    """The rows at these places, each column in one chunk; the schema stays."""
    taken = [take(whole(column), at) for column in table.columns]
    return pa.Table.from_arrays(taken, schema=table.schema)


def chosen(table: pa.Table, which: np.ndarray) -> pa.Table:
    """The rows that are marked; the table itself if all are."""
    return table if which.all() else take_rows(table, np.flatnonzero(which))


def numbers(array: pa.Array) -> np.ndarray:
    """A view of numbers, dates and times as signed integers or floats of their width; NULL is anything."""
    width = array.type.bit_width
    dtype = (_FLOATING if pa.types.is_floating(array.type) else _SIGNED)[width]
    if not len(array):
        return np.empty(0, dtype)
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * width // 8)


def words(array: pa.Array) -> np.ndarray:
    """A view of wide values (decimals, intervals) as rows of 64-bit words, the lowest first."""
    width = array.type.bit_width // 64
    if not len(array):
        return np.empty((0, width), "<i8")
    start = array.offset * width * 8
    flat = np.frombuffer(array.buffers()[1], "<i8", count=width * len(array), offset=start)
    return flat.reshape(len(array), width)


def bits(buffer: pa.Buffer, at: np.ndarray) -> np.ndarray:
    """The bits of a bitmap at these places, as booleans."""
    packed = np.frombuffer(buffer, np.uint8)
    found: np.ndarray = (packed[at >> 3] >> (at & 7).astype(np.uint8)) & np.uint8(1)
    return found.view(np.bool_)


def valid_at(array: pa.Array, at: np.ndarray) -> np.ndarray | None:
    """Which of these places are not NULL; None if the array has no NULL that it knows of."""
    if pa.types.is_null(array.type):
        return np.zeros(len(at), np.bool_)
    bitmap = array.buffers()[0]
    return None if bitmap is None or not len(at) else bits(bitmap, at + array.offset)


def offsets(array: pa.Array) -> np.ndarray:
    """Where each string, binary, list or map starts in the values below it, and where the last one ends."""
    kind, count = array.type, len(array)
    if pa.types.is_fixed_size_list(kind):
        return (array.offset + np.arange(count + 1)) * kind.list_size
    if not count:
        return np.zeros(1, "<i4")
    large = pa.types.is_large_list(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
    dtype = np.dtype("<i8" if large else "<i4")
    return np.frombuffer(array.buffers()[1], dtype, count=count + 1, offset=array.offset * dtype.itemsize)


def is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
    )


def is_listed(kind: pa.DataType) -> bool:
    """Lists and maps: values with offsets into an array of items or entries."""
    types = pa.types
    return bool(
        types.is_list(kind)
        or types.is_map(kind)
        or types.is_large_list(kind)
        or types.is_fixed_size_list(kind)
    )
