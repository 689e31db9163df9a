"""The last rows of a key up to a place in the order of a trace.

    run, sorted     1  4  4  7  9              the last up to 6:
    run, newer      4- 6 12                                       6

The order is that of one column of numbers or times without NULLs. Each search is a binary one in the rows of the
hash, for all needles at once, so the rows in between are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evert.trace.arrays import numbers, one_chunk
from evert.trace.between import bisected
from evert.trace.consolidate import weights_of
from evert.trace.keys import same_rows
from evert.trace.runs import Run
from evert.trace.trace import Trace

NEEDLES = 1 << 18
Found = tuple[np.ndarray, Run, np.ndarray]
"""Places of needles, a run, and places of its rows."""


def last_upto(
    trace: Trace, hashes: np.ndarray, keys: Sequence[pa.Array], bound: np.ndarray
) -> Iterator[Found]:
    """All rows of a needle's key at the last place up to its bound where their weights are not 0 in sum.

    Needles may repeat. Rows that were taken back come with what takes them back, run by run.
    """
    plain = [one_chunk(key) for key in keys]
    for start in range(0, len(hashes), NEEDLES):
        part = slice(start, start + NEEDLES)
        some = [key.slice(start, NEEDLES) for key in plain]
        cursors = [_Cursor.at(trace, run, hashes[part], some, bound[part]) for run in trace.runs]
        for needles, run, rows in _last(cursors, len(hashes[part])):
            yield needles + start, run, rows


def _last(cursors: Sequence[_Cursor], count: int) -> Iterator[Found]:
    left = np.arange(count)
    while len(left):
        best, more = np.full(count, np.iinfo(np.int64).min), np.zeros(count, np.bool_)
        for cursor in cursors:
            here = cursor.on_own_rows(left)
            best[here], more[here] = np.maximum(best[here], cursor.values[cursor.place[here]]), True
        left = left[more[left]]
        sums = np.zeros(count, np.int64)
        found = []
        for cursor in cursors:
            needles, rows = cursor.taken(left, best)
            np.add.at(sums, needles, weights_of(cursor.run.table)[rows])
            found.append((needles, cursor.run, rows))
        for needles, run, rows in found:
            there = sums[needles] != 0
            if there.any():
                yield needles[there], run, rows[there]
        left = left[sums[left] == 0]


@dataclass
class _Cursor:
    """Where each needle stands in a run: at a row of its hash, or before the first, with nothing left."""

    run: Run
    values: np.ndarray
    stored: Sequence[pa.Array]
    keys: Sequence[pa.Array]
    first: np.ndarray
    place: np.ndarray

    @classmethod
    def at(
        cls, trace: Trace, run: Run, hashes: np.ndarray, keys: Sequence[pa.Array], bound: np.ndarray
    ) -> _Cursor:
        values = _values(trace, run)
        low, high = (np.searchsorted(run.hashes, hashes, side) for side in ("left", "right"))
        place = bisected(low, high, lambda at, which: values[at] <= bound[which]) - 1
        return cls(run, values, [run.column(name) for name in trace.layout.key], keys, low, place)

    def has_rows(self, needles: np.ndarray) -> np.ndarray:
        return np.asarray(self.place[needles] >= self.first[needles])

    def on_own_rows(self, needles: np.ndarray) -> np.ndarray:
        """Step down over rows that have the hash alone; the needles that have rows left."""
        waiting = needles = needles[self.has_rows(needles)]
        while len(waiting):
            waiting = waiting[~same_rows(self.keys, waiting, self.stored, self.place[waiting])]
            self.place[waiting] -= 1
            waiting = waiting[self.has_rows(waiting)]
        return needles[self.has_rows(needles)]

    def taken(self, needles: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each needle that have its value, and the needle of each; the next row is below them."""
        owners, rows = [needles[:0]], [needles[:0]]
        while len(needles := needles[self.has_rows(needles)]):
            needles = needles[self.values[self.place[needles]] == value[needles]]
            mine = needles[same_rows(self.keys, needles, self.stored, self.place[needles])]
            owners.append(mine)
            rows.append(self.place[mine])
            self.place[needles] -= 1
        return np.concatenate(owners), np.concatenate(rows)


def _values(trace: Trace, run: Run) -> np.ndarray:
    assert trace.layout.order is not None
    return numbers(run.column(trace.layout.order[0].name))
