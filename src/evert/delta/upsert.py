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
    State: the latest trace `rows`, by key. Columns that nobody reads are NULL in what is emitted. Not guaranteed:
    the right row if an older change comes in a later epoch.
    """

    columns: pa.Schema
    key: tuple[int, ...]

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        change = {POSITION: pa.int64(), OFFSET: pa.int64(), DELETED: pa.bool_()}
        return (pa.schema([*self.output, *(pa.field(name, kind) for name, kind in change.items())]),)

    @property
    def output(self) -> pa.Schema:
        return numbered(self.columns)

    @property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        return Layout(names_of(self.key), latest=True, schema=self.output.append(pa.field(GONE, pa.bool_())))

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        return self._last(with_hash(fitted(rows, self.inputs[port]), names_of(self.key), bits=bits), bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (delta,) = deltas
        if delta is None or not delta.num_rows:
            return
        last = sorted_by_hash(self._last(delta, state.bits))
        new = arrays_of(last, self.output.names)
        there = state.trace("rows", self.layout).where(hashes_of(last), [new[at] for at in self.key])
        found = there.found
        deleted = arrays_of(last, [DELETED])[0].to_numpy(zero_copy_only=False)
        again = np.flatnonzero(found & ~deleted)
        same = np.zeros(len(found), np.bool_)
        same[again] = same_rows(
            there.columns(self.output.names, again), np.arange(len(again)), new, again, exact=True
        )
        minus, plus = np.flatnonzero(found & ~same), np.flatnonzero(~deleted & ~same)
        kept = last.select([HASH, *self.output.names]).append_column(GONE, last.column(DELETED))
        state.write("rows", self.layout, chosen(kept, (deleted & found) | (~deleted & ~same)))
        wanted = [name for name in self.output.names if state.wanted is None or int(name[1:]) in state.wanted]
        old = dict(zip(wanted, there.columns(wanted, minus), strict=True))
        come = {name: take(new[int(name[1:])], plus) for name in wanted}
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
        yield from pieces([weighted(arrays_of(rows, self.output.names), np.ones(rows.num_rows, np.int64))])

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
