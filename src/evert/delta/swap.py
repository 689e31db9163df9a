"""The new rows of some keys in place of those that they had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.normal import normalised
from evert.delta.operator import DataError, fitted, names_of, numbered, pieces, with_weight
from evert.trace.arrays import arrays_of
from evert.trace.consolidate import (
    HASH,
    WEIGHT,
    consolidate,
    hashes_of,
    joined,
    negate,
    summed,
    weights_of,
)
from evert.trace.gather import gathered
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


@dataclass(frozen=True)
class Swap:
    """Takes all rows of the touched keys, and emits how they differ from those that it had.

    `delta = new - stored ⋉ touched`, consolidated

    With the rows `('x', 2)`, `('x', 5)` and `('z', 4)` stored and the key in `c0`:

        touched: c0      new: c0 │ c1 │ __w         c0 │ c1 │ __w
                 ──           ───┼────┼────         ───┼────┼────
                 x             x │  5 │  +1   ──>    x │  2 │  -1
                 z             x │  6 │  +1          x │  6 │  +1
                                                     z │  4 │  -1

    A touched key without new rows loses what it had; the weight of a touched key does not matter, nor how often
    it comes. A new row of a key that is not touched raises DataError. A row that is stored already emits nothing
    (-0.0 is not 0.0 here). `otherwise`, one row, is what the only key there is has if no new rows come for it.
    State: the bag `rows`, by key.
    """

    rows: pa.Schema
    keys: tuple[int, ...]
    otherwise: pa.Table | None = None

    def __post_init__(self) -> None:
        if self.keys and self.otherwise is not None:
            raise ValueError("there is a row for a key without rows only if there is one key")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return numbered(pa.schema([self.rows.field(at) for at in self.keys])), self.output

    @property
    def output(self) -> pa.Schema:
        return numbered(self.rows)

    @property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        return Layout(names_of(self.keys), schema=with_weight(self.output))

    @property
    def touched(self) -> Layout:
        """How touched keys are read."""
        schema = self.inputs[0]
        return Layout(tuple(schema.names), schema=with_weight(schema))

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = fitted(rows, with_weight(self.inputs[port]))
        if port == 1:
            return consolidate(rows, self.layout.key, bits=bits)
        columns = [normalised(column) for column in arrays_of(rows, self.touched.key)]
        once = pa.array(np.ones(rows.num_rows, np.int64))
        return consolidate(pa.table([*columns, once], schema=rows.schema), self.touched.key, bits=bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        touched, new = (
            summed(
                [layout.empty() if given is None else given], whole_rows=False, stable=False, bits=state.bits
            )
            for layout, given in zip((self.touched, self.layout), deltas, strict=True)
        )
        if self.otherwise is not None and touched.num_rows and not new.num_rows:
            once = self.otherwise.append_column(WEIGHT, pa.array([1], pa.int64()))
            new = self.prepare(1, once, state.bits)
        self._check(touched, new)
        trace = state.trace("rows", self.layout).with_newest(negate(new))
        keys = arrays_of(touched, self.touched.key)
        parts = [negate(rows) for _, rows in gathered(trace, hashes_of(touched), keys, state.bits)]
        if parts:
            state.write("rows", self.layout, joined(parts))
        yield from pieces(part.drop_columns([HASH]) for part in parts)

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        yield from pieces([state.trace("rows", self.layout).rows().drop_columns([HASH])])

    def _check(self, touched: pa.Table, new: pa.Table) -> None:
        if (weights_of(new) < 0).any():
            raise DataError(f"a new row would be there {int(weights_of(new).min())} times")
        found = np.zeros(new.num_rows, np.bool_)
        keys = Trace(self.touched, []).with_newest(touched)
        for rows, _, _ in keys.matches(hashes_of(new), arrays_of(new, self.layout.key)):
            found[rows] = True
        if not found.all():
            raise DataError("a new row has a key that was not touched")
