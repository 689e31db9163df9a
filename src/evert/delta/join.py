"""Inner joins: what changes on one side meets what is on the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from evert.delta.operator import (
    PIECE_BYTES,
    DataError,
    fitted,
    names_of,
    numbered,
    pieces,
    rows_in,
    weighted,
    with_weight,
)
from evert.trace.arrays import arrays_of, decoded, late, numbers, take
from evert.trace.between import Spans, between
from evert.trace.consolidate import (
    HASH,
    consolidate,
    hashes_of,
    joined,
    sorted_by_hash,
    summed,
    summed_in_order,
    weights_of,
    with_hash,
)
from evert.trace.last import Found, last_upto
from evert.trace.order import By
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

_SIDES = ("left", "right")
MOST_KEPT = 4_000_000
"""So many pairs are remembered by their places; more are looked up again."""

OPEN = 2**63 - 1
"""The end of a span that has none."""

_Match = tuple[np.ndarray, Run, np.ndarray, np.ndarray]
"""Places in the delta, a run of the other side, places in it, and the weights of the pairs."""


class During(NamedTuple):
    """The column of the left that is a time, and those of the right from when and up to when a row is valid."""

    time: int
    begin: int
    end: int


@dataclass(frozen=True)
class Join:
    """Pairs the rows of two sides that have equal keys; without keys, all with all.

    `delta = ΔL ⋈ (R + ΔR) + L ⋈ ΔR`, weights multiplied. L and R are the sides before the epoch.

    With `(1, 'a')` and `(2, 'b')` stored on the right and the key in `c0` of both sides:

        left: c0 │ __w     right: c0 │ c1 │ __w         c0 │ c1 │ c2 │ __w
              ───┼────            ───┼────┼────         ───┼────┼────┼────
               1 │  +2             1 │ x  │  +1   ──>    1 │  1 │ x  │  +2
               3 │  +1                                   1 │  1 │ a  │  +2

    A NULL in a key equals nothing, and its row is dropped before the exchange, unless that key is null-safe.
    A pair that is neither there before nor after the epoch is not emitted: an expression above might fail on it.
    So where something was deleted, the pairs of its key are consolidated. State: the bags `left` and `right`, by
    key.

    With `during`, only rows are paired of which the one on the right is valid at the time of the left: from its
    begin on and before its end, which may be NULL. The rows of a key on the right are never valid at the same
    time. The bags are then ordered by time and begin: a row looks for the one that may be valid, or for those
    within its validity, and not at all rows of its key.
    """

    left: pa.Schema
    right: pa.Schema
    left_key: tuple[int, ...]
    right_key: tuple[int, ...]
    null_safe: tuple[bool, ...]
    during: During | None = None

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return numbered(self.left), numbered(self.right)

    @property
    def output(self) -> pa.Schema:
        return numbered(self.left, self.right)

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        """How the states `left` and `right` are read."""
        left, right = (with_weight(schema) for schema in self.inputs)
        orders: Sequence[tuple[By, ...] | None] = (None, None)
        if self.during is not None:
            orders = [(By(f"c{place}"),) for place in self.during[:2]]
        return (
            Layout(names_of(self.left_key), schema=left, order=orders[0]),
            Layout(names_of(self.right_key), schema=right, order=orders[1]),
        )

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        key = self.layouts[port].key
        rows = fitted(rows, with_weight(self.inputs[port]))
        strict = [name for name, safe in zip(key, self.null_safe, strict=True) if not safe]
        if self.during is not None:
            strict.append(f"c{self.during[port]}")
        for name in strict:
            if rows.column(name).null_count:
                rows = rows.filter(rows.column(name).is_valid())
        return sorted_by_hash(with_hash(rows, key, bits=bits))

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        for piece in self._pairs(deltas, state):
            if piece.num_rows:
                yield piece

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        left, right = (
            state.trace(name, layout).rows() for name, layout in zip(_SIDES, self.layouts, strict=True)
        )
        if left.num_rows and right.num_rows:
            other = Trace(self.layouts[1], [Run.of(right)])
            yield from _Meeting(self, 0, left, other).pairs(np.zeros(0, np.uint64), [])

    def _pairs(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        old = [state.trace(name, layout) for name, layout in zip(_SIDES, self.layouts, strict=True)]
        pairs = zip(deltas, self.layouts, strict=True)
        left, right = (_settled(delta, layout, state.bits) for delta, layout in pairs)
        meetings = []
        if left is not None:
            meetings.append(_Meeting(self, 0, left, old[1].with_newest(right)))
        if right is not None:
            meetings.append(_Meeting(self, 1, right, old[0]))
        deleted = np.unique(np.concatenate([np.zeros(0, np.uint64), *(one.deleted() for one in meetings)]))
        netted: list[pa.Table] = []
        for meeting in meetings:
            yield from meeting.pairs(deleted, netted)
        if netted:
            both = joined([decoded(part) for part in netted])
            yield from pieces([consolidate(both, bits=state.bits).drop_columns([HASH])])
        for name, layout, delta in zip(_SIDES, self.layouts, (left, right), strict=True):
            if delta is not None:
                state.write(name, layout, delta)


class _Meeting:
    """A delta on one port and the rows of the other side."""

    def __init__(self, join: Join, port: int, delta: pa.Table, other: Trace) -> None:
        self._port = port
        self._during = join.during
        self._delta = delta
        self._known: list[_Match] | None = None
        self._other = other
        self._mine = arrays_of(delta, join.inputs[port].names)
        self._theirs = join.inputs[1 - port].names
        self._keys = [self._mine[int(name[1:])] for name in join.layouts[port].key]

    def deleted(self) -> np.ndarray:
        """The hashes of keys under which a pair is taken back."""
        hashes = hashes_of(self._delta)
        found = [np.zeros(0, np.uint64)]
        kept: list[_Match] = []
        count = 0
        for match in self._matches():
            found.append(hashes[match[0][match[3] < 0]])
            count += len(match[0])
            kept = [*kept, match] if count <= MOST_KEPT else []
        self._known = kept if count <= MOST_KEPT else None
        return np.unique(np.concatenate(found))

    def pairs(self, deleted: np.ndarray, netted: list[pa.Table]) -> Iterator[pa.Table]:
        """The pairs; those under keys with deletions are put aside."""
        hashes = hashes_of(self._delta)
        for needles, run, rows, product in self._matches() if self._known is None else self._known:
            if not len(deleted):
                yield from self._made(needles, run, rows, product)
                continue
            aside = np.isin(hashes[needles], deleted)
            for part in self._made(needles[aside], run, rows[aside], product[aside]):
                netted.append(part)
            yield from self._made(needles[~aside], run, rows[~aside], product[~aside])

    def _matches(self) -> Iterator[_Match]:
        weights = weights_of(self._delta)
        for needles, run, rows in self._met():
            yield needles, run, rows, _product(weights[needles], weights_of(run.table)[rows])

    def _met(self) -> Iterator[Found]:
        hashes = hashes_of(self._delta)
        if self._during is None:
            yield from self._other.matches(hashes, self._keys)
        elif self._port:
            begin, end = numbers(self._mine[self._during.begin]), _ends(self._mine[self._during.end])
            null = np.zeros(len(hashes), np.bool_)
            yield from between(self._other, Spans(hashes, self._keys, begin, end - 1, null))
        else:
            time = numbers(self._mine[self._during.time])
            for needles, run, rows in last_upto(self._other, hashes, self._keys, time):
                valid = time[needles] < _ends(take(run.column(f"c{self._during.end}"), rows))
                if valid.any():
                    yield needles[valid], run, rows[valid]

    def _made(
        self, needles: np.ndarray, run: Run, rows: np.ndarray, product: np.ndarray
    ) -> Iterator[pa.Table]:
        theirs = [run.column(name) for name in self._theirs]
        size = self._delta.nbytes // self._delta.num_rows + run.stored.bytes // run.rows
        step = rows_in(PIECE_BYTES, size, 1)
        for start in range(0, len(needles), step):
            part = slice(start, start + step)
            here = [late(array, needles[part]) for array in self._mine]
            there = [late(array, rows[part]) for array in theirs]
            yield weighted(there + here if self._port else here + there, product[part])


def _ends(column: pa.Array) -> np.ndarray:
    return np.asarray(column.cast(pa.int64()).fill_null(OPEN).to_numpy())


def _settled(delta: pa.Table | None, layout: Layout, bits: int) -> pa.Table | None:
    """The delta ready to be joined; rows that cancel each other out are not paired first."""
    if delta is None or not delta.num_rows:
        return None
    if layout.order is not None:
        delta = summed_in_order([delta], layout.order)
        return delta if delta.num_rows else None
    if (weights_of(delta) > 0).all():
        return sorted_by_hash(joined([delta]))
    delta = summed([delta], whole_rows=False, stable=False, bits=bits)
    return delta if delta.num_rows else None


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    most = [max(int(weights.max()), -int(weights.min())) for weights in (left, right)]
    if most[0] * most[1] >= 2**63:
        raise DataError("a joined row would occur more often than can be counted")
    product: np.ndarray = left * right
    return product
