"""Rows as keys: a 64-bit hash of each row, and whether two rows are equal, as Spark understands equality.

NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, integers are equal whatever their width, decimals by value,
text by its bytes, and lists, structs and maps by their parts (maps by their entries in order). The hash is
the same in every process and on every machine. It only narrows a search: whoever finds equal hashes goes
on to compare the rows with `same_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.digest import valid
from evert.trace.arrays import bits as bits_at
from evert.trace.arrays import is_listed, is_text, numbers, offsets, one_chunk, take, valid_at, words
from evert.trace.decimals import by_value
from evert.trace.mixing import NULL, STEP, folded, mixed, text_codes

TEXT_BYTES = 64 << 20


def hash_rows(columns: Sequence[pa.Array], count: int, bits: int = 64) -> np.ndarray:
    """The hash of each of `count` rows, as uint64; with `bits` below 64 only that many low bits are left.

    >>> rows = [pa.array([1, None, 1]), pa.array(["a", "b", "a"])]
    >>> first, second, third = hash_rows(rows, 3).tolist()
    >>> first == third, first == second
    (True, False)
    """
    found = _combined([one_chunk(column) for column in columns], count)
    if bits < 64:
        found &= np.uint64((1 << bits) - 1)
    return found


def same_rows(
    left: Sequence[pa.Array],
    left_at: np.ndarray,
    right: Sequence[pa.Array],
    right_at: np.ndarray,
    *,
    exact: bool = False,
) -> np.ndarray:
    """Pair by pair: does row `left_at[i]` of the left equal row `right_at[i]` of the right?

    `exact` tells -0.0 from 0.0. Only the rows at these places are read.
    """
    equal = np.ones(len(left_at), np.bool_)
    for one, other in zip(left, right, strict=True):
        if len(equal):
            equal &= _same(one_chunk(one), left_at, one_chunk(other), right_at, exact)
    return equal


def _combined(columns: Sequence[pa.Array], count: int) -> np.ndarray:
    found = np.zeros(count, np.uint64)
    for column in columns:
        found += STEP
        found += _codes(column)
        mixed(found)
    return found


def _codes(array: pa.Array) -> np.ndarray:
    """A number for each value, the same for equal values; not yet mixed where the values are numbers."""
    if pa.types.is_null(array.type):
        return np.full(len(array), NULL)
    codes = _value_codes(array)
    present = valid(array)
    return codes if present is None else np.where(present, codes, NULL)


def _value_codes(array: pa.Array) -> np.ndarray:
    kind, types = array.type, pa.types
    if types.is_boolean(kind):
        return _booleans(array, np.arange(len(array))).astype(np.uint64)
    if is_text(kind):
        return text_codes(array)
    if types.is_floating(kind):
        with np.errstate(invalid="ignore"):
            values = numbers(array).astype("<f8") + 0.0
        values[np.isnan(values)] = np.nan
        return values.view(np.uint64)
    if types.is_decimal(kind):
        return _decimal_codes(array)
    if types.is_struct(kind):
        return _combined([array.field(place) for place in range(kind.num_fields)], len(array))
    if is_listed(kind):
        places = offsets(array)
        first, last = int(places[0]), int(places[-1])
        return folded(_codes(array.values.slice(first, last - first)), np.diff(places))
    if types.is_fixed_size_binary(kind):
        return text_codes(array.cast(pa.binary()))
    if kind.bit_width > 64:
        raw = words(array)
        return folded(raw.reshape(-1).view(np.uint64), np.full(len(array), raw.shape[1]))
    return numbers(array).astype("<i8", copy=False).view(np.uint64)


def _decimal_codes(array: pa.Array) -> np.ndarray:
    """A whole number that fits 64 bits hashes like the integer."""
    value, scale = by_value(array)
    low = value[:, 0]
    codes = low.astype(np.uint64)
    odd = np.flatnonzero((scale > 0) | (value[:, 1:] != (low >> 63)[:, None]).any(axis=1))
    if len(odd):
        parts = np.concatenate([_widened(value[odd], 4), scale[odd, None]], axis=1).view(np.uint64)
        codes[odd] = folded(parts.reshape(-1), np.full(len(odd), parts.shape[1]))
    return codes


def _booleans(array: pa.Array, at: np.ndarray) -> np.ndarray:
    return bits_at(array.buffers()[1], at + array.offset) if len(at) else np.empty(0, np.bool_)


def _same(
    left: pa.Array, left_at: np.ndarray, right: pa.Array, right_at: np.ndarray, exact: bool
) -> np.ndarray:
    has_left, has_right = valid_at(left, left_at), valid_at(right, right_at)
    if has_left is None and has_right is None:
        return _same_values(left, left_at, right, right_at, exact)
    everywhere = np.ones(len(left_at), np.bool_)
    has_left = everywhere if has_left is None else has_left
    has_right = everywhere if has_right is None else has_right
    equal: np.ndarray = has_left == has_right
    both = np.flatnonzero(has_left & has_right)
    if len(both):
        equal[both] = _same_values(left, left_at[both], right, right_at[both], exact)
    return equal


def _same_values(
    left: pa.Array, left_at: np.ndarray, right: pa.Array, right_at: np.ndarray, exact: bool
) -> np.ndarray:
    kind, other, types = left.type, right.type, pa.types
    if types.is_boolean(kind):
        return _equal(_booleans(left, left_at), _booleans(right, right_at))
    if is_text(kind):
        return _same_texts(left, left_at, right, right_at)
    if types.is_fixed_size_binary(kind):
        return _compared(take(left, left_at), take(right, right_at))
    if types.is_floating(kind):
        return _same_floats(numbers(left)[left_at], numbers(right)[right_at], exact)
    if types.is_decimal(kind):
        if (kind.scale, kind.bit_width) == (other.scale, other.bit_width):
            return _all_equal(words(left)[left_at], words(right)[right_at])
        return _same_decimals(take(left, left_at), take(right, right_at))
    if types.is_struct(kind):
        fields = range(kind.num_fields)
        return same_rows(
            [left.field(place) for place in fields],
            left_at,
            [right.field(place) for place in range(other.num_fields)],
            right_at,
            exact=exact,
        )
    if is_listed(kind):
        return _same_lists(left, left_at, right, right_at, exact)
    if kind.bit_width > 64:
        return _all_equal(words(left)[left_at], words(right)[right_at])
    return _equal(numbers(left)[left_at], numbers(right)[right_at])


def _equal(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    equal: np.ndarray = left == right
    return equal


def _all_equal(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.logical_and.reduce(left == right, axis=1)


def _same_texts(left: pa.Array, left_at: np.ndarray, right: pa.Array, right_at: np.ndarray) -> np.ndarray:
    """Equal in length and in bytes; so many pairs at a time that a copy of their bytes fits 32-bit offsets."""
    left_places, right_places = offsets(left), offsets(right)
    lengths = left_places[left_at + 1] - left_places[left_at]
    equal: np.ndarray = lengths == right_places[right_at + 1] - right_places[right_at]
    alike = np.flatnonzero(equal)
    ends = np.cumsum(lengths[alike], dtype="<i8")
    start = 0
    while start < len(alike):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + TEXT_BYTES, "right")))
        part = alike[start:stop]
        equal[part] = _compared(take(left, left_at[part]), take(right, right_at[part]))
        start = stop
    return equal


def _compared(left: pa.Array, right: pa.Array) -> np.ndarray:
    if left.type != right.type:
        left, right = left.cast(pa.large_binary()), right.cast(pa.large_binary())
    return np.asarray(pc.equal(left, right).to_numpy(zero_copy_only=False), np.bool_)


def _same_floats(left: np.ndarray, right: np.ndarray, exact: bool) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        equal: np.ndarray = left == right
    if exact:
        equal &= np.signbit(left) == np.signbit(right)
    equal |= np.isnan(left) & np.isnan(right)
    return equal


def _same_decimals(left: pa.Array, right: pa.Array) -> np.ndarray:
    (value, scale), (other, places) = by_value(left), by_value(right)
    width = max(value.shape[1], other.shape[1])
    equal = _all_equal(_widened(value, width), _widened(other, width))
    equal &= scale == places
    return equal


def _widened(value: np.ndarray, width: int) -> np.ndarray:
    sign = np.repeat(value[:, -1:] >> 63, width - value.shape[1], axis=1)
    return np.concatenate([value, sign], axis=1)


def _same_lists(
    left: pa.Array, left_at: np.ndarray, right: pa.Array, right_at: np.ndarray, exact: bool
) -> np.ndarray:
    """Equal in length, and no pair of items that differs."""
    left_places, right_places = offsets(left), offsets(right)
    left_first, right_first = left_places[left_at].astype("<i8"), right_places[right_at].astype("<i8")
    lengths = left_places[left_at + 1] - left_first
    equal: np.ndarray = lengths == right_places[right_at + 1] - right_first
    alike = np.flatnonzero(equal & (lengths > 0))
    if not len(alike):
        return equal
    counts = lengths[alike]
    owner = np.repeat(alike, counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    items = _same(left.values, left_first[owner] + number, right.values, right_first[owner] + number, exact)
    equal[owner[~items]] = False
    return equal
