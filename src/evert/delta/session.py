"""Groups of rows that follow each other closely: sessions, kept up to date from the change alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.delta.accumulate import Accumulators, Function
from evert.delta.normal import normalised
from evert.delta.operator import (
    PIECE_ROWS,
    DataError,
    fitted,
    names_of,
    numbered,
    pieces,
    weighted,
    with_weight,
)
from evert.trace.arrays import arrays_of, one_chunk, take, take_rows
from evert.trace.between import Spans, gathered_between
from evert.trace.consolidate import HASH, WEIGHT, hashes_of, joined, negate, weights_of
from evert.trace.ends import Ends, ends
from evert.trace.grouping import grouped
from evert.trace.groups import Groups, groups_of
from evert.trace.keys import hash_rows
from evert.trace.order import By, sorted_by
from evert.trace.trace import Layout

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


FIRST = 2
"""How many of the sessions before something given are read from each run to begin with."""


class _Sorted(NamedTuple):
    """Windows by key and start: their places, and in that order where each session starts, and its two ends."""

    order: np.ndarray
    starts: np.ndarray
    begin: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Session:
    """One row for each session of a key, with its functions' results; over input that only grows.

    A row comes with a window, from its time to when its session ends if nothing follows. Windows of a key that
    overlap or touch are one session. With the session 1 to 7 of `x` stored, of two rows:

        c0 │ c1      │ __w              c0 │ c1      │ c2 │ __w
        ───┼─────────┼────              ───┼─────────┼────┼────
         x │ 7 to 12 │  +1       ──>     x │ 1 to 7  │  2 │  -1
         y │ 3 to 8  │  +1               x │ 1 to 12 │  3 │  +1
                                         y │ 3 to 8  │  1 │  +1

    The first `keys` columns are the key, the next one is the window, the others are arguments. What crosses the
    exchange is sessions of a piece, not rows. State: the ordered bag `sessions`, by key. An epoch reads the
    sessions that its rows meet, and the one before each, not the key's other sessions.
    """

    input: pa.Schema
    keys: int
    functions: tuple[Function, ...]

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (numbered(self.input),)

    @cached_property
    def output(self) -> pa.Schema:
        results = pa.schema([pa.field("", kind) for kind in self.accumulators.results])
        return numbered(pa.schema(list(self.input)[: self.keys + 1]), results)

    @cached_property
    def accumulators(self) -> Accumulators:
        """What is kept of a session."""
        return Accumulators(tuple(self.input.types), self.functions)

    @cached_property
    def layout(self) -> Layout:
        """How the state `sessions` is read."""
        columns = [*list(self.inputs[0])[: self.keys + 1], *self.accumulators.schema]
        key, order = names_of(range(self.keys)), (By(self._window),)
        return Layout(key, schema=with_weight(pa.schema(columns)), order=order)

    @property
    def _window(self) -> str:
        return f"c{self.keys}"

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = fitted(rows, with_weight(self.inputs[port]))
        weights = weights_of(rows)
        if (weights < 0).any():
            raise DataError("a row was deleted under sessions that keep only what growing input needs")
        if not weights.all():
            rows = take_rows(rows, np.flatnonzero(weights))
            weights = weights_of(rows)
        columns = arrays_of(rows, self.inputs[0].names)
        keys = [normalised(column) for column in columns[: self.keys]]
        found = self._sorted(keys, columns[self.keys], bits)
        used = {function.argument for function in self.functions}
        ordered = [take(column, found.order) if at in used else column for at, column in enumerate(columns)]
        groups = Groups.in_order(found.starts, rows.num_rows)
        sums = self.accumulators.partial(ordered, weights[found.order], groups)
        first = found.order[found.starts]
        keys = [take(key, first) for key in keys]
        return self._cell(hash_rows(keys, len(first), bits), keys, found, sums)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        if given is None or not given.num_rows:
            return
        given = joined([given])
        old, new = self._met(self._near(given, state), given, state.bits)
        yield from pieces([negate(self._shown(old)), self._shown(new)])
        state.write("sessions", self.layout, joined([negate(old), new]))

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        yield from pieces([self._shown(state.trace("sessions", self.layout).rows())])

    def _near(self, given: pa.Table, state: NodeState) -> pa.Table:
        """The stored sessions that begin within something given, and the one before it if that ends within it."""
        hashes, keys = hashes_of(given), arrays_of(given, self.layout.key)
        found = self._sorted(keys, one_chunk(given.column(self._window)), state.bits)
        first = found.order[found.starts]
        hashes, keys = hashes[first], [take(key, first) for key in keys]
        trace = state.trace("sessions", self.layout)
        spans = Spans(hashes, keys, found.begin, found.end, np.zeros(len(first), np.bool_))
        stored = [trace.nothing(), *(rows for _, rows in gathered_between(trace, spans))]
        for start in range(0, len(first), PIECE_ROWS):
            some = slice(start, start + PIECE_ROWS)
            begin = found.begin[some]
            mine = [key.slice(start, len(begin)) for key in keys]
            before = ends(trace, hashes[some], mine, _any, first=FIRST, last=True, below=begin)
            _, end = _limits(one_chunk(before.rows.column(self._window)))
            stored.append(take_rows(before.rows, np.flatnonzero(end >= begin[before.group])))
        both = joined(stored)
        # A session that ends within something given may begin within something else.
        columns = arrays_of(both, [*self.layout.key, self._window])
        hashes = hashes_of(both)
        order, starts = grouped(hashes, columns, exact=True, whole_rows=False, stable=False, bits=state.bits)
        return take_rows(both, order[starts])

    def _met(self, stored: pa.Table, given: pa.Table, bits: int) -> tuple[pa.Table, pa.Table]:
        """The stored sessions that something given belongs to, and the sessions that they become."""
        if (weights_of(stored) != 1).any():
            raise DataError("a session is not there once")
        both = joined([stored, given.append_column(WEIGHT, pa.array(np.ones(given.num_rows, np.int64)))])
        hashes, keys = hashes_of(both), arrays_of(both, self.layout.key)
        found = self._sorted(keys, one_chunk(both.column(self._window)), bits)
        fresh = found.order >= stored.num_rows
        touched = np.logical_or.reduceat(fresh, found.starts)
        inside = np.repeat(touched, np.diff(np.append(found.starts, len(fresh))))
        order = found.order[inside]
        begins = np.zeros(len(fresh), np.bool_)
        begins[found.starts] = True
        starts = np.flatnonzero(begins[inside])
        ordered = take_rows(both.select(self.accumulators.schema.names), order)
        sums = self.accumulators.merged(ordered, Groups.in_order(starts, len(order)))
        first = order[starts]
        met = _Sorted(order, starts, found.begin[touched], found.end[touched])
        new = self._cell(hashes[first], [take(key, first) for key in keys], met, sums)
        new = new.append_column(WEIGHT, pa.array(np.ones(len(first), np.int64)))
        return take_rows(stored, order[order < stored.num_rows]), new

    def _sorted(self, keys: Sequence[pa.Array], window: pa.Array, bits: int) -> _Sorted:
        if window.null_count:
            raise DataError("a row has no window")
        begin, end = _limits(window)
        number = groups_of(keys, len(window), bits=bits).of_row
        order = sorted_by([number, begin])
        number, begin, end = number[order], begin[order], end[order]
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (number[1:] != number[:-1]) | (begin[1:] > _latest(number, end)[:-1])
        starts = np.flatnonzero(begins)
        ends = np.maximum.reduceat(end, starts) if len(starts) else end
        return _Sorted(order, starts, begin[starts], ends)

    def _cell(self, hashes: np.ndarray, keys: Sequence[pa.Array], found: _Sorted, sums: pa.Table) -> pa.Table:
        kind = self.input.field(self.keys).type
        ends = [
            pa.array(each).cast(field.type)
            for each, field in zip((found.begin, found.end), kind, strict=True)
        ]
        window = pa.StructArray.from_arrays(ends, fields=list(kind))
        names = [HASH, *self.layout.key, self._window, *sums.schema.names]
        return pa.table([pa.array(hashes, pa.uint64()), *keys, window, *sums.columns], names=names)

    def _shown(self, sessions: pa.Table) -> pa.Table:
        """Sessions with the results of their functions."""
        groups = arrays_of(sessions, [*self.layout.key, self._window])
        return weighted([*groups, *self.accumulators.finished(sessions)], weights_of(sessions))


def _limits(window: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """When each window begins and when it ends."""
    begin, end = (pc.struct_field(window, [place]).cast(pa.int64()).to_numpy() for place in (0, 1))
    return begin, end


def _any(known: Ends) -> np.ndarray:
    """One session of a key is enough."""
    return known.group


def _latest(number: np.ndarray, end: np.ndarray) -> np.ndarray:
    """For each row the latest end so far of its group; groups are neighbours, with rising numbers."""
    if ((end[1:] >= end[:-1]) | (number[1:] != number[:-1])).all():
        return end
    values, rank = np.unique(end, return_inverse=True)
    base = number * len(values)
    return np.asarray(values[np.maximum.accumulate(base + rank) - base])
