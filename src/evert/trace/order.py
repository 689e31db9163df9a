"""Spark's order of values, and rows arranged by it.

NaN is the greatest number, -0.0 equals 0.0, text is compared by its bytes, structs and lists part by part with NULL
before everything. Maps, which Spark does not order, are ordered as lists of their entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.digest import floats, integers, valid
from evert.trace.arrays import is_listed, is_text, offsets, one_chunk, take

_NOT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


class By(NamedTuple):
    """A column that rows are ordered by."""

    name: str
    descending: bool = False
    nulls_first: bool = True


def arranged(
    segments: np.ndarray, columns: Mapping[str, pa.Array], order: Sequence[By]
) -> tuple[np.ndarray, np.ndarray]:
    """The rows sorted by segment and within it by the order, and where each group of equal rows starts.

    What the order leaves open is decided by all columns from first to last, ascending; then -0.0 comes before
    0.0. So only rows that are exactly the same are equal, and the result depends on the content alone.

    >>> rows = {"c0": pa.array([3, None, 1, 3]), "c1": pa.array(["b", "a", "a", "a"])}
    >>> places, starts = arranged(np.zeros(4), rows, [By("c0", descending=True, nulls_first=False)])
    >>> places.tolist(), starts.tolist()
    ([3, 0, 2, 1], [0, 1, 2, 3])
    """
    places = np.argsort(segments)
    starts = _steps([segments[places]])
    for by, exact in _decisive(columns, order):
        tied = np.flatnonzero(~(starts & np.append(starts[1:], True)))
        if not len(tied):
            break
        rows = places[tied]
        values = one_chunk(take(columns[by.name], rows))
        parts = [np.cumsum(starts[tied]), *_parts(values, by, exact)]
        inner = sorted_by(parts)
        places[tied], starts[tied] = rows[inner], _steps([part[inner] for part in parts])
    return places, np.flatnonzero(starts)


def sorted_by(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The places of the rows in the order by the first part, then the second and so on; equal ones in any order.

    Where all parts together fit 64 bits they are sorted as one number, which is several times as fast.
    """
    packed, used = np.zeros(len(parts[0]), np.uint64), 0
    for part in parts:
        least, most = (int(part.min()), int(part.max())) if len(part) else (0, 0)
        width = (most - least).bit_length()
        used += width
        if used > 64:
            return np.lexsort(parts[::-1])
        above = part.astype(np.uint64) - np.uint64(least % 2**64)
        packed = above if width == 64 else (packed << np.uint64(width)) | above
    return np.argsort(packed)


def ranks(values: pa.Array, by: By) -> np.ndarray:
    """An int64 for each value: the earlier in the order has the lesser one, equal values have the same.

    >>> ranks(pa.array([3, None, 5]), By("", descending=True, nulls_first=False)).tolist()
    [2, 3, 1]
    """
    parts = _parts(values, by, exact=False)
    return parts[0] if len(parts) == 1 else _ranked(parts, len(values))


def codes(values: pa.Array, *, exact: bool = False) -> np.ndarray:
    """An int64 for each value: the lesser value has the lesser one, equal values have the same; any for NULL.

    `exact` tells -0.0 from 0.0, at any depth: -0.0 is the lesser.
    """
    kind = values.type
    types = pa.types
    if types.is_null(kind) or values.null_count == len(values):
        return np.zeros(len(values), np.int64)
    if types.is_dictionary(kind):
        if len(values.dictionary) > len(values):
            return codes(one_chunk(values), exact=exact)
        return codes(values.dictionary, exact=exact)[integers(values.indices)]
    if types.is_floating(kind):
        plain = floats(values) if exact else floats(values) + 0.0
        raw = np.ascontiguousarray(plain).view(np.int64)
        return raw ^ ((raw >> np.int64(63)) & _NOT_SIGN)
    if types.is_struct(kind):
        parts = [part for child in values.flatten() for part in _parts(child, By(""), exact)]
        return _ranked(parts, len(values))
    if is_listed(kind):
        return _list_codes(values, exact)
    if types.is_decimal(kind) or is_text(kind):
        return _dictionary_codes(values)
    return integers(values)


def total_codes(values: pa.Array) -> np.ndarray:
    """Codes that are equal only for values that are exactly the same; else they are in Spark's order."""
    found = codes(values, exact=True)
    if pa.types.is_nested(values.type) and holds_floats(values.type):
        return _ranked([codes(values), found], len(values))
    return found


def holds_floats(kind: pa.DataType) -> bool:
    """Whether values of this type have floating point numbers in them."""
    if pa.types.is_nested(kind):
        return any(holds_floats(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def _decisive(columns: Mapping[str, pa.Array], order: Sequence[By]) -> Iterator[tuple[By, bool]]:
    """What decides between two rows, one after the other: a column, and whether it is compared exactly."""
    for by in order:
        yield by, False
    named = {by.name for by in order}
    for name in columns:
        if name not in named:
            yield By(name), False
    for name, column in columns.items():
        if holds_floats(column.type):
            yield By(name), True


def _parts(values: pa.Array, by: By, exact: bool) -> list[np.ndarray]:
    """The values as numbers to sort by, the most important first."""
    found = codes(values, exact=exact)
    if by.descending:
        found = ~found
    present = valid(values)
    if present is None:
        return [found]
    return [(present if by.nulls_first else ~present).astype(np.int64), np.where(present, found, 0)]


def _steps(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Which sorted rows are not equal to the one before."""
    steps = np.ones(len(parts[0]), np.bool_)
    steps[1:] = False
    for part in parts:
        steps[1:] |= part[1:] != part[:-1]
    return steps


def _ranked(parts: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The rank of each row in the order by the first part, then the second and so on; equal rows share one."""
    found = np.zeros(count, np.int64)
    if parts:
        order = sorted_by(parts)
        found[order] = np.cumsum(_steps([part[order] for part in parts]))
    return found


def _dictionary_codes(values: pa.Array) -> np.ndarray:
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if not len(distinct):
        return np.zeros(len(values), np.int64)
    rank = np.empty(len(distinct), np.int64)
    rank[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    return np.asarray(rank[pc.fill_null(encoded.indices, 0).to_numpy()])


def _list_codes(values: pa.Array, exact: bool) -> np.ndarray:
    """Item by item: as long as two lists are equal, the next item decides, and one that has ended is less."""
    places = offsets(values).astype(np.int64)
    begins, lengths = places[:-1] - places[0], np.diff(places)
    items = values.values.slice(places[0], places[-1] - places[0])
    item = _ranked(_parts(items, By(""), exact), len(items)) + 1
    found = np.zeros(len(values), np.int64)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        step = np.zeros(len(values), np.int64)
        step[longer] = item[begins[longer] + place]
        found = _ranked([found, step], len(values))
    return found
