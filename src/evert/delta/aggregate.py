"""Aggregates by group, kept up to date from the change alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.accumulate import Accumulators, Function
from evert.delta.extremes import Extremes, Results, extremes_of, results_of
from evert.delta.normal import normalised
from evert.delta.operator import DataError, fitted, names_of, numbered, pieces, weighted, with_weight
from evert.schema.digest import whole
from evert.trace.arrays import arrays_of, chosen, one_chunk, take, take_rows
from evert.trace.consolidate import GONE, HASH, hashes_of, joined, weights_of
from evert.trace.grouping import grouped
from evert.trace.groups import Groups, groups_of
from evert.trace.keys import hash_rows, same_rows
from evert.trace.trace import Layout

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


_Groups = tuple[pa.Table, Results, np.ndarray]
"""The accumulators of groups, their other results, and which of them are there."""


@dataclass(frozen=True)
class Aggregate:
    """One row for each group, with its functions' results; without functions, DISTINCT.

    `delta = results(A + ΔA) - results(A)` for the groups in Δ, where A are their stored accumulators

    With the group `x` stored as count 2 and sum 5 of `c1`:

        c0 │ c1 │ __w              c0 │ c1 │ c2 │ __w
        ───┼────┼────              ───┼────┼────┼────
         x │  3 │  -1       ──>     x │  2 │  5 │  -1
         y │  7 │  +1               x │  1 │  2 │  +1
                                    y │  1 │  7 │  +1

    The first `keys` columns are the group, the others are arguments. A group is there while the sum of its
    weights is positive. `always` is an aggregate without GROUP BY: its one row is there from the first epoch on.
    What crosses the exchange is accumulators of groups, not rows. State: the latest trace `groups`, by key.

    Under min and max rows may only be deleted if the aggregate `retracts`. Then each of their arguments, in the
    order of their places, has a port and a state of its own: the group and that argument, see `Extremes`.

    If its input only `grows` and no function asks how many rows there are, a group is written when it is new or a
    function's result is, and not for every row.
    """

    input: pa.Schema
    keys: int
    functions: tuple[Function, ...]
    always: bool = False
    retracts: bool = False
    grows: bool = False

    def __post_init__(self) -> None:
        if self.always and self.keys:
            raise ValueError("an aggregate that always has its row has no grouping columns")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (numbered(self.input), *(extremes.input for extremes in self.extremes))

    @cached_property
    def output(self) -> pa.Schema:
        kinds = Accumulators(tuple(self.input.types), self.functions).results
        results = pa.schema([pa.field("", kind) for kind in kinds])
        return numbered(pa.schema(list(self.input)[: self.keys]), results)

    @cached_property
    def accumulators(self) -> Accumulators:
        """What is kept of a group."""
        kept = self.functions
        if self.retracts:
            kept = tuple(function for function in kept if function.kind not in ("min", "max"))
        return Accumulators(tuple(self.input.types), kept, self.once)

    @property
    def once(self) -> bool:
        """Whether it only matters of a group whether it has rows."""
        return self.grows and not self.always and all(function.kind == "some" for function in self.functions)

    @cached_property
    def extremes(self) -> tuple[Extremes, ...]:
        """The arguments of min and max that have a port of their own."""
        return extremes_of(self.input, self.keys, self.functions) if self.retracts else ()

    @cached_property
    def layout(self) -> Layout:
        """How the state `groups` is read."""
        key = list(self.inputs[0])[: self.keys]
        columns = [*key, *self.accumulators.schema, pa.field(GONE, pa.bool_())]
        return Layout(names_of(range(self.keys)), latest=True, schema=pa.schema(columns))

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        if port:
            return self.extremes[port - 1].prepare(fitted(rows, with_weight(self.inputs[port])), bits)
        rows = fitted(rows, with_weight(self.inputs[0]), late=True)
        weights = weights_of(rows)
        if not weights.all():
            rows = take_rows(rows, np.flatnonzero(weights))
            weights = weights_of(rows)
        if self.accumulators.grows_only and (weights < 0).any():
            raise DataError("a row was deleted from what keeps only what growing input needs")
        keys = [normalised(whole(rows.column(name))) for name in self.layout.key]
        groups = groups_of(keys, rows.num_rows, bits=bits)
        partial = self.accumulators.partial([*map(whole, rows.columns)], weights, groups)
        keys = [one_chunk(take(key, groups.first)) for key in keys]
        return self._busy(self._cell(hash_rows(keys, len(groups), bits), keys, partial))

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        delta = self._merged(deltas, state)
        if delta is None:
            return
        count = delta.num_rows
        hashes, keys = hashes_of(delta), arrays_of(delta, self.layout.key)
        found, stored = state.trace("groups", self.layout).newest(hashes, keys)
        old = self._aligned(found, stored)
        new = self._added(old, delta) if found.any() else delta.select(self.accumulators.schema.names)
        weights = arrays_of(new, ["weight"])[0].to_numpy()
        if (weights < 0).any():
            raise DataError("more rows were taken out of a group than had been put in")
        if ((weights == 0) & ~self.accumulators.idle(new)).any():
            raise DataError("the rows taken out of a group are not those that had been put in")
        before = np.ones(count, np.bool_) if self.always and not state.first else found
        after = np.ones(count, np.bool_) if self.always else weights > 0
        had, has = results_of(self.extremes, deltas[1:], state, hashes, keys)
        empty = np.flatnonzero(weights == 0)
        if any(take(array, empty).null_count < len(empty) for array in has.values()):
            raise DataError("the rows taken out of a group are not those that had been put in")
        emitted = self._difference(keys, (old, had, before), (new, has, after))
        kept = self._cell(hashes, keys, new).append_column(GONE, pa.array(~after))
        changed = (found | after) & ~self.accumulators.idle(delta)
        if self.once:
            changed = self.accumulators.differ(old, new)
        state.write("groups", self.layout, chosen(kept, changed))
        yield from pieces(emitted)

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        stored = state.trace("groups", self.layout).rows()
        if self.always and state.shard == 0 and not stored.num_rows:
            stored = self._cell(np.zeros(1, np.uint64), [], self.accumulators.nothing(1))
        hashes, keys = hashes_of(stored), arrays_of(stored, self.layout.key)
        _, ends = results_of(self.extremes, [None] * len(self.extremes), state, hashes, keys)
        results = self._results(stored, ends, np.arange(len(hashes)))
        yield from pieces([weighted([*keys, *results], np.ones(len(hashes), np.int64))])

    def _merged(self, deltas: Sequence[pa.Table | None], state: NodeState) -> pa.Table | None:
        """One row of accumulators for each group that may not be what it was; None if there is none."""
        first = self.always and state.first and state.shard == 0
        cells = [
            cell for cell in (deltas[0], *map(self._named, deltas[1:])) if cell is not None and cell.num_rows
        ]
        if cells:
            delta = joined(cells)
            hashes, keys = hashes_of(delta), arrays_of(delta, self.layout.key)
            order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=state.bits)
            if len(starts) == len(order):
                delta = take_rows(
                    delta, order
                )  # in the order of hashes, in which it is looked up and written
            else:
                at = order[starts]
                ordered = take_rows(delta.select(self.accumulators.schema.names), order)
                sums = self.accumulators.merged(ordered, Groups.in_order(starts, len(order)))
                delta = self._cell(hashes[at], [take(key, at) for key in keys], sums)
                delta = delta if self.extremes else self._busy(delta)
            if delta.num_rows:
                return delta
        return self._cell(np.zeros(1, np.uint64), [], self.accumulators.nothing(1)) if first else None

    def _named(self, delta: pa.Table | None) -> pa.Table | None:
        """The groups of an argument's delta, with accumulators that change nothing."""
        if delta is None:
            return None
        keys = arrays_of(delta, self.layout.key)
        return self._cell(hashes_of(delta), keys, self.accumulators.nothing(delta.num_rows))

    def _cell(self, hashes: np.ndarray, keys: Sequence[pa.Array], sums: pa.Table) -> pa.Table:
        names = [HASH, *self.layout.key, *sums.schema.names]
        return pa.table([pa.array(hashes, pa.uint64()), *keys, *sums.columns], names=names)

    def _busy(self, cell: pa.Table) -> pa.Table:
        idle = self.accumulators.idle(cell)
        return chosen(cell, ~idle)

    def _aligned(self, found: np.ndarray, stored: pa.Table) -> pa.Table:
        """The stored accumulators of every group, empty ones where nothing is stored."""
        nothing = self.accumulators.nothing(len(found))
        if not found.any():
            return nothing
        place = np.arange(len(found))
        place[found] = len(found) + np.arange(stored.num_rows)
        return take_rows(pa.concat_tables([nothing, stored.select(nothing.schema.names)]), place)

    def _added(self, old: pa.Table, delta: pa.Table) -> pa.Table:
        count = old.num_rows
        both = pa.concat_tables([old, delta.select(old.schema.names)])
        every = np.arange(count)
        return self.accumulators.merged(both, Groups(np.tile(every, 2), every))

    def _results(self, sums: pa.Table, ends: Results, at: np.ndarray) -> list[pa.Array]:
        """The results of the functions for the groups at these places."""
        every = len(at) == sums.num_rows
        finished = iter(self.accumulators.finished(sums if every else take_rows(sums, at)))
        return [take(ends[each], at) if each in ends else next(finished) for each in self.functions]

    def _difference(self, keys: Sequence[pa.Array], old: _Groups, new: _Groups) -> list[pa.Table]:
        """Minus what each group showed before, plus what it shows now, where the two differ."""
        (sums, ends, before), (new_sums, new_ends, after) = old, new
        had, has = np.flatnonzero(before), np.flatnonzero(after)
        minus, plus = self._results(sums, ends, had), self._results(new_sums, new_ends, has)
        both = np.flatnonzero(before & after)
        first, second = np.searchsorted(had, both), np.searchsorted(has, both)
        same = np.zeros(len(before), np.bool_)
        same[both] = same_rows(minus, first, plus, second, exact=True)
        emitted = []
        for at, sign, results in ((had, -1, minus), (has, 1, plus)):
            differ = np.flatnonzero(~same[at])
            shown = [*(take(key, at[differ]) for key in keys), *(take(array, differ) for array in results)]
            emitted.append(weighted(shown, np.full(len(differ), sign)))
        return emitted
