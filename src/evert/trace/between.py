"""The rows of a key that are between two values of an ordered trace, without reading those before and behind.

    run        hash    │ 3  3 │ 7     7  7  7  7  7 │ 9
               c1      │ 2  5 │ NULL  1  4  4  8  9 │ 2
    hash 7, from 4 to 8 ─────────────────└─────┘

In each run the rows of a hash lie together, in the order of their values, so both ends of a span are found by
bisection, for all spans at once. Keys that share a hash lie in between each other, so the keys are compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from evert.trace import gather
from evert.trace.arrays import arrays_of, numbers, one_chunk, take_rows, valid_at
from evert.trace.consolidate import WEIGHT, content_of, joined, weights_of, with_weights
from evert.trace.keys import same_rows
from evert.trace.meeting import stretches
from evert.trace.order import arranged
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace


@dataclass(frozen=True)
class Spans:
    """What is asked for: the rows of a key with a value from `low` to `high`, both included.

    Values are 64-bit integers, as a column of integers, dates or times holds them. Where `null` is true, the rows
    whose value is NULL are asked for, and no others.
    """

    hashes: np.ndarray
    keys: Sequence[pa.Array]
    low: np.ndarray
    high: np.ndarray
    null: np.ndarray


def between(trace: Trace, spans: Spans) -> Iterator[tuple[np.ndarray, Run, np.ndarray]]:
    """All stored rows within a span: (places of spans, run, places of its rows).

    Values are those of the first column of the trace's order, which ascends with NULL first; those of a struct are
    its first part's. Spans may repeat, overlap, and come in any order. A run with very many rows within spans comes
    in several pieces, one without any does not come. Nothing is summed: a row and what takes it back both come.
    """
    keys = [one_chunk(key) for key in spans.keys]
    for run, begin, end in _found(trace, spans):
        for which, rows in _of_key(trace.layout, run, keys, begin, end - begin):
            yield which, run, rows


def gathered_between(trace: Trace, spans: Spans) -> Iterator[tuple[np.ndarray, pa.Table]]:
    """The rows within some of the spans at a time, summed over the runs, and for each the place of its span.

    Places ascend; the rows of a span lie in the order of the trace. A batch ends where its rows may be larger than
    64 MB, but one span is never cut. No weight is 0; whether one is below it is for the reader to judge.
    """
    keys = [one_chunk(key) for key in spans.keys]
    found = list(_found(trace, spans))
    for start, stop in pairwise(_cuts(found, len(spans.hashes))):
        owners, parts = [], []
        for run, begin, end in found:
            count = (end - begin)[start:stop]
            mine = [key.slice(start, stop - start) for key in keys]
            for which, rows in _of_key(trace.layout, run, mine, begin[start:stop], count):
                owners.append(which + start)
                parts.append(take_rows(run.table, rows))
        if parts:
            yield _summed(trace.layout, np.concatenate(owners), joined(parts))


def places_below(
    layout: Layout, run: Run, first: np.ndarray, last: np.ndarray, limits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of the places from `first` to `last`, all of one hash, the range of those with a value below a limit."""
    parts = _decisive(layout, run)
    values = numbers(parts[-1])
    known = bisected(first, last, lambda at, which: _null_at(parts, at))
    return known, bisected(known, last, lambda at, which: values[at] < limits[which])


def _found(trace: Trace, spans: Spans) -> Iterator[tuple[Run, np.ndarray, np.ndarray]]:
    """For each run where the rows of each span begin and end, with those of other keys in between."""
    order = trace.layout.order
    if not order or order[0].descending or not order[0].nulls_first:
        raise ValueError("spans are found in traces whose order ascends, NULL first")
    for run in trace.runs:
        yield run, *_ends(trace.layout, run, spans)


def _ends(layout: Layout, run: Run, spans: Spans) -> tuple[np.ndarray, np.ndarray]:
    first = np.searchsorted(run.hashes, spans.hashes, "left")
    last = np.searchsorted(run.hashes, spans.hashes, "right")
    known, begin = places_below(layout, run, first, last, spans.low)
    values = numbers(_decisive(layout, run)[-1])
    end = bisected(begin, last, lambda at, which: values[at] <= spans.high[which])
    return np.where(spans.null, first, begin), np.where(spans.null, known, end)


def _decisive(layout: Layout, run: Run) -> list[pa.Array]:
    """What decides the order first: a column, or a struct and its first part, which has the values."""
    column = run.column((layout.order or ())[0].name)
    return [column, column.field(0)] if pa.types.is_struct(column.type) else [column]


def bisected(
    low: np.ndarray, high: np.ndarray, before: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """For each range of places the first that is not `before` what is looked for, or the range's end.

    `before` is asked about places, and told which range each is of.
    """
    low, high = low.copy(), high.copy()
    left = np.flatnonzero(low < high)
    while len(left):
        middle = (low[left] + high[left]) >> 1
        smaller = before(middle, left)
        low[left[smaller]] = middle[smaller] + 1
        high[left[~smaller]] = middle[~smaller]
        left = left[low[left] < high[left]]
    return low


def _null_at(parts: Sequence[pa.Array], at: np.ndarray) -> np.ndarray:
    found = np.zeros(len(at), np.bool_)
    for part in parts:
        present = valid_at(part, at)
        if present is not None:
            found |= ~present
    return found


def _of_key(
    layout: Layout, run: Run, keys: Sequence[pa.Array], begin: np.ndarray, count: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of so many rows from a place on for each span, those that have its key."""
    stored = [run.column(name) for name in layout.key]
    for which, rows in stretches(begin, count):
        own = same_rows(keys, which, stored, rows)
        if not own.all():
            which, rows = which[own], rows[own]
        if len(rows):
            yield which, rows


def _cuts(found: Sequence[tuple[Run, np.ndarray, np.ndarray]], count: int) -> list[int]:
    """Where batches of spans start, and where the last one ends."""
    if not count:
        return []
    size = np.zeros(count)
    for run, begin, end in found:
        size += (end - begin) * (run.stored.bytes / max(1, run.rows))
    batch = np.cumsum(size) // gather.BATCH_BYTES
    return [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), count]


def _summed(layout: Layout, owner: np.ndarray, table: pa.Table) -> tuple[np.ndarray, pa.Table]:
    names = content_of(table)
    columns = dict(zip(names, arrays_of(table, names), strict=True))
    order, starts = arranged(owner, columns, layout.order or ())
    sums = np.add.reduceat(weights_of(table)[order], starts)
    kept = np.flatnonzero(sums)
    rows = order[starts[kept]]
    plain = take_rows(table.drop_columns([WEIGHT]), rows)
    return owner[rows], with_weights(plain, sums[kept], like=table.schema)
