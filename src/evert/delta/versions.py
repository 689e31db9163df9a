"""Changes by key become versions: which row a key had from when to when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.delta.operator import fitted, names_of, numbered, pieces, weighted, with_weight
from evert.delta.upsert import DELETED, OFFSET, POSITION
from evert.trace.arrays import arrays_of, one_chunk, take, take_rows
from evert.trace.consolidate import WEIGHT, hashes_of, joined, summed, with_hash
from evert.trace.gather import gathered
from evert.trace.grouping import grouped
from evert.trace.order import sorted_by
from evert.trace.trace import Layout

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

INGESTED_AT, PARTITION = "_ingested_at", "_partition"
VERSION, VALID_FROM, VALID_TO = "_version", "_valid_from", "_valid_to"
OPEN = 2**63 - 1
"""The end of a version that has none: no time is that late."""


class _Intervals(NamedTuple):
    """Versions that are valid at some time: their places, their numbers, and when they end."""

    at: np.ndarray
    number: np.ndarray
    end: np.ndarray


@dataclass(frozen=True)
class Versions:
    """Keeps all changes of each key, and shows from when to when each was valid.

    A change is valid from its time: what is in the column `time`, shown or not, or, where that is NULL or there is
    none, when it came in. It is valid up to the next change of its key in the order of time; of several at one
    time the last written is valid and the others never. A delete is a change too, after which nothing is valid.

    With `(1, 'a')` of 10:00 stored as number 0, the key in `c0`:

        c0 │ c1   │ time  │ _offset │ _deleted        c0 │ c1 │ number │ from  │ to    │ __w
        ───┼──────┼───────┼─────────┼─────────        ───┼────┼────────┼───────┼───────┼────
         1 │ b    │ 12:00 │       1 │ false            1 │ a  │      0 │ 10:00 │ NULL  │  -1
         1 │ c    │ 11:00 │       2 │ false    ──>     1 │ a  │      0 │ 10:00 │ 11:00 │  +1
         2 │ x    │ 11:00 │       3 │ false            1 │ c  │      2 │ 11:00 │ 12:00 │  +1
         2 │ NULL │ 13:00 │       4 │ true             1 │ b  │      1 │ 12:00 │ NULL  │  +1
                                                       2 │ x  │      3 │ 11:00 │ 13:00 │  +1

    A version's number is its offset, and with several partitions `offset * partitions + partition`: it is one
    version's alone, and the same in every replay. State: the bag `changes`, by key. An epoch reads all changes of
    the keys in it, and emits only versions that begin, or end at another time.
    """

    columns: pa.Schema
    key: tuple[int, ...]
    time: pa.Field | None = None
    partitions: int = 1

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        change = {POSITION: pa.int64(), OFFSET: pa.int64(), DELETED: pa.bool_()}
        return (pa.schema([*numbered(self.taken), *(pa.field(name, kind) for name, kind in change.items())]),)

    @cached_property
    def taken(self) -> pa.Schema:
        """The columns of a change: a row's, when it came in, its partition if there are several, and its time."""
        more = [pa.field(INGESTED_AT, pa.timestamp("us", "UTC"))]
        if self.partitions > 1:
            more.append(pa.field(PARTITION, pa.int32()))
        if self.time is not None and self.time.name not in self.columns.names:
            more.append(self.time)
        return pa.schema([*self.columns, *more])

    @cached_property
    def shown(self) -> pa.Schema:
        """The columns of a version under their names."""
        kind = pa.timestamp("us", "UTC") if self.time is None else self.time.type
        more = [(VERSION, pa.int64()), (VALID_FROM, kind), (VALID_TO, kind)]
        return pa.schema([*self.columns, *(pa.field(*one) for one in more)])

    @property
    def output(self) -> pa.Schema:
        return numbered(self.shown)

    @cached_property
    def layout(self) -> Layout:
        """How the state `changes` is read."""
        columns = [*list(self.output)[:-1], pa.field(DELETED, pa.bool_())]
        return Layout(names_of(self.key), schema=with_weight(pa.schema(columns)))

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = fitted(rows, with_weight(self.inputs[port]))
        count = len(self.columns)
        number = rows.column(OFFSET)
        if self.partitions > 1:
            number = pc.add(pc.multiply(number, self.partitions), rows.column(count + 1).cast(pa.int64()))
        kind = self.shown.field(VALID_FROM).type
        begin = rows.column(count).cast(pa.int64()).cast(kind)
        if self.time is not None:
            begin = pc.coalesce(rows.column(self.taken.names.index(self.time.name)), begin)
        columns = [*rows.columns[:count], number, begin, rows.column(DELETED), rows.column(WEIGHT)]
        return with_hash(pa.table(columns, schema=self.layout.schema), self.layout.key, bits=bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        if given is None or not given.num_rows:
            return
        given = joined([given])
        hashes, keys = hashes_of(given), arrays_of(given, self.layout.key)
        order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=state.bits)
        given, first = take_rows(given, order), order[starts]
        bounds = np.append(starts, len(order))
        trace = state.trace("changes", self.layout)
        for part, old in gathered(trace, hashes[first], [take(key, first) for key in keys], state.bits):
            begin, end = int(bounds[part.start]), int(bounds[part.stop])
            both = [old, given.slice(begin, end - begin)]
            new = summed(both, whole_rows=False, stable=False, bits=state.bits)
            yield from pieces(self._difference(old, new, state.bits))
        state.write("changes", self.layout, given)

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        rows = joined([state.trace("changes", self.layout).rows()])
        found = self._intervals(rows, state.bits)
        yield from pieces([self._versions(rows, found, np.arange(len(found.at)), 1)])

    def _difference(self, old: pa.Table, new: pa.Table, bits: int) -> Iterator[pa.Table]:
        """Versions that are not what they were; which is which is told by their numbers."""
        before, after = self._intervals(old, bits), self._intervals(new, bits)
        _, was, now = np.intersect1d(before.number, after.number, assume_unique=True, return_indices=True)
        same = before.end[was] == after.end[now]
        for rows, found, stays, weight in ((old, before, was[same], -1), (new, after, now[same], 1)):
            changed = np.ones(len(found.at), np.bool_)
            changed[stays] = False
            yield self._versions(rows, found, np.flatnonzero(changed), weight)

    def _intervals(self, rows: pa.Table, bits: int) -> _Intervals:
        count = len(self.columns)
        keys = arrays_of(rows, self.layout.key)
        order, starts = grouped(hashes_of(rows), keys, exact=False, whole_rows=True, stable=False, bits=bits)
        group = np.zeros(len(order), np.int64)
        group[order[starts]] = 1
        group[order] = np.cumsum(group[order])
        number, begin = (
            one_chunk(rows.column(f"c{at}").cast(pa.int64())).to_numpy() for at in (count, count + 1)
        )
        order = sorted_by([group, begin, number])
        group, begin = group[order], begin[order]
        end = np.full(len(order), OPEN)
        follows = np.flatnonzero(group[1:] == group[:-1])
        end[follows] = begin[follows + 1]
        deleted = one_chunk(rows.column(DELETED)).to_numpy(zero_copy_only=False)[order]
        valid = np.flatnonzero(~deleted & (end > begin))
        at = order[valid]
        return _Intervals(at, number[at], end[valid])

    def _versions(self, rows: pa.Table, found: _Intervals, places: np.ndarray, weight: int) -> pa.Table:
        """Some of the versions as rows of the output."""
        at, end = found.at[places], found.end[places]
        columns = [take(array, at) for array in arrays_of(rows, self.output.names[:-1])]
        until = pa.array(end, pa.int64(), mask=end == OPEN).cast(self.output.types[-1])
        return weighted([*columns, until], np.full(len(at), weight))
