"""All rows of the keys that an epoch changes, for whoever computes a key's result anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.normal import with_normal_keys
from evert.delta.operator import (
    DataError,
    fitted,
    names_of,
    numbered,
    one_by_one,
    pieces,
    with_weight,
)
from evert.trace.arrays import arrays_of, take
from evert.trace.consolidate import consolidate, hashes_of, joined, summed, weights_of
from evert.trace.gather import gathered
from evert.trace.grouping import grouped
from evert.trace.order import arranged
from evert.trace.trace import Layout

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


@dataclass(frozen=True)
class Touched:
    """Keeps the rows of each key, and gives for every key in the delta all the rows that it has now.

    `emitted = (R + Δ) ⋉ keys(Δ)`, and a marker for each of these keys

    With the rows `('x', 2)`, `('x', 5)` and `('z', 4)` stored and the key in `c0`:

        c0 │ c1 │ __w              c0 │ c1   │ c2    │ __w
        ───┼────┼────              ───┼──────┼───────┼────
         x │  2 │  +1       ──>     x │ NULL │ false │  +1
         y │  7 │  +1               x │    2 │ true  │  +1
         y │  7 │  -1               x │    2 │ true  │  +1
         z │  4 │  -1               x │    5 │ true  │  +1
                                    z │ NULL │ false │  +1

    The last column says whether the row is there; the marker, where it is not, has the key and nothing else. A
    key's rows are neighbours, its marker first, then the rows in an order that their content alone decides. A row
    that is there n times comes n times. Keys are shown normalised. Without keys there is one, whose marker also
    comes in the first epoch. What is emitted is no delta: nothing takes back what came in an earlier epoch.
    State: the bag `rows`, by key.
    """

    input: pa.Schema
    keys: tuple[int, ...]

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (numbered(self.input),)

    @property
    def output(self) -> pa.Schema:
        return numbered(self.input, pa.schema({"there": pa.bool_()}))

    @property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        return Layout(names_of(self.keys), schema=with_weight(self.inputs[0]))

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = with_normal_keys(fitted(rows, with_weight(self.inputs[port])), self.layout.key)
        return consolidate(rows, self.layout.key, bits=bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        given = self.layout.empty() if given is None else given
        delta = summed([given], whole_rows=False, stable=False, bits=state.bits)
        yield from pieces(self._present(delta, state))
        state.write("rows", self.layout, delta)

    def _present(self, delta: pa.Table, state: NodeState) -> Iterator[pa.Table]:
        hashes, keys = hashes_of(delta), arrays_of(delta, self.layout.key)
        order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=state.bits)
        hashes, keys = hashes[order[starts]], [take(key, order[starts]) for key in keys]
        if not self.keys and state.first and state.shard == 0:
            hashes = np.zeros(1, np.uint64)
        trace = state.trace("rows", self.layout).with_newest(delta)
        for part, rows in gathered(trace, hashes, keys, state.bits):
            if (weights_of(rows) < 0).any():
                raise DataError(f"a row would be there {int(weights_of(rows).min())} times")
            markers = self._markers(hashes[part], [key[part] for key in keys])
            yield from self._arranged(joined([markers, rows]), markers.num_rows, state.bits)

    def _markers(self, hashes: np.ndarray, keys: Sequence[pa.Array]) -> pa.Table:
        count = len(hashes)
        columns = [pa.nulls(count, kind) for kind in self.input.types]
        for at, key in zip(self.keys, keys, strict=True):
            columns[at] = key
        weights = pa.array(np.ones(count, np.int64))
        return pa.table([pa.array(hashes), *columns, weights], schema=self.layout.empty().schema)

    def _arranged(self, both: pa.Table, markers: int, bits: int) -> Iterator[pa.Table]:
        """The markers, of which there are so many, and the rows, each as often as it is there, key by key."""
        columns = arrays_of(both, self.inputs[0].names)
        there = pa.array(np.arange(both.num_rows) >= markers)
        keys = arrays_of(both, self.layout.key)
        order, starts = grouped(hashes_of(both), keys, exact=False, whole_rows=True, stable=False, bits=bits)
        group = np.zeros(len(order), np.int64)
        group[order[starts]] = 1
        group[order] = np.cumsum(group[order])
        content = {f"c{at}": column for at, column in enumerate(columns) if at not in self.keys}
        order, _ = arranged(group, {"there": there, **content}, ())
        yield from one_by_one([*columns, there], order, weights_of(both)[order])
