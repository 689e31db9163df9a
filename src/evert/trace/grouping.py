"""Equal rows brought together: sort by hash, then compare the rows themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from evert.trace.arrays import take
from evert.trace.keys import hash_rows, same_rows

SAMPLE = 2048
"""How many rows are looked at, in each of a few places, to tell whether it pays to look for equal ones."""
_PLACES = 4
_FEW = 16


def grouped(
    hashes: np.ndarray,
    columns: Sequence[pa.Array],
    *,
    exact: bool,
    whole_rows: bool,
    stable: bool,
    bits: int,
    needed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """An order of the rows in which equal rows are neighbours, sorted by hash, and where each group starts.

    Equal means the same hash and `same_rows` over the columns. `whole_rows` says that the hash covers all
    of the columns; where it does not, rows that share a hash are sorted by a hash of all columns. `stable`
    keeps equal rows in the order in which they came.

    With `needed`, a mark for each row, equal rows must be found among those that share a hash with a marked one.
    The others stay apart if a sample of them says that few are equal.
    """
    order = np.argsort(hashes, kind="stable" if stable else None)
    ordered = hashes[order]
    starts = np.ones(len(order), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    if starts.all():
        return order, np.arange(len(order))
    alone = starts.copy()
    alone[:-1] &= starts[1:]
    places = np.flatnonzero(~alone)
    if needed is not None and not whole_rows:
        places = _worth(order, starts, places, needed, columns, exact, bits)
        if not len(places):
            return order, np.flatnonzero(starts)
    rows, segment = order[places], np.cumsum(starts[places]) - 1
    if not whole_rows:
        rows, segment = _by_content(rows, segment, columns, len(order), stable, bits)
    order[places], starts[places] = _separated(rows, segment, columns, exact)
    return order, np.flatnonzero(starts)


def _worth(
    order: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    needed: np.ndarray,
    columns: Sequence[pa.Array],
    exact: bool,
    bits: int,
) -> np.ndarray:
    """Which of the places that share a hash are looked at; the others begin a group each."""
    group = np.cumsum(starts) - 1
    must = np.zeros(int(group[-1]) + 1, np.bool_)
    must[group[needed[order]]] = True
    if not must.all() and _many_equal(order, starts, places, columns, exact, bits):
        return places
    inside = must[group[places]]
    starts[places[~inside]] = True
    return places[inside]


def _many_equal(
    order: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    columns: Sequence[pa.Array],
    exact: bool,
    bits: int,
) -> bool:
    """Whether more than a few of the rows that share a hash are equal, as far as a sample tells."""
    found = same = 0
    for number in range(_PLACES):
        middle = len(places) * (2 * number + 1) // (2 * _PLACES)
        part = places[middle : middle + SAMPLE]
        rows = order[part]
        inner, begins = grouped(
            np.cumsum(starts[part]).astype(np.uint64),
            [take(column, rows) for column in columns],
            exact=exact,
            whole_rows=False,
            stable=False,
            bits=bits,
        )
        found += len(inner)
        same += len(inner) - len(begins)
    return _FEW * same > found


def _by_content(
    rows: np.ndarray, segment: np.ndarray, columns: Sequence[pa.Array], count: int, stable: bool, bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cut segments of one hash into segments of one content hash.

    The number of the segment and the upper bits of the content hash share one word, so one sort is enough.
    """
    if 2 * len(rows) > count:
        codes = hash_rows(columns, count, bits)[rows]
    else:
        codes = hash_rows([take(column, rows) for column in columns], len(rows), bits)
    if bits < 64:
        codes <<= np.uint64(64 - bits)
    room = int(segment[-1] + 1).bit_length()
    mark = (segment.astype(np.uint64) << np.uint64(64 - room)) | (codes >> np.uint64(room))
    order = np.argsort(mark, kind="stable" if stable else None)
    ordered = mark[order]
    starts = np.ones(len(order), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=starts[1:])
    return rows[order], np.cumsum(starts) - 1


def _separated(
    rows: np.ndarray, segment: np.ndarray, columns: Sequence[pa.Array], exact: bool
) -> tuple[np.ndarray, np.ndarray]:
    """The rows with the equal ones of each segment together, and a mark where a group starts."""
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = segment[1:] != segment[:-1]
    inner = np.flatnonzero(~starts)
    differ = ~same_rows(columns, rows[inner - 1], columns, rows[inner], exact=exact)
    if not differ.any():
        return rows, starts
    collided = np.zeros(int(segment[-1]) + 1, np.bool_)
    collided[segment[inner[differ]]] = True
    places = np.flatnonzero(collided[segment])
    rows[places], starts[places] = _told_apart(rows[places], segment[places], columns, exact)
    return rows, starts


def _told_apart(
    rows: np.ndarray, segment: np.ndarray, columns: Sequence[pa.Array], exact: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Different rows share a hash: in turns, what equals the first row of its segment is a group.

    There are as many turns as different rows share one hash, which is one or two unless the hash is
    narrowed by a test.
    """
    turn = np.zeros(len(rows), np.int64)
    left = np.arange(len(rows))
    number = 0
    while len(left):
        inside = segment[left]
        first = np.ones(len(left), np.bool_)
        first[1:] = inside[1:] != inside[:-1]
        leader = left[np.flatnonzero(first)][np.cumsum(first) - 1]
        equal = same_rows(columns, rows[leader], columns, rows[left], exact=exact)
        turn[left[equal]] = number
        left = left[~equal]
        number += 1
    order = np.lexsort((turn, segment))
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (segment[order][1:] != segment[order][:-1]) | (turn[order][1:] != turn[order][:-1])
    return rows[order], starts
