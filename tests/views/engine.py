"""A stand-in for the engine: it keeps views in a database as epochs would, without Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

import evert
from evert.log.files import let_go
from evert.trace import Layout, NodeState, RunCache, RunWriter, Stored, consolidate
from evert.views import View, changes, definition
from evert.views.definition import Definition, Read
from evert.views.states import add as add_node

COLUMNS = pa.schema([("shop", pa.string()), ("n", pa.int64())])
Row = tuple[Any, ...]


def open_database(folder: Any, **settings: Any) -> evert.Database:
    return evert.open(folder, background=False, **settings)


class Engine:
    """Plans views with given columns, and commits epochs of given deltas."""

    def __init__(self, db: evert.Database, *, shards: int = 2) -> None:
        self.db = db
        self.shards = shards
        self._cache = RunCache()
        db.catalog.write(
            lambda tx: tx.run("INSERT INTO engine VALUES ('shards', ?) ON CONFLICT DO NOTHING", str(shards))
        )

    def define(self, name: str, query: str = "SELECT 1", **options: Any) -> View:
        """Define a view, which nobody has planned yet."""
        self.db.catalog.write(lambda tx: definition.create(tx, name, query, **options))
        return self.db.view(name)

    def plan(
        self,
        name: str,
        columns: pa.Schema = COLUMNS,
        key: Sequence[str] | None = None,
        reads: Iterable[Read] = (),
        *,
        replacement: bool = False,
    ) -> Definition:
        def work(tx: Any) -> Definition:
            view = definition.find(tx, name)
            found = definition.replacement_of(tx, view) if replacement else view
            assert found is not None
            definition.planned(
                tx,
                found.id,
                columns=columns,
                key=key,
                reads=reads,
                explanation="[]",
                recomputes=None,
                fingerprint="f",
            )
            add_node(tx, found.id, "output", "output", "f")
            planned = definition.by_id(tx, found.id)
            assert planned is not None
            return planned

        return self.db.catalog.write(work)

    def view(
        self, name: str, key: Sequence[str] | None = None, columns: pa.Schema = COLUMNS, **options: Any
    ) -> Any:
        """A view that is live and empty at position 0."""
        made = self.define(name, **options)
        self.plan(name, columns, key)
        self.epoch(0, {name: {}})
        return made

    def epoch(
        self, position: int, deltas: dict[str, dict[Row, int]], *, merge: bool = False, live: bool = True
    ) -> None:
        """Bring views to a position in one commit; `merge` merges all runs of each shard."""
        with self.db.catalog.read() as tx:
            views = {name: definition.find(tx, name) for name in deltas}
        files = self.db.log.files
        prefix = files.announce_prefix("state")
        work = {
            view: self._kernels(view, table_of(view.schema, deltas[name]), prefix, merge)
            for name, view in views.items()
        }

        def commit(tx: Any) -> None:
            files.claim(tx, prefix)
            for view, states in work.items():
                pieces = []
                for node, state in states:
                    self._commit_runs(tx, node, state)
                    pieces += [changes.piece(named(rows, view.schema)) for rows in state.published]
                changes.publish(tx, view.feed, position, tx.now, pieces)
                definition.mark(tx, view.id, "live" if live else view.state, position=position)
            first = next(iter(work))
            tx.run(
                'INSERT INTO epochs ("group", shown, after, upto, at, micros, rows, changed)'
                " VALUES (?, 1, ?, ?, ?, 1500, 0, 0)",
                first.group,
                max(first.position, 0),
                position,
                tx.now,
            )

        self.db.catalog.write(commit)

    def _kernels(
        self, view: Definition, delta: pa.Table, prefix: str, merge: bool
    ) -> list[tuple[int, NodeState]]:
        key = (
            range(len(view.schema))
            if view.key is None
            else [view.schema.names.index(name) for name in view.key]
        )
        layout = Layout(tuple(f"c{i}" for i in key))
        rows = consolidate(delta, layout.key)
        owners = rows.column("__h").to_numpy() % np.uint64(self.shards)
        with self.db.catalog.read() as tx:
            (node,) = tx.one("SELECT state FROM nodes WHERE view = ? AND name = 'output'", view.id) or (0,)
            sql = "SELECT shard, id, file, start, bytes, rows, checksum FROM runs WHERE node = ? ORDER BY id DESC"
            there = tx.all(sql, node)
        states = []
        for shard in range(self.shards):
            runs = [Stored(*row[1:]) for row in there if row[0] == shard]
            mine = rows.filter(pa.array(owners == shard))
            with RunWriter(self.db.path, f"{prefix}{view.id}-{shard}.runs") as writer:
                state = NodeState(
                    shard=shard,
                    first=False,
                    runs={} if merge else {"rows": runs},
                    writer=writer,
                    cache=self._cache,
                    folder=self.db.path,
                )
                if merge:
                    tables = [mine, *(self._cache.open(self.db.path, run).table for run in runs)]
                    state.removed.extend(run.id for run in runs)
                    state.write("rows", layout, consolidate(pa.concat_tables(tables), layout.key))
                else:
                    state.write("rows", layout, mine)
            if mine.num_rows:
                state.publish(mine.drop_columns(["__h"]))
            states.append((node, state))
        return states

    def _commit_runs(self, tx: Any, node: int, state: NodeState) -> None:
        for trace, run in state.added:
            tx.run(
                "INSERT INTO runs (node, trace, shard, file, start, bytes, rows, checksum)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                node,
                trace,
                state.shard,
                run.file,
                run.start,
                run.bytes,
                run.rows,
                run.checksum,
            )
        gone = [tx.one("SELECT file FROM runs WHERE id = ?", number)[0] for number in state.removed]
        for number in state.removed:
            tx.run("DELETE FROM runs WHERE id = ?", number)
        let_go(tx, gone)

    def plan_reads(self, name: str, reads: Iterable[Read]) -> None:
        """Say what a view reads."""
        text = json.dumps([asdict(read) for read in reads])
        self.db.catalog.write(lambda tx: tx.run("UPDATE views SET reads = ? WHERE name = ?", text, name))

    def stop(self, name: str, message: str = "the sum is too large") -> None:
        def work(tx: Any) -> None:
            view = definition.find(tx, name)
            definition.mark(tx, view.id, "stopped", error={"error": "data", "message": message})

        self.db.catalog.write(work)


def table_of(columns: pa.Schema, delta: dict[Row, int]) -> pa.Table:
    """A delta as the engine has it: numbered columns, and the weight."""
    rows, weights = list(delta), list(delta.values())
    arrays = [pa.array([row[i] for row in rows], field.type) for i, field in enumerate(columns)]
    names = [f"c{i}" for i in range(len(columns))]
    return pa.table([*arrays, pa.array(weights, pa.int64())], names=[*names, "__w"])


def named(rows: pa.Table, columns: pa.Schema) -> pa.Table:
    return rows.rename_columns([*columns.names, "__w"])


def counted(table: pa.Table) -> Counter[Row]:
    """The rows of a table, each as often as it is there."""
    return Counter(tuple(row.values()) for row in table.to_pylist())


def weights(table: pa.Table) -> dict[Row, int]:
    """The rows of a change with their weights; each may be there once."""
    found: dict[Row, int] = {}
    for row in table.to_pylist():
        *values, weight = row.values()
        assert tuple(values) not in found
        found[tuple(values)] = weight
    return found
