"""The rows near those that an epoch changes, for whoever computes anew what depends on a row's neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

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
    weighted,
    with_weight,
)
from evert.schema.digest import integers, valid
from evert.trace.arrays import arrays_of, one_chunk, take
from evert.trace.between import Spans, gathered_between
from evert.trace.consolidate import consolidate, hashes_of, summed_in_order, weights_of
from evert.trace.grouping import grouped
from evert.trace.order import By, sorted_by
from evert.trace.trace import Layout

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

_LEAST, _MOST = -(2**63), 2**63 - 1


class _Ranges(NamedTuple):
    """What is to be read, and of that the values from `low` to `high`, whose results may be others now."""

    spans: Spans
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Near:
    """Keeps the rows of each key in an order, and gives those around the changes, as far as a frame reaches.

    A row's frame has the rows of its key whose value is less by at most `before`, or greater by at most `after`.
    So a change at `t` is in frames from `t - after` to `t + before`: these rows are asked for anew. With them come
    the rows in their frames. With the values 1, 4, 8, 9 and 20 of `x` stored, and 3 before and 0 after:

        c0 │ c1 │ __w              c0 │ c1 │ c2    │ c3    │ __w
        ───┼────┼────              ───┼────┼───────┼───────┼────
         x │  6 │  +1       ──>     x │  4 │ true  │ false │  +1
         x │ 20 │  -1               x │  6 │ true  │ true  │  +1
                                    x │  8 │ true  │ true  │  +1
                                    x │  9 │ true  │ true  │  +1
                                    x │ 20 │ false │ true  │  +1

    The last column but one says whether the row is there; where it is not, it is a marker of what was taken back,
    with the key and the value and nothing else. The last one says whether the row is asked for: if not, it is
    there only because it is in the frame of one that is. Ranges that read the same rows are one. Rows come in an
    order that their content alone decides, n times if they are there n times. NULL is near NULL alone. What is
    emitted is no delta: nothing takes back what came in an earlier epoch. State: the ordered bag `rows`, by key.
    An epoch reads the rows around the changes, not the key's other rows.
    """

    input: pa.Schema
    keys: tuple[int, ...]
    order: int
    before: int
    after: int

    def __post_init__(self) -> None:
        if not (0 <= self.before <= _MOST and 0 <= self.after <= _MOST):
            raise ValueError(f"a frame cannot reach from {self.before} before to {self.after} after a row")

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (numbered(self.input),)

    @property
    def output(self) -> pa.Schema:
        return numbered(self.input, pa.schema({"there": pa.bool_(), "asked": pa.bool_()}))

    @cached_property
    def layout(self) -> Layout:
        """How the state `rows` is read."""
        order = (By(f"c{self.order}"),)
        return Layout(names_of(self.keys), schema=with_weight(self.inputs[0]), order=order)

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        rows = with_normal_keys(fitted(rows, with_weight(self.inputs[port])), self.layout.key)
        return consolidate(rows, self.layout.key, bits=bits)

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        given = self.layout.empty() if given is None else given
        delta = summed_in_order([given], self.layout.order or ())
        if delta.num_rows:
            yield from pieces(self._near(delta, state))
            state.write("rows", self.layout, delta)

    def _near(self, delta: pa.Table, state: NodeState) -> Iterator[pa.Table]:
        yield self._markers(delta)
        ranges = self._ranges(delta, state.bits)
        trace = state.trace("rows", self.layout).with_newest(delta)
        for span, rows in gathered_between(trace, ranges.spans):
            weights, value = weights_of(rows), integers(self._values(rows))
            if (weights < 0).any():
                raise DataError(f"a row would be there {int(weights.min())} times")
            asked = (ranges.low[span] <= value) & (value <= ranges.high[span])
            there = np.ones(len(asked), np.bool_)
            columns = arrays_of(rows, self.inputs[0].names)
            flags = pa.array(there), pa.array(asked)
            yield from one_by_one([*columns, *flags], np.arange(len(asked)), weights)

    def _markers(self, delta: pa.Table) -> pa.Table:
        """The keys and values of which rows were taken back; of all others there is a row."""
        gone = np.flatnonzero(weights_of(delta) < 0)
        kept = {*self.keys, self.order}
        columns = [
            take(column, gone) if at in kept else pa.nulls(len(gone), column.type)
            for at, column in enumerate(arrays_of(delta, self.inputs[0].names))
        ]
        there, asked = np.zeros(len(gone), np.bool_), np.ones(len(gone), np.bool_)
        return weighted([*columns, pa.array(there), pa.array(asked)], np.ones(len(gone), np.int64))

    def _values(self, rows: pa.Table) -> pa.Array:
        return one_chunk(rows.column(f"c{self.order}"))

    def _ranges(self, delta: pa.Table, bits: int) -> _Ranges:
        """What is to be read for these changes, each row once."""
        hashes, keys, values = hashes_of(delta), arrays_of(delta, self.layout.key), self._values(delta)
        order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=False, bits=bits)
        number = np.zeros(len(order), np.int64)
        number[order[starts]] = 1
        number[order] = np.cumsum(number[order])
        value, present = integers(values), valid(values)
        null = np.zeros(len(value), np.bool_) if present is None else ~present
        order = sorted_by([number, (~null).astype(np.int64), value])
        number, null, value = number[order], null[order], value[order]
        low, high = _less(value, self.after), _more(value, self.before)
        least, most = _less(low, self.before), _more(high, self.after)
        begins = np.ones(len(order), np.bool_)
        begins[1:] = (number[1:] != number[:-1]) | (null[1:] != null[:-1]) | (least[1:] > most[:-1])
        first = np.flatnonzero(begins)
        last = np.append(first[1:], len(order)) - 1
        chosen = order[first]
        spans = Spans(
            hashes[chosen], [take(key, chosen) for key in keys], least[first], most[last], null[first]
        )
        return _Ranges(spans, low[first], high[last])


def _less(value: np.ndarray, by: int) -> np.ndarray:
    """The values less so much, or the least that there is."""
    return np.where(value < _LEAST + by, _LEAST, value - by)


def _more(value: np.ndarray, by: int) -> np.ndarray:
    return np.where(value > _MOST - by, _MOST, value + by)
