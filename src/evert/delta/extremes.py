"""The least and greatest values of groups whose rows may be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evert.delta.accumulate import Function
from evert.delta.normal import normalised
from evert.delta.operator import DataError, numbered, with_weight
from evert.trace.arrays import arrays_of
from evert.trace.consolidate import consolidate, summed_in_order
from evert.trace.ends import Ends, ends
from evert.trace.order import By
from evert.trace.runs import Run
from evert.trace.trace import Layout, Trace

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

FIRST = 2

Results = dict[Function, pa.Array]
"""For each function its result for every group, NULL where a group has none."""


@dataclass(frozen=True)
class Extremes:
    """min and max of one argument: a port of an aggregate, the group and then the argument as its columns.

    A value that leaves may uncover any other one, so all values are kept, in order: the least of a group is its
    first row and the greatest its last. An epoch reads the ends of the groups that it touches.
    State: the ordered bag `values<place of the argument>`, by group, without NULL.
    """

    input: pa.Schema
    functions: tuple[Function, ...]

    @property
    def state(self) -> str:
        """The name of the state."""
        return f"values{self.functions[0].argument}"

    @cached_property
    def layout(self) -> Layout:
        """How the state is read."""
        *key, value = self.input.names
        return Layout(tuple(key), schema=with_weight(self.input), order=(By(value),))

    def prepare(self, rows: pa.Table, bits: int) -> pa.Table:
        *key, value = self.input.names
        if rows.column(value).null_count:
            rows = rows.filter(rows.column(value).is_valid())
        for place, array in enumerate(arrays_of(rows, key)):
            rows = rows.set_column(place, rows.schema.field(place), normalised(array))
        return consolidate(rows, key, bits=bits)

    def apply(
        self, delta: pa.Table | None, state: NodeState, hashes: np.ndarray, keys: Sequence[pa.Array]
    ) -> tuple[Results, Results]:
        """The results of these groups before and after the delta."""
        old = state.trace(self.state, self.layout)
        before = self._results(old, hashes, keys)
        if delta is None or not delta.num_rows:
            return before, before
        delta = summed_in_order([delta], self.layout.order or ())
        state.write(self.state, self.layout, delta)
        new = Trace(self.layout, [Run.of(delta), *old.runs])
        return before, self._results(new, hashes, keys)

    def _results(self, trace: Trace, hashes: np.ndarray, keys: Sequence[pa.Array]) -> Results:
        found = {}
        for function in self.functions:
            read = ends(trace, hashes, keys, _any, first=FIRST, last=function.kind == "max")
            groups, starts = np.unique(read.group, return_index=True)
            place = np.full(len(hashes), -1)
            place[groups] = starts
            (values,) = arrays_of(read.rows, self.input.names[-1:])
            found[function] = values.take(pa.array(place, mask=place < 0))
        return found


def extremes_of(input: pa.Schema, keys: int, functions: Sequence[Function]) -> tuple[Extremes, ...]:
    """One for each argument of min and max, in the order of their places, after the first `keys` columns."""
    found: dict[int, list[Function]] = {}
    for function in dict.fromkeys(functions):
        if function.kind in ("min", "max") and function.argument is not None:
            found.setdefault(function.argument, []).append(function)
    columns = list(input)
    schemas = {place: numbered(pa.schema([*columns[:keys], columns[place]])) for place in sorted(found)}
    return tuple(Extremes(schema, tuple(found[place])) for place, schema in schemas.items())


def results_of(
    parts: Sequence[Extremes],
    deltas: Sequence[pa.Table | None],
    state: NodeState,
    hashes: np.ndarray,
    keys: Sequence[pa.Array],
) -> tuple[Results, Results]:
    """The results of all of these before and after their deltas."""
    before: Results = {}
    after: Results = {}
    for part, delta in zip(parts, deltas, strict=True):
        old, new = part.apply(delta, state, hashes, keys)
        before.update(old)
        after.update(new)
    return before, after


def _any(known: Ends) -> np.ndarray:
    """One row of a group is enough."""
    if (known.weights < 0).any():
        raise DataError("more rows were taken out of a group than had been put in")
    return known.group
