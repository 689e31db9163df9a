"""Equal rows told by a number: which group each row is in, without sorting.

    c0 │ c1             codes          packed     number of its group
    ───┼────           ───────         ──────
     x │ 7              0 │ 0             0        0
     y │ 7      ──>     1 │ 0     ──>     2   ──>  1
     x │ 9              0 │ 1             1        2
     y │ 7              1 │ 0             2        1

A column becomes codes: what a value is above the least one if they are close together, or in even steps as the
begins of windows are, else the place of the value among those that differ, which Arrow finds with a hash table of
its own. Codes of several columns are digits of one number. So nothing is compared twice and no hash of ours is
computed for rows of which few will be left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pyarrow as pa

from evert.schema.digest import floats, integers, valid
from evert.trace.arrays import is_text, one_chunk
from evert.trace.grouping import grouped
from evert.trace.keys import hash_rows

DENSE = 16
"""Codes are counted in a table, not in a hash table, if it has at most so many places for each row."""
SAMPLE = 64
"""So many numbers are looked at to tell in which steps they may be."""
_MOST = 2**62


@dataclass(frozen=True)
class Groups:
    """The number of each row's group, and a row of each group: the first of it."""

    of_row: np.ndarray
    first: np.ndarray

    @classmethod
    def in_order(cls, starts: np.ndarray, rows: int) -> Groups:
        """Groups of neighbours, each from its start to the next one."""
        return cls(np.repeat(np.arange(len(starts)), np.diff(np.append(starts, rows))), starts)

    def __len__(self) -> int:
        return len(self.first)

    def sums(self, numbers: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """The sum of each group's numbers; `rows` says whose they are if not every row has one."""
        found = np.zeros(len(self.first), np.int64)
        np.add.at(found, self.of_row if rows is None else self.of_row[rows], numbers)
        return found

    def least(self, numbers: np.ndarray, nothing: int) -> np.ndarray:
        """The least of each group's numbers; `nothing`, which is above all of them, where a group has no row."""
        found = np.full(len(self.first), nothing, np.int64)
        np.minimum.at(found, self.of_row, numbers)
        return found

    def first_of(self, rows: np.ndarray, nothing: int) -> np.ndarray:
        """The first of these rows, which are in order, that each group has; `nothing` where it has none."""
        found = np.full(len(self.first), nothing, np.int64)
        found[self.of_row[rows[::-1]]] = rows[::-1]
        return found


def groups_of(columns: Sequence[pa.Array], count: int, *, bits: int = 64) -> Groups:
    """The groups of rows that are exactly equal in these columns: NULL is NULL, NaN is NaN, -0.0 is not 0.0.

    `bits` narrows, in tests, the hash that lists and maps are compared by.

    >>> found = groups_of([pa.array(["x", "y", "x", "y"]), pa.array([7, 7, 9, 7])], 4)
    >>> found.of_row.tolist(), found.first.tolist()
    ([0, 2, 1, 2], [0, 2, 1])
    """
    if not count:
        return Groups(np.zeros(0, np.int64), np.zeros(0, np.int64))
    number, size = _dense(*_together([_codes(column, bits) for column in columns], count))
    first = np.empty(size, np.int64)
    first[number[::-1]] = np.arange(count - 1, -1, -1)
    return Groups(number, first)


_Codes = tuple[np.ndarray, int]
"""A number for each row, and how many there are at most."""


def _together(parts: Sequence[_Codes], count: int) -> _Codes:
    """The codes of several columns as one, the small ones first: a few of their combinations are often all."""
    found, size = np.zeros(count, np.int64), 1
    for codes, different in sorted(parts, key=itemgetter(1)):
        if different == 1:
            continue
        if size * different > DENSE * count:
            found, size = _dense(found, size)
        found = codes if size == 1 else found * different + codes
        size *= different
    return found, size


def _dense(codes: np.ndarray, size: int) -> _Codes:
    """The same with as many codes as there are that differ."""
    if size == 1:
        return codes, size
    if size > DENSE * len(codes):
        return _encoded(pa.array(codes))
    there = np.zeros(size, np.bool_)
    there[codes] = True
    places = np.cumsum(there, dtype=np.int32 if size < 1 << 31 else np.int64)
    return places[codes].astype(np.int64) - 1, int(places[-1])


def _codes(array: pa.Array, bits: int) -> _Codes:
    kind, types = array.type, pa.types
    present = valid(array)
    if types.is_null(kind) or array.null_count == len(array):
        return np.zeros(len(array), np.int64), 1
    if types.is_dictionary(kind):
        if len(array.dictionary) > len(array):  # a column of which few places are asked for
            return _codes(one_chunk(array), bits)
        known, different = _codes(array.dictionary, bits)
        codes = known[integers(array.indices)]
    elif types.is_struct(kind):
        parts = [_codes(child, bits) for child in array.flatten()]
        codes, different = _dense(*_together(parts, len(array)))
    elif types.is_decimal(kind) or is_text(kind) or types.is_fixed_size_binary(kind):
        codes, different = _encoded(array)
    elif types.is_nested(kind) or kind.bit_width > 64:
        codes, different = _compared(array, bits)
    elif types.is_floating(kind):
        codes, different = _counted(np.ascontiguousarray(floats(array)).view(np.int64))
    else:
        codes, different = _counted(integers(array))
    return (codes, different) if present is None else (np.where(present, codes, different), different + 1)


def _counted(numbers: np.ndarray) -> _Codes:
    least = int(numbers.min())
    span = int(numbers.max()) - least + 1
    if span <= DENSE * len(numbers):
        return numbers - least, span
    if span <= _MOST:
        above = numbers - least
        step = int(np.gcd.reduce(above[:SAMPLE]))
        if step > 1 and span // step < DENSE * len(numbers):
            steps = above // step
            if (steps * step == above).all():
                return steps, span // step + 1
    return _encoded(pa.array(numbers))


def _encoded(array: pa.Array) -> _Codes:
    """The places of values among those that differ, in the order in which they come first; any for NULL."""
    encoded = array.dictionary_encode()
    return integers(encoded.indices), max(1, len(encoded.dictionary))


def _compared(array: pa.Array, bits: int) -> _Codes:
    """By hash, and then the values themselves."""
    hashes = hash_rows([array], len(array), bits)
    order, starts = grouped(hashes, [array], exact=True, whole_rows=True, stable=False, bits=bits)
    marks = np.zeros(len(order), np.int64)
    marks[starts] = 1
    codes = np.empty(len(order), np.int64)
    codes[order] = np.cumsum(marks) - 1
    return codes, len(starts)
