"""What a kernel sees of its node: the traces of one shard in one epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from evert.trace.consolidate import joined, sorted_by_hash, weights_of
from evert.trace.horizon import Limit, alive
from evert.trace.runs import RunCache, RunWriter, Stored
from evert.trace.trace import PIECE_BYTES, Layout, Trace, how_many, merging

TAKEN_BACK = 5
"""A bag is rewritten whole in the epoch that takes back one in so many of its rows."""


class NodeState:
    """The state of one node in one shard and epoch, and what the epoch does to it.

    A trace shows the state before the epoch, whatever has been written meanwhile. `added` and `removed` are
    for the commit: until it, the new runs belong to nobody. Ids must be given in the order of `added`,
    because a run with a higher id is newer.
    """

    def __init__(
        self,
        *,
        shard: int,
        first: bool,
        runs: Mapping[str, Sequence[Stored]],
        writer: RunWriter,
        cache: RunCache,
        folder: Path,
        bits: int = 64,
        limits: Mapping[str, Sequence[Limit]] | None = None,
        wanted: frozenset[int] | None = None,
    ) -> None:
        self.shard = shard
        self.first = first
        self.bits = bits
        self.wanted = wanted
        """The columns of what the node gives that somebody reads; None is all of them."""
        self.added: list[tuple[str, Stored]] = []
        self.removed: list[int] = []
        self.published: list[pa.Table] = []
        self._runs = runs
        self._writer = writer
        self._cache = cache
        self._folder = folder
        self._limits = limits or {}

    def trace(self, name: str, layout: Layout) -> Trace:
        """The trace as the last commit left it."""
        return Trace(layout, [self._cache.open(self._folder, stored) for stored in self._runs.get(name, ())])

    def write(self, name: str, layout: Layout, rows: pa.Table) -> None:
        """Add rows (columns of the trace with `__h`) as a new run, merged with older ones as tiers ask.

        A second write to the same trace is a newer run of its own. A latest trace wants each key once. What no
        change can reach any more is forgotten when all runs are merged: elsewhere, something that was taken back
        would appear again if what takes it back were forgotten first.
        """
        if not rows.num_rows:
            return
        stored = self._runs.get(name, ())
        again = any(written == name for written, _ in self.added)
        count = 0 if again else _to_merge(layout, rows, stored)
        older = [self._cache.open(self._folder, run).table for run in stored[:count]]
        bottom = not again and count == len(stored)
        gone = self._limits.get(name, ()) if bottom else ()
        for merged in merging(
            layout, [sorted_by_hash(joined([rows])), *older], bottom=bottom, bits=self.bits
        ):
            self._add(name, alive(merged, gone))
            del merged  # before the next range is made
        self.removed.extend(run.id for run in stored[:count])

    def _add(self, name: str, rows: pa.Table) -> None:
        for piece in _pieces(rows):
            self.added.append((name, self._writer.add(piece)))

    def publish(self, delta: pa.Table) -> None:
        """The change of the view's rows in this epoch."""
        self.published.append(delta)


def _to_merge(layout: Layout, rows: pa.Table, stored: Sequence[Stored]) -> int:
    """With how many of the newest runs the rows are merged: with all where they take back a good part of them.

    What is taken back stays in the runs, and is read, until they are merged with what takes it back. Merging all
    costs as much as reading all, once; where a fifth of it is to go, that pays within a few epochs.
    What one merge has written in several pieces is as large as it was together.
    """
    written = [list(pieces) for _, pieces in groupby(stored, key=lambda run: run.file)]
    sizes = [sum(run.rows for run in pieces) for pieces in written]
    if not layout.latest and TAKEN_BACK * int((weights_of(rows) < 0).sum()) >= sum(sizes):
        return len(stored)
    return sum(map(len, written[: how_many(rows.num_rows, sizes)]))


def _pieces(table: pa.Table) -> Iterator[pa.Table]:
    """The table in parts that fit one chunk each; nothing for an empty table."""
    step = max(1, table.num_rows * PIECE_BYTES // max(1, table.nbytes))
    for start in range(0, table.num_rows, step):
        yield table.slice(start, step)
