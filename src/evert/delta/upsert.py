"""Upserts and deletes by key become inserts and deletes of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.operator import fitted, names_of, numbered, pieces, weighted
from evert.trace.arrays import arrays_of, chosen, take, take_rows
from evert.trace.consolidate import GONE, HASH, hashes_of, sorted_by_hash, with_hash
from evert.trace.grouping import grouped
from evert.trace.keys import same_rows
from evert.trace.trace import Layout

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

POSITION, OFFSET, DELETED = "_position", "_offset", "_deleted"
CHANGE = (pa.field(POSITION, pa.int64()), pa.field(OFFSET, pa.int64()), pa.field(DELETED, pa.bool_()))
"""What a change of a table has beside its columns."""


@dataclass(frozen=True)
class Upsert:
    """Keeps the last row of each key.

    `delta = last change of each key in the epoch - stored row of that key`

    With the stored rows `(1, 'a')` and `(2, 'b')` and the key in `c0`:

        c0 │ c1   │ _position │ _deleted          c0 │ c1 │ __w
        ───┼──────┼───────────┼─────────          ───┼────┼────
         1 │ x    │         7 │ false              1 │ a  │  -1
         1 │ y    │         8 │ false      ──>     2 │ b  │  -1
         2 │ NULL │         8 │ true               1 │ y  │  +1
         3 │ NULL │         9 │ true

    A row that is stored already emits nothing (-0.0 is not 0.0 here), nor does the deletion of an absent key.
    State: the latest trace `rows`, by key, of the columns that are `kept`, or of all. Columns that are not kept or
    that nobody reads are NULL in what is emitted. Not guaranteed: the right row if an older change comes in a
    later epoch.
    """

    columns: pa.Schema
    key: tuple[int, ...]
    kept: tuple[int, ...] | None = None
    """The places of the columns that are kept, those of the key among them."""

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([*self.output, *CHANGE]),)

    @property
    def output(self) -> pa.Schema:
        return numbered(self.columns)

    @property
    def stored(self) -> pa.Schema:
        """The columns that are kept, under their names in the output."""
        every = self.output
        return every if self.kept is None else pa.schema([every.field(place) for place in self.kept])

    @property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        return Layout(names_of(self.key), latest=True, schema=self.stored.append(pa.field(GONE, pa.bool_())))

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        changes = fitted(rows, pa.schema([*self.stored, *CHANGE]))
        return self._last(with_hash(changes, names_of(self.key), bits=bits), bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (delta,) = deltas
        if delta is None or not delta.num_rows:
            return
        last = sorted_by_hash(self._last(delta, state.bits))
        names = self.stored.names
        new = dict(zip(names, arrays_of(last, names), strict=True))
        keys = [new[name] for name in names_of(self.key)]
        there = state.trace("rows", self.layout).where(hashes_of(last), keys)
        found = there.found
        deleted = arrays_of(last, [DELETED])[0].to_numpy(zero_copy_only=False)
        again = np.flatnonzero(found & ~deleted)
        same = np.zeros(len(found), np.bool_)
        same[again] = same_rows(
            there.columns(names, again), np.arange(len(again)), [*new.values()], again, exact=True
        )
        minus, plus = np.flatnonzero(found & ~same), np.flatnonzero(~deleted & ~same)
        kept = last.select([HASH, *names]).append_column(GONE, last.column(DELETED))
        state.write("rows", self.layout, chosen(kept, (deleted & found) | (~deleted & ~same)))
        wanted = [name for name in names if state.wanted is None or int(name[1:]) in state.wanted]
        old = dict(zip(wanted, there.columns(wanted, minus), strict=True))
        come = {name: take(new[name], plus) for name in wanted}
        yield from pieces(
            [
                weighted(self._filled(old, len(minus)), np.full(len(minus), -1)),
                weighted(self._filled(come, len(plus)), np.ones(len(plus), np.int64)),
            ]
        )

    def _filled(self, columns: Mapping[str, pa.Array], count: int) -> list[pa.Array]:
        """These columns, and NULLs in place of those that nobody reads."""
        return [
            columns[field.name] if field.name in columns else pa.nulls(count, field.type)
            for field in self.output
        ]

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        rows = state.trace("rows", self.layout).rows()
        names = self.stored.names
        columns = self._filled(dict(zip(names, arrays_of(rows, names), strict=True)), rows.num_rows)
        yield from pieces([weighted(columns, np.ones(rows.num_rows, np.int64))])

    def _last(self, rows: pa.Table, bits: int) -> pa.Table:
        """The last change of each key: the one with the greatest position, then offset."""
        position, offset = (array.to_numpy() for array in arrays_of(rows, [POSITION, OFFSET]))
        by_time = np.lexsort((offset, position))
        rank = np.empty(len(by_time), np.int64)
        rank[by_time] = np.arange(len(by_time))
        keys = arrays_of(rows, names_of(self.key))
        order, starts = grouped(hashes_of(rows), keys, exact=False, whole_rows=True, stable=False, bits=bits)
        if len(starts) == len(order):
            return rows
        return take_rows(rows, by_time[np.maximum.reduceat(rank[order], starts)])
