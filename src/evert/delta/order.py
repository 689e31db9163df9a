"""Spark's order of values, for the least and the greatest value of a group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.digest import floats, integers, valid
from evert.trace.arrays import is_text

_NOT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def extreme(values: pa.Array, starts: np.ndarray, *, greatest: bool) -> pa.Array:
    """The least or greatest value of each group of rows, NULL where a group has none.

    A group goes from its start to the next start. Of 0.0 and -0.0, which Spark takes for equal and of which it
    keeps the one it meets first, -0.0 is the lesser here: so the order of the rows does not matter.
    """
    if not len(starts):
        return values.slice(0, 0)
    ranks = codes(values)
    if greatest:
        ranks = ~ranks
    present = valid(values)
    if present is not None:
        ranks = np.where(present, ranks, _NOT_SIGN)
    best = np.minimum.reduceat(ranks, starts)
    hit = ranks == np.repeat(best, np.diff(np.append(starts, len(ranks))))
    if present is not None:
        hit &= present
    place = np.minimum.reduceat(np.where(hit, np.arange(len(ranks)), len(ranks)), starts)
    return values.take(pa.array(place, mask=place == len(ranks)))


def codes(values: pa.Array) -> np.ndarray:
    """An int64 for each value: the lesser value has the lesser one, equal values have the same; any for NULL."""
    kind = values.type
    types = pa.types
    if types.is_null(kind):
        return np.zeros(len(values), np.int64)
    if types.is_floating(kind):
        raw = np.ascontiguousarray(floats(values)).view(np.int64)
        return raw ^ ((raw >> np.int64(63)) & _NOT_SIGN)
    if types.is_struct(kind):
        parts = [part for child in values.flatten() for part in _nullable(child)]
        return _ranked(parts, len(values))
    if types.is_list(kind) or types.is_large_list(kind):
        return _list_codes(values)
    if types.is_decimal(kind) or is_text(kind):
        return _dictionary_codes(values)
    return integers(values)


def _nullable(values: pa.Array) -> list[np.ndarray]:
    """Inside a struct or an array NULL comes before all values."""
    present = valid(values)
    found = codes(values)
    return [found] if present is None else [present.astype(np.int64), np.where(present, found, 0)]


def _ranked(parts: list[np.ndarray], count: int) -> np.ndarray:
    """The rank of each row in the order by the first part, then the second and so on; equal rows share one."""
    if not parts or not count:
        return np.zeros(count, np.int64)
    order = np.lexsort(parts[::-1])
    step = np.zeros(count, bool)
    for part in parts:
        ordered = part[order]
        step[1:] |= ordered[1:] != ordered[:-1]
    found = np.empty(count, np.int64)
    found[order] = np.cumsum(step)
    return found


def _dictionary_codes(values: pa.Array) -> np.ndarray:
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if not len(distinct):
        return np.zeros(len(values), np.int64)
    rank = np.empty(len(distinct), np.int64)
    rank[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    return np.asarray(rank[pc.fill_null(encoded.indices, 0).to_numpy()])


def _list_codes(values: pa.Array) -> np.ndarray:
    """Item by item: as long as two lists are equal, the next item decides, and one that has ended is less."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy().astype(np.int64)
    items = values.flatten()
    ends = np.cumsum(lengths)
    begins = ends - lengths
    item = _ranked(_nullable(items), len(items)) + 1
    found = np.zeros(len(values), np.int64)
    for place in range(int(lengths.max(initial=0))):
        longer = lengths > place
        step = np.zeros(len(values), np.int64)
        step[longer] = item[begins[longer] + place]
        found = _ranked([found, step], len(values))
    return found
