"""The first or last rows of a key in an ordered trace, without reading those in between.

    run, sorted           3  5  5  8 │ 9 ...           a run's bound: its last row that was read
    run, newer            5- 6  9 11 │ 12 ...
    together              3  5  6  8 │ 9  9  11        beyond the least bound, unread rows may come between

From each run the leading rows of the hash are read. Put together and summed they are the key's rows up to the least
bound; if that is not enough, twice as many are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evert.trace.arrays import arrays_of, one_chunk, take_rows
from evert.trace.between import places_below
from evert.trace.consolidate import WEIGHT, content_of, joined, weights_of, with_weights
from evert.trace.keys import same_rows
from evert.trace.order import arranged
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace


@dataclass(frozen=True)
class Ends:
    """Rows from one end of some groups: those of a group lie together, from the end inwards.

    `group` is the place of a row's needle and ascends. No weight is 0; whether one is below it, which says
    that more was taken out than put in, is for the reader to judge.
    """

    group: np.ndarray
    rows: pa.Table

    @property
    def weights(self) -> np.ndarray:
        return weights_of(self.rows)

    def at(self, places: np.ndarray) -> Ends:
        return Ends(self.group[places], take_rows(self.rows, places))


def ends(
    trace: Trace,
    hashes: np.ndarray,
    keys: Sequence[pa.Array],
    enough: Callable[[Ends], np.ndarray],
    *,
    first: int,
    last: bool = False,
    below: np.ndarray | None = None,
) -> Ends:
    """The first rows of each needle's key, or the `last` ones, as many as are `enough`.

    `enough` gets what is certain so far and names the groups for which that will do; a key that has no more rows
    is done anyway. To begin with, `first` rows are read from each run, then twice as many and so on. More rows
    than are enough may come. `below` has a limit for each needle: of its rows only those come that have a value, as
    in `between`, and a lesser one. Without limits the needles are unique.
    """
    if trace.layout.order is None:
        raise ValueError("this trace has no order, so its rows have no ends")
    plain = [one_chunk(key) for key in keys]
    needles, count = np.arange(len(hashes)), first
    found = [Ends(np.empty(0, np.int64), trace.nothing())]
    while len(needles):
        read = [_leading(trace.layout, run, needles, hashes, plain, count, last, below) for run in trace.runs]
        known = _certain(trace, [part for part in read if len(part.owner)], last)
        done = np.ones(len(hashes), np.bool_)
        for part in read:
            done[part.cut] = False
        done[enough(known)] = True
        found.append(known.at(np.flatnonzero(done[known.group])))
        needles, count = needles[~done[needles]], 2 * count
    group = np.concatenate([part.group for part in found])
    both = Ends(group, joined([part.rows for part in found]))
    return both if len(found) == 2 else both.at(np.argsort(group, kind="stable"))


def rows_under(trace: Trace, hashes: np.ndarray) -> np.ndarray:
    """For each hash, how many rows the runs have."""
    found = np.zeros(len(hashes), np.int64)
    for run in trace.runs:
        low, high = _range(run, hashes)
        found += high - low
    return found


def _range(run: Run, hashes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.searchsorted(run.hashes, hashes, "left"), np.searchsorted(run.hashes, hashes, "right")


@dataclass(frozen=True)
class _Leading:
    """Rows read from one run, the needle of each, and whether it has its key or only its hash.

    `cut` are the needles that have more rows in the run, `edge` the place of the last row read for each.
    """

    rows: pa.Table
    owner: np.ndarray
    own: np.ndarray
    cut: np.ndarray
    edge: np.ndarray


def _leading(
    layout: Layout,
    run: Run,
    needles: np.ndarray,
    hashes: np.ndarray,
    keys: Sequence[pa.Array],
    count: int,
    last: bool,
    below: np.ndarray | None,
) -> _Leading:
    low, high = _range(run, hashes[needles])
    if below is not None:
        low, high = places_below(layout, run, low, high, below[needles])
    taken = np.minimum(high - low, count)
    stops = np.cumsum(taken)
    owner = np.repeat(needles, taken)
    begin = high - taken if last else low
    rows = np.repeat(begin - stops + taken, taken) + np.arange(len(owner))
    own = same_rows(keys, owner, [run.column(name) for name in layout.key], rows)
    more = np.flatnonzero(taken < high - low)
    edge = (stops - taken if last else stops - 1)[more]
    return _Leading(take_rows(run.table, rows), owner, own, needles[more], edge)


def _certain(trace: Trace, read: Sequence[_Leading], last: bool) -> Ends:
    """The sum of what was read, as far as no unread row can come between."""
    if not read:
        return Ends(np.empty(0, np.int64), trace.nothing())
    table, owner = joined([part.rows for part in read]), np.concatenate([part.owner for part in read])
    names = content_of(table)
    columns = dict(zip(names, arrays_of(table, names), strict=True))
    order, starts = arranged(owner, columns, trace.layout.order or ())
    number = np.empty(len(order), np.int64)
    number[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    bound, before = np.full(owner.max() + 1, -1 if last else len(order)), 0
    for part in read:
        narrower = np.maximum if last else np.minimum
        bound[part.cut] = narrower(bound[part.cut], number[before + part.edge])
        before += len(part.owner)
    place, shown = np.arange(len(starts)), order[starts]
    group, sums = owner[shown], np.add.reduceat(weights_of(table)[order], starts)
    certain = place >= bound[group] if last else place <= bound[group]
    kept = np.flatnonzero(certain & np.concatenate([part.own for part in read])[shown] & (sums != 0))
    if last:
        kept = kept[::-1][np.argsort(group[kept[::-1]], kind="stable")]
    rows = take_rows(table.drop_columns([WEIGHT]), shown[kept])
    return Ends(group[kept], with_weights(rows, sums[kept], like=table.schema))
