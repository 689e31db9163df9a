"""Rows of one side by whether the other side has a match: EXISTS and NOT EXISTS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.normal import normalised
from evert.delta.operator import DataError, fitted, names_of, numbered, pieces, weighted, with_weight
from evert.trace.arrays import arrays_of, take, take_rows
from evert.trace.consolidate import (
    GONE,
    HASH,
    WEIGHT,
    consolidate,
    hashes_of,
    sorted_by_hash,
    summed,
    weights_of,
    with_hash,
)
from evert.trace.gather import gathered
from evert.trace.grouping import grouped
from evert.trace.keys import hash_rows
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

COUNT = "count"
_KINDS = ("semi", "anti", "existence")


@dataclass(frozen=True)
class Semi:
    """Shows the rows of the left by whether the right has a row with their key: with one (semi), without one
    (anti), or all of them with a flag (existence).

    `delta = ΔL` for a key that has a match before and after the epoch or neither, else
    `delta = shown(L + ΔL, after) - shown(L, before)`, where L is the left before the epoch

    A semi join with the left rows `(1, 'a')`, `(2, 'b')` and two right rows of the key 2, the key in `c0`:

        left: c0 │ c1 │ __w     right: c0 │ __w         c0 │ c1 │ __w
              ───┼────┼────            ───┼────         ───┼────┼────
               1 │ x  │  +1             1 │  +1   ──>    1 │ x  │  +1
               2 │ y  │  +1             2 │  -1          1 │ a  │  +1
               3 │ z  │  +1                              2 │ y  │  +1

    The right has the key columns only, in the order of `left_key`; without keys any right row is a match. A NULL
    in a key that is not null-safe matches nothing: such right rows are dropped before the exchange, such left
    rows are shown without a match and never stored. State: the bag `left`, by key, and the latest trace `right`,
    the number of right rows of each key. What is emitted is consolidated: no row comes that is not there.
    """

    left: pa.Schema
    right: pa.Schema
    left_key: tuple[int, ...]
    null_safe: tuple[bool, ...]
    kind: str

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"a semi join is one of {', '.join(_KINDS)}, not {self.kind!r}")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return numbered(self.left), numbered(self.right)

    @property
    def output(self) -> pa.Schema:
        flag = pa.schema([pa.field("", pa.bool_())] if self.kind == "existence" else [])
        return numbered(self.left, flag)

    @property
    def layouts(self) -> tuple[Layout, Layout]:
        """How the states `left` and `right` are read."""
        left, right = self.inputs
        count = pa.schema([*right, pa.field(COUNT, pa.int64()), pa.field(GONE, pa.bool_())])
        return (
            Layout(names_of(self.left_key), schema=with_weight(left)),
            Layout(tuple(right.names), latest=True, schema=count),
        )

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = fitted(rows, with_weight(self.inputs[port]))
        key = self.layouts[port].key
        able = self._able(rows, key)
        if port == 1:
            rows = take_rows(rows, np.flatnonzero(able))
            columns = [normalised(column) for column in arrays_of(rows, key)]
            return consolidate(pa.table([*columns, rows.column(WEIGHT)], schema=rows.schema), key, bits=bits)
        if able.all():
            return sorted_by_hash(with_hash(rows, key, bits=bits))
        if self.kind == "semi":
            return with_hash(take_rows(rows, np.flatnonzero(able)), key, bits=bits)
        return self._spread(rows, key, able, bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        yield from pieces(self._changes(deltas, state))

    def _changes(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        lefts, rights = (
            state.trace(name, layout) for name, layout in zip(("left", "right"), self.layouts, strict=True)
        )
        left, right = (_settled(delta, port == 1, state.bits) for port, delta in enumerate(deltas))
        counts, before = (None, np.empty(0, np.bool_)) if right is None else self._counted(right, rights)
        if left is not None:
            yield from self._unflipped(left, rights, rights.with_newest(counts), state.bits)
        if counts is not None:
            after = ~arrays_of(counts, [GONE])[0].to_numpy(zero_copy_only=False)
            for match in (True, False):
                flipped = take_rows(counts, np.flatnonzero((before != match) & (after == match)))
                yield from self._flipped(flipped, not match, lefts, -1, state.bits)
                yield from self._flipped(flipped, match, lefts.with_newest(left), 1, state.bits)
            state.write("right", self.layouts[1], counts)
        if left is not None:
            able = self._able(left, self.layouts[0].key)
            state.write("left", self.layouts[0], take_rows(left, np.flatnonzero(able)))

    def _counted(self, right: pa.Table, trace: Trace) -> tuple[pa.Table, np.ndarray]:
        """The number of right rows of each key in the delta, and which of the keys had any before."""
        found, stored = trace.newest(hashes_of(right), arrays_of(right, self.layouts[1].key))
        counts = weights_of(right).copy()
        counts[found] += arrays_of(stored, [COUNT])[0].to_numpy()
        if (counts < 0).any():
            raise DataError("more rows of a key were taken out of the right side than had been put in")
        columns = [*right.drop_columns([WEIGHT]).columns, pa.array(counts), pa.array(counts == 0)]
        return pa.table(columns, names=[HASH, *self.layouts[1].key, COUNT, GONE]), found

    def _unflipped(self, left: pa.Table, old: Trace, new: Trace, bits: int) -> Iterator[pa.Table]:
        """The left's delta under keys for which the epoch changes nothing."""
        hashes, keys = hashes_of(left), arrays_of(left, self.layouts[0].key)
        order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=bits)
        first = order[starts]
        needles = hashes[first], [take(key, first) for key in keys]
        before, after = (trace.newest(*needles)[0] for trace in (old, new))
        many = np.diff(np.append(starts, len(order)))
        for match in (True, False):
            chosen = np.repeat((before == match) & (after == match), many)
            yield from self._shown(take_rows(left, order[chosen]), match, 1)

    def _flipped(self, keys: pa.Table, match: bool, trace: Trace, sign: int, bits: int) -> Iterator[pa.Table]:
        """All rows that this left has under these keys, as they are shown with a match or without one."""
        if self._shows(match):
            needles = arrays_of(keys, self.layouts[1].key)
            for _, rows in gathered(trace, hashes_of(keys), needles, bits):
                yield from self._shown(rows, match, sign)

    def _shown(self, rows: pa.Table, match: bool, sign: int) -> Iterator[pa.Table]:
        if self._shows(match) and rows.num_rows:
            flag = [pa.array(np.full(rows.num_rows, match))] if self.kind == "existence" else []
            yield weighted([*arrays_of(rows, self.inputs[0].names), *flag], sign * weights_of(rows))

    def _shows(self, match: bool) -> bool:
        return self.kind == "existence" or match == (self.kind == "semi")

    def _able(self, rows: pa.Table, key: Sequence[str]) -> np.ndarray:
        """Which rows may have a match: no NULL in a key that is not null-safe."""
        able = np.ones(rows.num_rows, np.bool_)
        for name, safe in zip(key, self.null_safe, strict=True):
            if not safe and rows.column(name).null_count:
                able &= rows.column(name).is_valid().to_numpy()
        return able

    def _spread(self, rows: pa.Table, key: Sequence[str], able: np.ndarray, bits: int) -> pa.Table:
        """What meets nothing is hashed by its content: NULLs may be many, and one shard would get them all."""
        content, columns = (arrays_of(rows, names) for names in (self.inputs[0].names, key))
        hashes = np.where(able, *(hash_rows(arrays, len(able), bits) for arrays in (columns, content)))
        return rows.add_column(0, pa.field(HASH, pa.uint64()), pa.array(hashes))


def _settled(delta: pa.Table | None, whole_rows: bool, bits: int) -> pa.Table | None:
    """The delta consolidated; None if nothing is left of it."""
    if delta is None:
        return None
    delta = summed([delta], whole_rows=whole_rows, stable=False, bits=bits)
    return delta if delta.num_rows else None
