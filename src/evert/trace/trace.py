"""A trace: the state of one node in one shard, as the sum of its runs or as the newest row of each key.

layout        what the runs say together
───────────   ──────────────────────────────────────────────────────────────────
bag           a row's weight is the sum of its weights in all runs
latest        a key's row is the one in the newest run; `__gone` marks a removal
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evert.trace.arrays import arrays_of, one_chunk, take, take_rows
from evert.trace.consolidate import GONE, HASH, hashes_of, joined, merged, sorted_by_hash, summed_in_order
from evert.trace.grouping import grouped
from evert.trace.keys import same_rows
from evert.trace.meeting import meeting
from evert.trace.order import By
from evert.trace.runs import Run

FACTOR = 4
BASE = 4096
PIECE_BYTES = 128 << 20


@dataclass(frozen=True)
class Layout:
    """How a trace is read: its key columns, and whether its rows add up or replace each other.

    A bag may have an `order`: then the rows of a hash are sorted by it in every run, and what the order leaves
    open by all columns, so that the first and the last rows of a key are found without reading the others.
    `schema`, the columns as they are written but without `__h`, is what a trace without runs shows; if it is
    not given, such a trace has no columns.
    """

    key: tuple[str, ...]
    latest: bool = False
    schema: pa.Schema | None = None
    order: tuple[By, ...] | None = None

    def empty(self) -> pa.Table:
        if self.schema is None:
            return pa.table({HASH: pa.array([], pa.uint64())})
        return pa.schema([pa.field(HASH, pa.uint64()), *self.schema]).empty_table()


class Trace:
    """The runs of one trace in one shard, the newest first."""

    def __init__(self, layout: Layout, runs: Sequence[Run]) -> None:
        self.layout = layout
        self.runs = tuple(runs)

    def with_newest(self, rows: pa.Table | None) -> Trace:
        """The trace as it is once these rows (with `__h`) are its newest run."""
        return self if rows is None else Trace(self.layout, [Run.of(rows), *self.runs])

    def matches(
        self, hashes: np.ndarray, keys: Sequence[pa.Array]
    ) -> Iterator[tuple[np.ndarray, Run, np.ndarray]]:
        """All stored rows that have the key of a needle: (places of needles, run, places of its rows).

        Needles may repeat and come in any order; pairs come in the order of the hash. A run with very many
        pairs comes in several pieces, one without any does not come.
        """
        plain = [one_chunk(key) for key in keys]
        order = _in_order(hashes)
        ordered = hashes[order]
        for run in self.runs:
            for needles, rows in self._pairs(order, ordered, plain, run):
                yield needles, run, rows

    def newest(self, hashes: np.ndarray, keys: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Table]:
        """Which needles have a row, and their rows: as many as were found, in the order of the needles.

        For latest traces; the needles are unique. A row that is gone is not found, and `__gone` not shown.
        """
        places = self.where(hashes, keys)
        names = places.nothing.schema.names
        return places.found, pa.table(places.columns(names, np.flatnonzero(places.found)), names=names)

    def where(self, hashes: np.ndarray, keys: Sequence[pa.Array]) -> Places:
        """Where the rows of needles are, for who does not want all of their columns; as in `newest`."""
        plain = [one_chunk(key) for key in keys]
        open_needles = _in_order(hashes)
        decided = np.zeros(len(hashes), np.bool_)
        run_of, row_of = np.full(len(hashes), -1), np.zeros(len(hashes), np.int64)
        for number, run in enumerate(self.runs):
            for needles, rows in self._pairs(open_needles, hashes[open_needles], plain, run):
                decided[needles] = True
                here = ~gone_at(run, rows)
                run_of[needles[here]], row_of[needles[here]] = number, rows[here]
            open_needles = open_needles[~decided[open_needles]]
        return Places(self.runs, self.nothing(), run_of, row_of)

    def rows(self) -> pa.Table:
        """The whole content, sorted by `__h`: rows with weights, or the newest row of each key."""
        if not self.runs:
            return self.nothing()
        if len(self.runs) == 1:
            only = self.runs[0].table
            return shown(without_gone(only)) if self.layout.latest else only
        return shown(merge(self.layout, [run.table for run in self.runs], bottom=True))

    def _pairs(
        self, order: np.ndarray, ordered: np.ndarray, keys: Sequence[pa.Array], run: Run
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        stored = [run.column(name) for name in self.layout.key]
        for places, rows in meeting(ordered, run.hashes):
            needles = order[places]
            equal = same_rows(keys, needles, stored, rows)
            if not equal.all():
                needles, rows = needles[equal], rows[equal]
            if len(needles):
                yield needles, rows

    def nothing(self) -> pa.Table:
        """No row, but its columns."""
        return shown(self.runs[0].table.slice(0, 0) if self.runs else self.layout.empty())


@dataclass(frozen=True)
class Places:
    """Where the rows of needles are: in which of the runs, -1 if in none, and at which place in it."""

    runs: Sequence[Run]
    nothing: pa.Table
    run: np.ndarray
    row: np.ndarray

    @property
    def found(self) -> np.ndarray:
        """Which needles have a row."""
        return np.asarray(self.run >= 0)

    def columns(self, names: Sequence[str], at: np.ndarray) -> list[pa.Array]:
        """Columns of the rows of these needles, all of which have one."""
        if not len(at):
            return arrays_of(self.nothing, names)
        run_of, row_of = self.run[at], self.row[at]
        numbers = np.unique(run_of)
        if len(numbers) == 1:
            return [take(self.runs[numbers[0]].column(name), row_of) for name in names]
        by_run = np.argsort(run_of, kind="stable")
        ends = np.searchsorted(run_of[by_run], numbers, "right")
        rows = np.split(row_of[by_run], ends[:-1])
        back = np.empty(len(at), np.int64)
        back[by_run] = np.arange(len(at))
        pieces = [(self.runs[number], where) for number, where in zip(numbers, rows, strict=True)]
        return [
            take(pa.concat_arrays([take(run.column(name), where) for run, where in pieces]), back)
            for name in names
        ]


def merge(layout: Layout, tables: Sequence[pa.Table], *, bottom: bool, bits: int = 64) -> pa.Table:
    """What `merging` gives, as one table."""
    pieces = list(merging(layout, tables, bottom=bottom, bits=bits))
    return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)


def merging(
    layout: Layout, tables: Sequence[pa.Table], *, bottom: bool, bits: int = 64
) -> Iterator[pa.Table]:
    """What the tables, the newest first, say together, sorted by `__h` and the layout's order, a range at a time.

    bag:    equal rows are summed where one takes back another, or many are equal; rows that sum to 0 are dropped.
    latest: the newest row of each key stays; if this is the bottom of the trace, removals are dropped too.
    Each table is sorted by `__h`, or sorting takes longer. `bits` narrows the hash of whole rows in tests.
    Who lets go of a range before asking for the next one never has more than that in memory.
    """
    for part in _ranges(tables):
        yield _merged(layout, part, bottom, bits)


def how_many(rows: int, sizes: Sequence[int]) -> int:
    """How many of the newest runs to merge with a new run of so many rows.

    A run's tier is the power of 4 of its rows. Three runs in a row that are not of a higher tier are merged
    with the new one, and the result is looked at again. So among any run's next three older ones there is
    one of a higher tier, and a trace has at most three runs for each tier, whatever the sizes were.

    >>> how_many(10, [10, 20]), how_many(10, [10, 20, 30]), how_many(10, [10, 20, 1_000_000])
    (0, 3, 0)
    """
    taken = 0
    while True:
        level, end = _tier(rows), taken
        while end < len(sizes) and _tier(sizes[end]) <= level:
            end += 1
        if end - taken < FACTOR - 1:
            return taken
        rows += sum(sizes[taken:end])
        taken = end


def without_gone(rows: pa.Table) -> pa.Table:
    gone = one_chunk(rows.column(GONE))
    return take_rows(rows, np.flatnonzero(~_flags(gone))) if gone.true_count else rows


def shown(rows: pa.Table) -> pa.Table:
    """The rows as readers see them: those that are gone have been left out, and so is the mark."""
    return rows.drop_columns([GONE]) if GONE in rows.schema.names else rows


def gone_at(run: Run, rows: np.ndarray) -> np.ndarray:
    return _flags(take(run.column(GONE), rows))


def _in_order(hashes: np.ndarray) -> np.ndarray:
    """The places of the hashes from the least to the greatest."""
    return np.arange(len(hashes)) if (hashes[1:] >= hashes[:-1]).all() else np.argsort(hashes)


def _flags(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _tier(rows: int) -> int:
    level, rows = 0, rows // BASE
    while rows:
        level, rows = level + 1, rows // FACTOR
    return level


def _merged(layout: Layout, tables: Sequence[pa.Table], bottom: bool, bits: int) -> pa.Table:
    if layout.order is not None:
        return summed_in_order(tables, layout.order)
    if not layout.latest:
        return merged(tables, layout.key, bits=bits)
    table = joined(tables)
    columns = arrays_of(table, layout.key)
    order, starts = grouped(hashes_of(table), columns, exact=False, whole_rows=True, stable=True, bits=bits)
    kept = order[starts]
    if bottom:
        kept = kept[~_flags(one_chunk(table.column(GONE)))[kept]]
    return take_rows(table, kept)


def _ranges(tables: Sequence[pa.Table]) -> Iterator[Sequence[pa.Table]]:
    """The tables cut at the same hashes, so that no piece is too large for 32-bit offsets."""
    size = sum(table.nbytes for table in tables)
    pieces = size // PIECE_BYTES + 1
    if pieces == 1:
        yield tables
        return
    tables = [sorted_by_hash(table) for table in tables]
    hashes = [hashes_of(table) for table in tables]
    longest = max(hashes, key=len)
    bounds = longest[np.arange(1, pieces) * len(longest) // pieces]
    cuts = [[0, *np.searchsorted(found, bounds).tolist(), len(found)] for found in hashes]
    for piece in range(pieces):
        yield [
            table.slice(cut[piece], cut[piece + 1] - cut[piece])
            for table, cut in zip(tables, cuts, strict=True)
        ]
