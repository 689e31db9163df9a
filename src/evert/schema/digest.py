"""A fingerprint of the content of a table, by which a repeated request is recognised.

Equal content has an equal digest whatever the chunks, the order of the columns, the columns that are all NULL
and the width of the numbers: a request that is sent again after its topic's schema was widened still matches.
Not guaranteed: a FLOAT column that became DOUBLE in between matches only for values that FLOAT holds exactly.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.fit_arrow import list_lengths, map_parts

SIZE = 16

_WIDTHS = {8: "<i1", 16: "<i2", 32: "<i4", 64: "<i8"}
_I8 = np.dtype("<i8")


def digest(table: pa.Table) -> bytes:
    """16 bytes that tell this content from any other; rows count in their order."""
    state = blake2b(digest_size=SIZE)
    rows = table.num_rows
    state.update(rows.to_bytes(8, "little"))
    names = table.schema.names
    for place in sorted(range(len(names)), key=names.__getitem__):
        data = table.column(place)
        if data.null_count < rows:
            _feed(state, names[place], whole(data))
    return state.digest()


def whole(data: pa.ChunkedArray) -> pa.Array:
    """The column as one array, copied only where it is in several chunks."""
    if data.num_chunks == 1:
        return data.chunk(0)
    combined = data.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def valid(array: pa.Array) -> np.ndarray | None:
    """Which values are not NULL; None if all are."""
    if not array.null_count:
        return None
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def integers(array: pa.Array) -> np.ndarray:
    """Numbers, dates, times and booleans as 64-bit integers; NULL is 0. The result may be read-only."""
    kind, count = array.type, len(array)
    if pa.types.is_boolean(kind):
        bits = np.frombuffer(array.buffers()[1], np.uint8)
        numbers = np.unpackbits(bits, bitorder="little")[array.offset : array.offset + count].astype(_I8)
    else:
        width = kind.bit_width
        start = array.offset * width // 8
        raw = np.frombuffer(array.buffers()[1], _WIDTHS[width], count=count, offset=start)
        numbers = raw if width == 64 else raw.astype(_I8)
    present = valid(array)
    return numbers if present is None else np.where(present, numbers, 0)


def floats(array: pa.Array) -> np.ndarray:
    """Floating point numbers in 64 bits with one NaN; NULL is 0."""
    single = array.type == pa.float32()
    width = 4 if single else 8
    raw = np.frombuffer(
        array.buffers()[1], "<f4" if single else "<f8", count=len(array), offset=array.offset * width
    )
    numbers = raw.astype("<f8") if single else raw
    present = valid(array)
    if present is not None:
        numbers = np.where(present, numbers, 0.0)
    strange = np.isnan(numbers)
    return np.where(strange, np.nan, numbers) if strange.any() else numbers


def decimals(array: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Decimals by value: low 64 bits, high 64 bits and scale, with no zeros at the end of the fraction.

    >>> from decimal import Decimal
    >>> low, high, scale = decimals(pa.array([Decimal("1.50"), Decimal("-2.00")]))
    >>> low.tolist(), high.tolist(), scale.tolist()
    ([15, -2], [0, -1], [1, 0])
    """
    words = np.frombuffer(array.buffers()[1], "<i8", count=2 * len(array), offset=16 * array.offset)
    low, high = words[0::2].copy(), words[1::2].copy()
    present = valid(array)
    if present is not None:
        low[~present] = 0
        high[~present] = 0
    scale = np.full(len(array), array.type.scale, "<i8")
    wide = high != low >> 63
    for _ in range(array.type.scale):
        ends = (scale > 0) & (low % 10 == 0) & ~wide
        if not ends.any():
            break
        low[ends] //= 10
        scale[ends] -= 1
    for place in np.flatnonzero(wide):
        number, digits = (int(high[place]) << 64) | (int(low[place]) & (2**64 - 1)), int(scale[place])
        while digits and number % 10 == 0:
            number, digits = number // 10, digits - 1
        low[place] = np.uint64(number & (2**64 - 1)).astype("<i8")
        high[place], scale[place] = number >> 64, digits
    narrow = ~wide
    high[narrow] = low[narrow] >> 63
    return low, high, scale


def texts(array: pa.Array) -> tuple[np.ndarray, memoryview]:
    """Strings or binaries as offsets that start at 0, and their bytes one after the other; NULL is empty."""
    if array.null_count:
        array = pc.fill_null(array, "" if pa.types.is_string(array.type) else b"")
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, "<i4", count=len(array) + 1, offset=4 * array.offset)
    start, end = int(offsets[0]), int(offsets[-1])
    content = memoryview(b"") if data is None else memoryview(data)[start:end]
    return offsets - offsets[0] if start else offsets, content


def _feed(state: Any, path: str, array: pa.Array) -> None:
    kind = array.type
    types = pa.types
    present = valid(array)
    if types.is_decimal(kind):
        low, high, scale = decimals(array)
        _head(state, path, b"n", present)
        state.update(low.tobytes())
        if scale.any() or (high != low >> 63).any():
            state.update(b"d" + high.tobytes() + scale.tobytes())
    elif types.is_floating(kind):
        _head(state, path, b"f", present)
        state.update(floats(array).tobytes())
    elif types.is_string(kind) or types.is_binary(kind):
        offsets, content = texts(array)
        _head(state, path, b"s" if types.is_string(kind) else b"y", present)
        state.update(offsets.astype(_I8).tobytes())
        state.update(content)
    elif types.is_struct(kind):
        _head(state, path, b"{", present)
        children = zip((field.name for field in kind), array.flatten(), strict=True)
        for name, child in sorted(children, key=lambda pair: pair[0]):
            if child.null_count < len(child):
                _feed(state, f"{path}\0{name}", child)
    elif types.is_list(kind) or types.is_map(kind):
        _feed_items(state, path, array, present)
    else:
        tag = b"n" if types.is_integer(kind) else b"b" if types.is_boolean(kind) else str(kind).encode()
        _head(state, path, tag, present)
        state.update(integers(array).tobytes())


def _feed_items(state: Any, path: str, array: pa.Array, present: np.ndarray | None) -> None:
    _head(state, path, b"[", present)
    parts: dict[str, pa.Array] = {}
    if pa.types.is_map(array.type):
        lengths, parts["key"], parts["value"] = map_parts(array)
    else:
        lengths, parts[""] = list_lengths(array), array.flatten()
    state.update(lengths.astype(_I8).tobytes())
    for name, items in parts.items():
        if items.null_count < len(items):
            _feed(state, f"{path}\0{name}", items)


def _head(state: Any, path: str, tag: bytes, present: np.ndarray | None) -> None:
    name = path.encode()
    mask = b"" if present is None else np.packbits(present, bitorder="little").tobytes()
    state.update(b"%d:%b%d:%b%d:%b" % (len(name), name, len(tag), tag, len(mask), mask))
