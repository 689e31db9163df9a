"""Reading views: a short look at the catalog, then the files that it names, memory mapped.

A look takes the list of a view's runs in one transaction. A run that is gone when it is opened has been merged
away by a later commit: look again. A run that the catalog still has and that cannot be read is damaged: the
changelog holds the same rows a second time, so they come from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evert.catalog import Catalog, Transaction
from evert.errors import Corrupt, NotReady, Refused, Stopped
from evert.schema.schema import Schema
from evert.trace.arrays import take_rows
from evert.trace.consolidate import weights_of
from evert.trace.keys import hash_rows, same_rows
from evert.trace.runs import Run, RunCache, Stored
from evert.trace.trace import Layout, Trace
from evert.views import changes, definition
from evert.views.changes import WEIGHT
from evert.views.definition import Definition

OUTPUT = "output"
TRACE = "rows"
FORGET_AFTER = 256
RECENT_SECONDS = 1.0
"""How long an opened view is used at most without a look at the catalog's version on the disk."""
STOPPED = ("stopped", "resuming")
"""A view that goes on after it had stopped has no answer until it has caught up with its group."""

_RUNS = (
    "SELECT r.shard, r.id, r.file, r.start, r.bytes, r.rows, r.checksum FROM nodes n"
    " JOIN runs r ON r.node = n.state WHERE n.view = ? AND n.name = ? AND r.trace = ?"
)


@dataclass(frozen=True)
class Seen:
    """What one look at the catalog found of a view: its definition, and its runs, newest first."""

    view: Definition
    runs: tuple[tuple[int, Stored], ...]

    @cached_property
    def layout(self) -> Layout:
        names = self.view.schema.names
        key = range(len(names)) if self.view.key is None else [names.index(name) for name in self.view.key]
        return Layout(tuple(f"c{i}" for i in key))

    @cached_property
    def key_schema(self) -> Schema:
        return Schema.from_arrow(pa.schema([self.view.schema.field(name) for name in self.view.key or ()]))


@dataclass(frozen=True)
class Opened:
    """A view's runs by shard, newest first, open; or, where one is damaged, its rows from the changelog."""

    seen: Seen
    shards: tuple[tuple[Run, ...], ...]
    instead: pa.Table | None = None

    def weighted(self) -> pa.Table:
        """The rows, with their weight as the last column; without a key, shards may have equal ones."""
        view = self.seen.view
        if self.instead is not None:
            return self.instead
        layout = self.seen.layout
        parts = [surface(Trace(layout, runs).rows(), view.schema) for runs in self.shards]
        return pa.concat_tables(parts) if parts else weighted_schema(view.schema).empty_table()


@dataclass(frozen=True)
class _Recent:
    """A view as it was opened under a version of the catalog, and how long to trust that."""

    version: int
    until: float
    opened: Opened

    def reaches(self, position: int) -> bool:
        return self.opened.seen.view.position >= position


class _Gone(Exception):
    """A run could not be opened."""

    def __init__(self, run: int) -> None:
        self.run = run


class Reader:
    """Reads the views of one database, from any number of threads."""

    def __init__(self, catalog: Catalog, folder: Path, *, bits: int = 64) -> None:
        self.catalog = catalog
        self.folder = folder
        self._bits = bits
        self._cache = RunCache()
        self._weights: dict[int, int] = {}
        self._recent: dict[str, _Recent] = {}
        self._most = FORGET_AFTER

    def definition(self, name: str) -> Definition:
        with self.catalog.read() as tx:
            return definition.find(tx, name)

    def open(self, names: Sequence[str]) -> list[Opened]:
        """The views as they are in one and the same commit."""
        return self.opened(lambda tx: [look(tx, readable(tx, name)) for name in names])

    def get(self, name: str, key: Sequence[Any]) -> list[dict[str, Any]]:
        """The rows of a key."""
        (opened,) = self.open([name])
        return self.look_up(opened, key_arrays(opened.seen.view, key))

    def known(self, name: str, at_least: int = 0) -> Opened | None:
        """The view as it is, if it was opened since the last commit and has reached `at_least`; without waiting."""
        known = self._recent.get(name)
        if known is None or known.version != self.catalog.seen() or time.monotonic() >= known.until:
            return None
        return known.opened if known.reaches(at_least) else None

    def is_open(self, name: str) -> bool:
        """Whether the view was opened before, and nothing in it was damaged: then `recent` takes no time."""
        known = self._recent.get(name)
        return known is not None and known.opened.instead is None

    def recent(self, name: str, at_least: int = 0) -> Opened:
        """The view as it is, opened once for each commit; it is known to have reached `at_least`."""
        known = self.known(name, at_least)
        if known is not None:
            return known
        version, now = self.catalog.seen(), time.monotonic()
        with self.catalog.read() as tx:
            seen = look(tx, readable(tx, name))
        last = self._recent.get(name)
        opened = last.opened if last is not None and last.opened.seen == seen else self.open([name])[0]
        if len(self._recent) > FORGET_AFTER:
            self._recent.clear()
        self._recent[name] = _Recent(version, now + RECENT_SECONDS, opened)
        return opened

    def look_up(self, opened: Opened, key: Sequence[pa.Array]) -> list[dict[str, Any]]:
        """The row of a key, given as arrays of one, if there is such a row.

        A key has at most one row in every commit, so the newest run that has the key says what it is.
        """
        schema = opened.seen.view.schema
        if opened.instead is not None:
            return rows_of_key(opened.seen.view, opened.instead, key)
        (sought,) = hash_rows(key, 1, self._bits)
        names = opened.seen.layout.key
        for runs in opened.shards:
            for run in runs:
                places = run.places(sought, names, key)
                if places:
                    weights = run.column(WEIGHT)
                    return [_row(run, place, schema) for place in places if weights[place].as_py() > 0]
        return []

    def count(self, name: str) -> int:
        """How many rows there are: the sum of the weights, whatever run they lie in."""
        (opened,) = self.open([name])
        if opened.instead is not None:
            return total(opened.instead)
        return sum(self._weight(run) for runs in opened.shards for run in runs)

    def _weight(self, run: Run) -> int:
        """The sum of a run's weights, counted once: a run never changes."""
        known = self._weights.get(run.stored.id)
        if known is None:
            known = self._weights[run.stored.id] = int(np.sum(weights_of(run.table)))
        return known

    def content(self, view: Definition, upto: int) -> pa.Table:
        """A view's rows at a position with their weights, from the changelog."""
        entries = changes.look_again(
            self.catalog, lambda tx: changes.entries_at(tx, self.folder, view.feed, upto)
        )
        return changes.consolidated(view.feed, entries, view.schema)

    def opened(self, look: Callable[[Transaction], list[Seen]]) -> list[Opened]:
        """What `look` finds in one commit; it is called again if a run is gone that it has found."""
        damaged: set[int] = set()
        while True:
            with self.catalog.read() as tx:
                seen = look(tx)
            try:
                return [self._open_one(one, damaged) for one in seen]
            except _Gone as gone:
                damaged.add(gone.run)

    def _open_one(self, seen: Seen, damaged: set[int]) -> Opened:
        if any(stored.id in damaged for _, stored in seen.runs):
            return Opened(seen, (), self.content(seen.view, seen.view.position))
        by_shard: dict[int, list[Run]] = {}
        for shard, stored in seen.runs:
            by_shard.setdefault(shard, []).append(self._run(stored))
        return Opened(seen, tuple(tuple(runs) for _, runs in sorted(by_shard.items())))

    def _run(self, stored: Stored) -> Run:
        try:
            run = self._cache.open(self.folder, stored)
        except Corrupt as error:
            raise _Gone(stored.id) from error
        if len(self._cache) > self._most:
            self._forget()
        return run

    def _forget(self) -> None:
        """Let go of runs that no view has any more."""
        with self.catalog.read() as tx:
            self._cache.keep(file for (file,) in tx.all("SELECT DISTINCT file FROM runs"))
        self._weights.clear()
        self._most = max(FORGET_AFTER, 2 * len(self._cache))


def look(tx: Transaction, view: Definition) -> Seen:
    """The runs of a view."""
    rows = tx.all(f"{_RUNS} ORDER BY r.id DESC", view.id, OUTPUT, TRACE)
    return Seen(view, tuple((row[0], Stored(*row[1:])) for row in rows))


def readable(tx: Transaction, name: str) -> Definition:
    """The view, if it has an answer: else `NotReady`, or `Stopped`."""
    view = definition.find(tx, name)
    if view.state in STOPPED:
        raise stopped(view)
    if view.state == "building" or view.columns is None:
        raise not_ready(tx, view)
    return view


def stopped(view: Definition) -> Stopped:
    why = (view.error or {}).get("message") or (view.error or {}).get("error") or "it failed"
    return Stopped(
        f"the view {view.name} stopped at {view.position}: {why}",
        hint=f"correct the cause and call resume(), or define it anew with replace=True; its rows up to there are"
        f" in at({view.position})",
        view=view.name,
        position=view.position,
    )


def not_ready(tx: Transaction, view: Definition) -> NotReady:
    (head,) = tx.one("SELECT head FROM state") or (0,)
    return NotReady(
        f"the view {view.name} is being built (at position {max(view.position, 0)} of {head})",
        hint="call db.refresh(), or keep views up to date with db.run()",
        view=view.name,
    )


def key_arrays(view: Definition, key: Sequence[Any]) -> list[pa.Array]:
    """A key as columns of one row, in the types of the view."""
    if view.key is None:
        raise Refused(
            f"the view {view.name} has no key, so it has no row of a key",
            hint="declare one with key=, or filter arrow()",
            view=view.name,
        )
    if len(key) != len(view.key):
        named = ", ".join(view.key) or "no columns"
        raise Refused(f"the key of {view.name} is {named}, and {len(key)} values were given", view=view.name)
    arrays = []
    for name, value in zip(view.key, key, strict=True):
        try:
            arrays.append(pa.array([value], view.schema.field(name).type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise Refused(
                f"{value!r} is no value of the key column {name}, a {view.schema.field(name).type}",
                view=view.name,
                column=name,
            ) from error
    return arrays


def rows_of_key(view: Definition, weighted: pa.Table, key: Sequence[pa.Array]) -> list[dict[str, Any]]:
    """The rows of a key, given as arrays of one, among all rows of a view."""
    names = view.key or ()
    columns = [weighted.column(view.schema.get_field_index(name)).combine_chunks() for name in names]
    at = np.arange(weighted.num_rows)
    same = same_rows(columns, at, key, np.zeros(len(at), np.int64)) if columns else np.ones(len(at), bool)
    return listed(repeated(take_rows(weighted, np.flatnonzero(same)), view.schema))


def _row(run: Run, place: int, columns: pa.Schema) -> dict[str, Any]:
    return {name: run.column(f"c{i}")[place].as_py() for i, name in enumerate(columns.names)}


def weighted_schema(columns: pa.Schema) -> pa.Schema:
    return pa.schema([*columns, pa.field(WEIGHT, pa.int64())])


def surface(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    """Rows of a trace under the names that the view gives its columns, the weight last."""
    names = [*(f"c{i}" for i in range(len(columns))), WEIGHT]
    return pa.Table.from_arrays([rows.column(name) for name in names], schema=weighted_schema(columns))


def listed(rows: pa.Table) -> list[dict[str, Any]]:
    values: list[dict[str, Any]] = rows.to_pylist()
    return values


def repeated(weighted: pa.Table, columns: pa.Schema) -> pa.Table:
    """The rows as often as their weight says, without it."""
    weights = weighted.column(weighted.num_columns - 1).to_numpy()
    rows = pa.Table.from_arrays(weighted.columns[:-1], schema=columns)
    if (weights < 0).any():
        raise Corrupt("a row of a view is there less than no times", hint="compare it with db.prove()")
    if (weights != 1).any():
        rows = take_rows(rows, np.repeat(np.arange(len(weights)), weights))
    return rows


def total(weighted: pa.Table) -> int:
    """How many rows there are: the sum of the weights."""
    return int(np.sum(weighted.column(weighted.num_columns - 1).to_numpy()))
