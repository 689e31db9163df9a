"""The first rows of each group in an order: LIMIT, OFFSET, and ranks between limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from evert.delta.operator import DataError, fitted, names_of, numbered, pieces, with_weight
from evert.schema.digest import whole
from evert.trace.arrays import arrays_of, decoded, one_chunk, take, take_rows
from evert.trace.consolidate import (
    HASH,
    WEIGHT,
    consolidate,
    hashes_of,
    joined,
    negate,
    plus,
    summed_in_order,
    weights_of,
    with_hash,
    with_weights,
)
from evert.trace.ends import Ends, ends, rows_under
from evert.trace.grouping import grouped
from evert.trace.groups import groups_of
from evert.trace.keys import same_rows
from evert.trace.order import By, arranged, ranks, sorted_by
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

ROWS = 1 << 18
_RANKS = 2**31 - 1
_ALL = 2**63 - 1


class Order(NamedTuple):
    """A column to order by, as Spark compares its values."""

    column: int
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Top:
    """The rows of each key whose rank is from `least` to `most`, with it as last column if they are `ranked`.

    `delta = shown(R + ΔR) - shown(R)` for the keys in Δ, where R are their stored rows

    With `(x, 5)` and `(x, 7)` stored, the key in `c0`, ordered by `c1`, ranked by row_number from 1 to 2:

        c0 │ c1 │ __w              c0 │ c1 │ c2 │ __w
        ───┼────┼────              ───┼────┼────┼────
         x │  6 │  +1       ──>     x │  7 │  2 │  -1
         x │  9 │  +1               x │  6 │  2 │  +1

    `kind` is row_number, rank or dense_rank. A row that is there n times has n row numbers. Rows that the order
    finds equal are numbered by all their columns, so the result depends on the content alone. Keys are equal as
    Spark compares them; without keys all rows are one group. `grows` promises that nothing is deleted: then
    rows beyond `most` are kept nowhere, and of each piece only the best ones cross the exchange.
    So it is if the input `improves`: what is taken out is put in again under the same key, with a better value in
    the first column of the order. Then what is not among the best never is again unless it comes anew, and to take
    out what was not kept does nothing.
    State: the ordered bag `rows`, by key. An epoch reads `most` rows of each key in Δ from each run (rank and
    dense_rank: and those that share the last rank), not the key's other rows.
    """

    input: pa.Schema
    keys: tuple[int, ...]
    order: tuple[Order, ...]
    kind: str
    least: int
    most: int | None
    ranked: bool
    grows: bool
    improves: bool = False

    def __post_init__(self) -> None:
        if self.kind not in ("row_number", "rank", "dense_rank"):
            raise ValueError(f"there is no rank {self.kind}")
        if not 1 <= self.least <= _RANKS or not 0 <= (self.most or 0) <= _RANKS:
            raise ValueError(f"there are no ranks from {self.least} to {self.most}")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (numbered(self.input),)

    @property
    def output(self) -> pa.Schema:
        rank = [pa.field("rank", pa.int32())] if self.ranked else []
        return numbered(self.input, pa.schema(rank))

    @cached_property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        order = tuple(By(f"c{column}", down, nulls) for column, down, nulls in self.order)
        return Layout(names_of(self.keys), schema=with_weight(self.inputs[0]), order=order)

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        brief = (self.grows or self.improves) and self.most is not None
        rows = fitted(rows, with_weight(self.inputs[port]), late=brief)
        if self.grows and (weights_of(rows) < 0).any():
            raise DataError("a row was deleted under a limit that keeps only what growing input needs")
        if not brief:
            return consolidate(rows, self.layout.key, bits=bits)
        if self.improves:
            return self._contenders(rows, bits)
        cell = with_hash(rows, self.layout.key, bits=bits)
        return self._kept(self._alone(cell, bits))

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        if given is not None and given.num_rows:
            yield from pieces(self._changes(given, state))

    def _changes(self, given: pa.Table, state: NodeState) -> Iterator[pa.Table]:
        old = state.trace("rows", self.layout)
        written = []
        if self.improves:
            given = self._kept_before(joined([given]), old)
        if self.grows or self.improves:
            fresh = rows_under(old, hashes_of(given)) == 0
            first = self._alone(take_rows(given, np.flatnonzero(fresh)), state.bits)
            given = take_rows(given, np.flatnonzero(~fresh))
            written.append(self._kept(first))
            yield self._shown(first).drop_columns([HASH])
        delta = self._summed(given)
        new = Trace(self.layout, [Run.of(delta), *old.runs])
        hashes, keys = self._touched(delta, state.bits)
        written.append(delta.slice(0, 0) if self.grows or self.improves else delta)
        for batch in self._batches(new, hashes):
            some = hashes[batch], [take(key, batch) for key in keys]
            before, after = self._best(old, *some), self._best(new, *some)
            if self.grows or self.improves:
                change = plus(self._kept(after), negate(self._kept(before)))
                written.append(consolidate(change, self.layout.key, bits=state.bits))
            change = plus(self._shown(after), negate(self._shown(before)))
            yield consolidate(change, bits=state.bits).drop_columns([HASH])
        state.write("rows", self.layout, pa.concat_tables(written))

    def _contenders(self, rows: pa.Table, bits: int) -> pa.Table:
        """What may be among the best of its key, and what is taken out and may have been.

        As far as the first column of the order tells, these are the rows that are no worse than the last of the
        best `most` that are put in.
        """
        keys = [whole(rows.column(name)) for name in self.layout.key]
        groups, weights = groups_of(keys, rows.num_rows, bits=bits), weights_of(rows)
        by, *_ = self.layout.order or ()
        rank = ranks(whole(rows.column(by.name)), by)
        put_in = np.flatnonzero(weights > 0)
        near = np.flatnonzero(rank <= self._last(groups.of_row, rank, put_in, len(groups))[groups.of_row])
        return consolidate(decoded(take_rows(rows, near)), self.layout.key, bits=bits)

    def _last(self, group: np.ndarray, rank: np.ndarray, rows: np.ndarray, groups: int) -> np.ndarray:
        """The rank of the last of the best `most` of these rows in each group; the greatest if there are fewer."""
        found = np.full(groups, _ALL)
        if self.most == 1:
            np.minimum.at(found, group[rows], rank[rows])
            return found
        best = rows[sorted_by([group[rows], rank[rows]])]
        begins = np.flatnonzero(np.diff(group[best], prepend=-1))
        last = begins + (self.most or 1) - 1
        full = last < np.append(begins[1:], len(best))
        found[group[best[begins[full]]]] = rank[best[last[full]]]
        return found

    def _kept_before(self, given: pa.Table, old: Trace) -> pa.Table:
        """The delta without what is taken out of what was not kept."""
        given = self._summed(given)
        weights = weights_of(given).copy()
        out = np.flatnonzero(weights < 0)
        rows, keys = arrays_of(given, self.inputs[0].names), arrays_of(given, self.layout.key)
        held = np.zeros(len(weights), np.int64)
        for places, run, at in old.matches(hashes_of(given)[out], [take(key, out) for key in keys]):
            stored = [run.column(name) for name in self.inputs[0].names]
            same = same_rows(rows, out[places], stored, at, exact=True)
            np.add.at(held, out[places[same]], weights_of(run.table)[at[same]])
        weights[out] = np.maximum(weights[out], -held[out])
        return _weighted(given, np.flatnonzero(weights), weights[weights != 0])

    def _alone(self, cell: pa.Table, bits: int) -> Ends:
        """The rows of these keys up to the rank `most`, and maybe some more, where nothing is stored."""
        columns = {name: whole(cell.column(name)) for name in self.inputs[0].names}
        hashes = hashes_of(cell)
        order, starts = arranged(hashes, columns, self.layout.order or ())
        first = order[starts]
        begins = np.ones(len(first), np.bool_)
        begins[1:] = hashes[first[1:]] != hashes[first[:-1]]
        inner = np.flatnonzero(~begins)
        keys = [one_chunk(columns[name]) for name in self.layout.key]
        if self.kind != "row_number" or not same_rows(keys, first[inner - 1], keys, first[inner]).all():
            # Ranks need more than places, and different keys may share a hash.
            cell = self._summed(decoded(cell))
            return self._best(Trace(self.layout, [Run.of(cell)]), *self._touched(cell, bits))
        sums = np.add.reduceat(weights_of(cell)[order], starts) if len(starts) else np.zeros(0, np.int64)
        most = _RANKS if self.most is None else self.most
        counted = np.minimum(sums, most)
        below = np.cumsum(counted) - counted
        group = np.cumsum(begins) - 1
        near = np.flatnonzero((below - below[begins][group] < most) & (sums > 0))
        return Ends(group[near], _weighted(cell, first[near], sums[near]))

    def _summed(self, cell: pa.Table) -> pa.Table:
        return summed_in_order([cell], self.layout.order or ())

    def _touched(self, rows: pa.Table, bits: int) -> tuple[np.ndarray, list[pa.Array]]:
        """The keys of the rows, each once, with their hashes."""
        hashes, keys = hashes_of(rows), arrays_of(rows, self.layout.key)
        order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=bits)
        first = order[starts]
        return hashes[first], [take(key, first) for key in keys]

    def _batches(self, trace: Trace, hashes: np.ndarray) -> Iterator[np.ndarray]:
        """The places of the keys in parts, so that few rows are held at a time."""
        rows = rows_under(trace, hashes)
        if self.most is not None:
            rows = np.minimum(rows, (self.most + 1) * len(trace.runs))
        part = np.cumsum(rows) // ROWS
        yield from np.split(np.arange(len(hashes)), np.flatnonzero(np.diff(part)) + 1)

    def _best(self, trace: Trace, hashes: np.ndarray, keys: Sequence[pa.Array]) -> Ends:
        """The rows of these keys up to the rank `most`, and maybe some more."""
        first = _RANKS if self.most is None else self.most + 1
        return ends(trace, hashes, keys, self._enough, first=first)

    def _enough(self, known: Ends) -> np.ndarray:
        if (known.weights < 0).any():
            raise DataError("more rows were taken out of a group than had been put in")
        if self.most is None:
            return known.group[:0]
        ranks = self._ranks(known)
        if self.kind == "row_number":
            ranks += np.minimum(known.weights, self.most)
        return known.group[ranks > self.most]

    def _ranks(self, rows: Ends) -> np.ndarray:
        """The rank of each row, the least one if it is there several times; exact up to `most`."""
        count = len(rows.group)
        groups, peers = np.ones(count, np.bool_), np.ones(count, np.bool_)
        groups[1:] = rows.group[1:] != rows.group[:-1]
        if self.kind != "row_number":
            by = arrays_of(rows.rows, [by.name for by in self.layout.order or ()])
            inner = np.flatnonzero(~groups)
            peers[inner] = ~same_rows(by, inner, by, inner - 1)
        if self.kind == "dense_rank":
            below = np.cumsum(peers)
        else:
            weights = np.minimum(rows.weights, _RANKS + 1 if self.most is None else self.most)
            below = np.cumsum(weights) - weights
        group, peer = (np.flatnonzero(marks)[np.cumsum(marks) - 1] for marks in (groups, peers))
        found: np.ndarray = below[peer] - below[group] + 1
        return found

    def _kept(self, rows: Ends) -> pa.Table:
        """What may be shown some day, if nothing is ever deleted."""
        places, _, weights = self._within(rows, 1)
        return _weighted(rows.rows, places, weights)

    def _shown(self, rows: Ends) -> pa.Table:
        places, ranks, weights = self._within(rows, self.least)
        if not self.ranked:
            return _weighted(rows.rows, places, weights)
        if (ranks > _RANKS).any() or (self.kind == "row_number" and (weights > _RANKS - ranks + 1).any()):
            raise DataError(f"a rank is larger than {_RANKS}")
        if self.kind == "row_number":
            before = np.cumsum(weights) - weights
            ranks = np.repeat(ranks - before, weights) + np.arange(weights.sum())
            places, weights = np.repeat(places, weights), np.ones(len(ranks), np.int64)
        found = _weighted(rows.rows, places, weights)
        rank = pa.array(ranks, pa.int32())
        return found.add_column(found.num_columns - 1, self.output.names[-1], rank)

    def _within(self, rows: Ends, least: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Which rows have a rank within the limits, the first such rank of each, and how often they have one."""
        ranks, weights = self._ranks(rows), rows.weights
        most = _ALL if self.most is None else self.most
        if self.kind == "row_number":
            skipped = np.maximum(0, least - ranks)
            ranks = ranks + skipped
            weights = np.minimum(weights - skipped, most - ranks + 1)
        places = np.flatnonzero((ranks >= least) & (ranks <= most) & (weights > 0))
        return places, ranks[places], weights[places]


def _weighted(rows: pa.Table, places: np.ndarray, weights: np.ndarray) -> pa.Table:
    plain = rows.drop_columns([WEIGHT])
    every = len(places) == rows.num_rows and bool((places == np.arange(len(places))).all())
    return with_weights(plain if every else take_rows(plain, places), weights, like=rows.schema)
