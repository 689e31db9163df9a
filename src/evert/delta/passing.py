"""Rows that time passes by: they go, or come, when a moment reaches a value of theirs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.operator import DataError, fitted, names_of, numbered, pieces, with_weight
from evert.trace.arrays import arrays_of, one_chunk, take_rows
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
)
from evert.trace.ends import Ends, ends
from evert.trace.keys import hash_rows
from evert.trace.order import By
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

SLOTS = 64
"""Rows are kept in so many slots, each in the order of their values, so that shards share them."""
_FIRST = 16
_NEVER = -(2**63)


@dataclass(frozen=True)
class Passing(ABC):
    """What both kinds have: rows that the moment has not reached yet are kept, in the order of their values.

    Port 0 has the rows, with the value in column `value`; port 1 the moment, one row that is replaced by a later
    one. A value that equals the moment has been reached, unless `open`. A row without a value counts for nothing.
    `shift` is how far the moment is ahead of the clock, in microseconds, where that is always the same. State: the
    ordered bag `rows` of what is still ahead, by slot, and `moment`, the newest moment by slot.
    """

    rows: pa.Schema
    value: int
    open: bool = False
    shift: int | None = None

    def __post_init__(self) -> None:
        if not _has_moments(self.rows.field(self.value).type):
            raise ValueError(f"{self.rows.field(self.value).type} is no time")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return numbered(self.rows), numbered(pa.schema([self.rows.field(self.value)]))

    @property
    def output(self) -> pa.Schema:
        return numbered(self.rows)

    @property
    def layout(self) -> Layout:
        """How the state `rows` is read: the slot is behind the columns."""
        schema = numbered(self.rows, pa.schema({"slot": pa.int8()}))
        order = (By(f"c{self.value}", False, False),)
        return Layout(names_of([len(self.rows)]), schema=with_weight(schema), order=order)

    @property
    def moments(self) -> Layout:
        """How the state `moment` is read."""
        schema = pa.schema({"c0": pa.int8(), "c1": pa.int64(), "__gone": pa.bool_()})
        return Layout(("c0",), latest=True, schema=schema)

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = fitted(rows, with_weight(self.inputs[port]))
        if port:
            return _everywhere(rows, bits)
        there = rows.column(f"c{self.value}").is_valid()
        if rows.column(f"c{self.value}").null_count:
            rows = rows.filter(there)
        spread = hash_rows(arrays_of(rows, self.inputs[0].names), rows.num_rows) >> np.uint64(58)
        place = rows.num_columns - 1
        slot = self.layout.schema.field(place)  # type: ignore[union-attr]
        rows = rows.add_column(place, slot, pa.array(spread.astype(np.int8)))
        return summed_in_order([with_hash(rows, self.layout.key, bits=bits)], self.layout.order or ())

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        before, now = self._moments(deltas[1], state)
        given = self.layout.empty() if deltas[0] is None else deltas[0]
        delta = summed_in_order([given], self.layout.order or ())
        ahead = self._ahead(delta, before)
        behind, delta = (take_rows(delta, np.flatnonzero(which)) for which in (~ahead, ahead))
        reached = delta.slice(0, 0)
        if now > before:
            reached = self._reached(state.trace("rows", self.layout).with_newest(delta), now, state.bits)
        state.write("rows", self.layout, plus(delta, negate(reached)))
        shown = self._shown(behind, delta, reached)
        yield from pieces([consolidate(self._plain(shown), bits=state.bits).drop_columns([HASH])])

    @abstractmethod
    def _shown(self, behind: pa.Table, delta: pa.Table, reached: pa.Table) -> pa.Table:
        """What changes: of the delta, what the moment had left behind before and what was ahead of it; of all rows
        that were ahead, those that it has reached now."""

    def due(self, trace: Trace, bits: int) -> int | None:
        """When the clock reaches the first of the kept rows, in microseconds; None if there are none.

        If the moment is not always ahead of the clock by the same, it is 0: any time may be it.
        """
        found = ends(trace, *_slots(bits), lambda known: known.group, first=1)
        if not found.rows.num_rows:
            return None
        return 0 if self.shift is None else int(self._values(found.rows).min()) - self.shift + self.open

    def _moments(self, given: pa.Table | None, state: NodeState) -> tuple[int, int]:
        """The moment before the epoch and after it."""
        trace = state.trace("moment", self.moments)
        known = trace.rows()
        before = int(np.max(known.column("c1").to_numpy())) if known.num_rows else _NEVER
        if given is None or not given.num_rows:
            return before, before
        newest = given.filter(pa.array(weights_of(joined([given])) > 0))
        if not newest.num_rows:
            return before, before
        now = int(np.max(newest.column("c1").to_numpy()))
        if now < before:
            raise DataError("time went backwards: a row that was left behind may be ahead again")
        if now > before:
            _, first = np.unique(hashes_of(joined([newest])), return_index=True)
            kept = take_rows(joined([newest]).drop_columns([WEIGHT]), first)
            values = pa.array(np.full(kept.num_rows, now))
            kept = kept.set_column(2, "c1", values).append_column("__gone", pa.array([False] * kept.num_rows))
            state.write("moment", self.moments, kept)
        return before, now

    def _ahead(self, rows: pa.Table, moment: int) -> np.ndarray:
        values = self._values(rows)
        return values >= moment if self.open else values > moment

    def _reached(self, trace: Trace, moment: int, bits: int) -> pa.Table:
        """The kept rows that the moment has reached."""

        def enough(known: Ends) -> np.ndarray:
            if (known.weights < 0).any():
                raise DataError("a row was taken back that is not there")
            return known.group[self._ahead(known.rows, moment)]

        found = ends(trace, *_slots(bits), enough, first=_FIRST).rows
        return take_rows(found, np.flatnonzero(~self._ahead(found, moment)))

    def _values(self, rows: pa.Table) -> np.ndarray:
        return _numbers(one_chunk(rows.column(f"c{self.value}")))

    def _plain(self, rows: pa.Table) -> pa.Table:
        return rows.drop_columns([HASH, *self.layout.key])


@dataclass(frozen=True)
class Leaving(Passing):
    """Rows until the moment reaches their value: `WHERE at > now() - INTERVAL 1 DAY`.

    With the rows of 3 and 8 shown, the moment going from 2 to 5:

        c0 │ __w              c0 │ __w
        ───┼────              ───┼────
         4 │  +1       ──>     3 │  -1
         9 │  +1               9 │  +1

    A row that has been left behind is forgotten; to take it back does nothing.
    """

    def _shown(self, behind: pa.Table, delta: pa.Table, reached: pa.Table) -> pa.Table:
        return plus(delta, negate(reached))

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        yield from pieces([self._plain(state.trace("rows", self.layout).rows())])


@dataclass(frozen=True)
class Coming(Passing):
    """Rows from when the moment reaches their value: `WHERE at <= now()`.

    With the row of 3 kept, the moment going from 2 to 5:

        c0 │ __w              c0 │ __w
        ───┼────              ───┼────
         4 │  +1       ──>     3 │  +1
         9 │  +1               4 │  +1

    A row that has been reached is kept no longer. If it is `final`, nothing may change of what has been reached.
    """

    final: bool = False

    def _shown(self, behind: pa.Table, delta: pa.Table, reached: pa.Table) -> pa.Table:
        if self.final and behind.num_rows:
            raise DataError("a row changes that is final")
        return plus(behind, reached)


def _has_moments(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_date32(kind)


def _numbers(array: pa.Array) -> np.ndarray:
    whole = array.cast(pa.int32()) if pa.types.is_date32(array.type) else array
    return np.asarray(whole.cast(pa.int64()).to_numpy())


def _slots(bits: int) -> tuple[np.ndarray, list[pa.Array]]:
    """Every slot as a needle."""
    slots = pa.array(np.arange(SLOTS, dtype=np.int8))
    return hash_rows([slots], SLOTS, bits), [slots]


def _everywhere(rows: pa.Table, bits: int) -> pa.Table:
    """Moments for each slot, in whatever shard it is."""
    hashes, (slots,) = _slots(bits)
    there = rows.filter(rows.column("c0").is_valid())
    size = there.num_rows
    values = _numbers(one_chunk(joined([there]).column("c0")))
    columns = [
        pa.array(np.tile(hashes, size)),
        pa.concat_arrays([slots] * size) if size else slots[:0],
        pa.array(np.repeat(values, SLOTS)),
        pa.array(np.repeat(weights_of(joined([there])), SLOTS)),
    ]
    return pa.table(columns, names=[HASH, "c0", "c1", WEIGHT])
