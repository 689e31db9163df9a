"""The rows of a view: the last operator of its plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.operator import DataError, fitted, names_of, numbered, pieces, with_weight
from evert.trace.arrays import arrays_of, is_text, take
from evert.trace.consolidate import HASH, consolidate, hashes_of, negate, summed, weights_of
from evert.trace.grouping import grouped
from evert.trace.keys import same_rows
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


@dataclass(frozen=True)
class Output:
    """Keeps a view's rows, checks them and publishes what changed.

    `delta = Δ`, consolidated; with `replace`, where the input is the whole content: `delta = new - stored`

    With `('a')` stored once:

        c0 │ __w              c0 │ __w
        ───┼────              ───┼────
         a │  -1               a │  -1
         b │  +1      ──>      b │  +2
         b │  +1
         c │  +1
         c │  -1

    A row that would be there less than zero times raises DataError, and so does a declared key that would have two
    rows; of one that the plan derived, the delta alone is looked at.
    State: the bag `rows`, by key, or by the whole row without one; if it only `grows`, nothing is ever looked up,
    and columns without text are enough to sort by. What is emitted is also published.
    """

    columns: pa.Schema
    key: tuple[int, ...] | None
    declared: bool
    replace: bool
    grows: bool = False

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (self.output,)

    @property
    def output(self) -> pa.Schema:
        return numbered(self.columns)

    @property
    def anywhere(self) -> bool:
        """Whether a row may be in any shard, as long as what takes it back comes to the same one.

        Without a key nobody looks for a row by itself: what each shard has is a part of the bag.
        """
        return self.key is None and not self.replace

    @property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        return Layout(names_of(self._hashed), schema=with_weight(self.output))

    @property
    def _hashed(self) -> tuple[int, ...]:
        every = tuple(range(len(self.columns)))
        if self.key is not None or not self.grows:
            return every if self.key is None else self.key
        kinds = self.columns.types
        brief = (at for at in every if not is_text(kinds[at]) and not pa.types.is_nested(kinds[at]))
        return tuple(brief) or every

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        return consolidate(fitted(rows, with_weight(self.output)), self.layout.key, bits=bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        trace = state.trace("rows", self.layout)
        delta = self._sum([self.layout.empty() if given is None else given], state.bits)
        if self.replace:
            self._check(delta, Trace(self.layout, []), state.bits)
            delta = self._sum([delta, negate(trace.rows())], state.bits)
        else:
            self._check(delta, trace, state.bits)
        if delta.num_rows:
            state.write("rows", self.layout, delta)
            change = delta.drop_columns([HASH])
            state.publish(change)
            yield from pieces([change])

    def _sum(self, tables: Sequence[pa.Table], bits: int) -> pa.Table:
        whole = len(self._hashed) == len(self.columns)
        return summed(tables, whole_rows=whole, stable=False, bits=bits)

    def _check(self, delta: pa.Table, trace: Trace, bits: int) -> None:
        """Looks at what is stored only where something may go wrong."""
        weights = weights_of(delta)
        asked = np.arange(len(weights)) if self.declared else np.flatnonzero(weights < 0)
        rows = arrays_of(delta, self.output.names)
        keys = arrays_of(delta, self.layout.key)
        hashes = hashes_of(delta)
        row_weight, key_weight = weights.copy(), np.zeros(len(weights), np.int64)
        needles = [take(key, asked) for key in keys]
        for places, run, at in trace.matches(hashes[asked], needles):
            held = weights_of(run.table)[at]
            stored = [run.column(name) for name in self.output.names]
            same = same_rows(rows, asked[places], stored, at, exact=True)
            np.add.at(row_weight, asked[places[same]], held[same])
            if self.declared:
                np.add.at(key_weight, asked[places], held)
        if (row_weight < 0).any():
            raise DataError(f"a row of the view would be there {int(row_weight.min())} times")
        if self.key is not None and len(weights):
            order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=bits)
            count = key_weight[order[starts]] + np.add.reduceat(weights[order], starts)
            if (count > 1).any():
                worst = int(np.argmax(count > 1))
                raise DataError(self._violation(keys, int(order[starts[worst]]), int(count[worst])))

    def _violation(self, keys: Sequence[pa.Array], row: int, count: int) -> str:
        names = [self.columns.field(place).name for place in self.key or ()]
        parts = [f"{name} = {key[row].as_py()!r}" for name, key in zip(names, keys, strict=True)]
        said = f"({', '.join(parts)})"
        if self.declared:
            return f"the key {said} is not unique: {count} rows have it"
        return f"{count} rows have the key {said}, which the plan took to be unique"
