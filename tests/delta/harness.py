"""Runs one operator over epochs as the engine does: prepare pieces, split by shard, apply, commit the runs.

After each epoch, an operator that remembers must have in its state exactly what it has given so far.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evert.delta.content import Content, Remembers
from evert.delta.operator import Operator
from evert.trace.arrays import decoded
from evert.trace.runs import RunCache, RunWriter, Stored
from evert.trace.shard import NodeState
from evert.trace.trace import Layout, Trace

Row = tuple[Any, ...]


class Node:
    """An operator with its committed runs in a folder."""

    def __init__(
        self,
        operator: Any,
        folder: Path,
        *,
        bits: int = 64,
        shards: int = 2,
        look: bool = True,
        wanted: frozenset[int] | None = None,
    ) -> None:
        self.operator: Operator = operator
        self.published: list[pa.Table] = []
        self._folder = folder
        self._bits = bits
        self._shards = shards
        self._epoch = 0
        self._next = 1
        self._look = look and wanted is None
        self._wanted = wanted
        self._given: Counter[Any] = Counter()
        self._cache = RunCache()
        self._runs: dict[int, dict[str, list[Stored]]] = {shard: {} for shard in range(shards)}

    @property
    def written(self) -> int:
        """How many runs there have been."""
        return self._next - 1

    def restart(self) -> None:
        """What a new process knows: the runs of the catalog, and nothing else."""
        self._cache = RunCache()
        self.operator = pickle.loads(pickle.dumps(self.operator))

    def epoch(self, *deltas: pa.Table | None, pieces: int = 1) -> pa.Table:
        """One epoch; the operator's delta."""
        cells = [self._cells(port, delta, pieces) for port, delta in enumerate(deltas)]
        first = self._epoch == 0
        self._epoch += 1
        self.published = []
        emitted = [_empty(self.operator.output)]
        for shard in range(self._shards):
            given = [self._of_shard(port, shard) for port in cells]
            if first or any(delta is not None for delta in given) or getattr(self.operator, "replace", False):
                emitted.extend(self._apply(shard, first, given))
        delta = pa.concat_tables(emitted)
        self._check_content(delta)
        return delta

    def _check_content(self, delta: pa.Table) -> None:
        if self._look and isinstance(self.operator, Remembers):
            self._given = plus(self._given, count(delta))
            parts = [
                part
                for shard in range(self._shards)
                for part in map(decoded, Content(self.operator).apply([], self._state(shard, False, None)))
            ]
            assert all(weight > 0 for part in parts for _, weight in rows_of(part))
            assert count(pa.concat_tables([_empty(self.operator.output), *parts])) == self._given

    def _apply(self, shard: int, first: bool, given: Sequence[pa.Table | None]) -> list[pa.Table]:
        runs = self._runs[shard]
        writer = RunWriter(self._folder, f"state/{self._epoch}-{shard}")
        state = self._state(shard, first, writer)
        with writer:
            emitted = [decoded(delta) for delta in self.operator.apply(given, state)]
        for name, stored in runs.items():
            runs[name] = [run for run in stored if run.id not in state.removed]
        for name, stored_run in state.added:
            runs.setdefault(name, []).append(replace(stored_run, id=self._next))
            self._next += 1
        self.published.extend(state.published)
        for delta in emitted:
            assert delta.schema.names == [*self.operator.output.names, "__w"]
            assert delta.num_rows
        return emitted

    def trace(self, shard: int, name: str, layout: Layout) -> Trace:
        """What is stored in a shard."""
        return self._state(shard, False, None).trace(name, layout)

    def _state(self, shard: int, first: bool, writer: Any) -> NodeState:
        return NodeState(
            shard=shard,
            first=first,
            runs={name: tuple(reversed(stored)) for name, stored in self._runs[shard].items()},
            writer=writer,
            cache=self._cache,
            folder=self._folder,
            bits=self._bits,
            wanted=self._wanted,
        )

    def _cells(self, port: int, delta: pa.Table | None, pieces: int) -> list[pa.Table]:
        if delta is None:
            return []
        step = max(1, -(-delta.num_rows // pieces))
        parts = [delta.slice(start, step) for start in range(0, delta.num_rows, step)] or [delta]
        return [decoded(self.operator.prepare(port, part, self._bits)) for part in parts]

    def _of_shard(self, cells: Sequence[pa.Table], shard: int) -> pa.Table | None:
        chosen = []
        for cell in cells:
            assert cell.schema.names[0] == "__h"
            hashes = cell.column("__h").to_numpy()
            part = cell.filter(pa.array(hashes % np.uint64(self._shards) == shard))
            if part.num_rows:
                chosen.append(part)
        return pa.concat_tables(chosen) if chosen else None


def _empty(schema: pa.Schema) -> pa.Table:
    return schema.append(pa.field("__w", pa.int64())).empty_table()


def table(schema: pa.Schema, rows: Sequence[Row], weights: Sequence[int]) -> pa.Table:
    """A delta of these rows."""
    arrays = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    names = [f"c{at}" for at in range(len(schema))]
    return pa.table([*arrays, pa.array(weights, pa.int64())], names=[*names, "__w"])


def canon(value: Any) -> Any:
    """A value that compares like the original does exactly: NaN equals NaN, and -0.0 is not 0.0."""
    if isinstance(value, float):
        return ("float", "nan" if value != value else repr(value))
    if isinstance(value, list | tuple):
        return tuple(canon(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, canon(item)) for name, item in value.items())
    return value


def normal(value: Any) -> Any:
    """A value that compares as Spark compares keys: also -0.0 equals 0.0."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(normal(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, normal(item)) for name, item in value.items())
    return value


def rows_of(delta: pa.Table) -> list[tuple[Row, int]]:
    """Rows of Python values with their weights."""
    columns = [delta.column(name).to_pylist() for name in delta.schema.names if name not in ("__h", "__w")]
    rows = list(zip(*columns, strict=True)) if columns else [()] * delta.num_rows
    return list(zip(rows, delta.column("__w").to_pylist(), strict=True))


def count(delta: pa.Table) -> Counter[Any]:
    """The sum of a delta, without rows that cancel out."""
    found: Counter[Any] = Counter()
    for row, weight in rows_of(delta):
        found[canon(row)] += weight
    return without_zero(found)


def without_zero(counter: Counter[Any]) -> Counter[Any]:
    return Counter({row: weight for row, weight in counter.items() if weight})


def plus(left: Counter[Any], right: Counter[Any]) -> Counter[Any]:
    """The sum of two multisets with signs."""
    found = Counter(left)
    for row, weight in right.items():
        found[row] += weight
    return without_zero(found)
