"""Tables under changes: rows come, change, go and come back, and the test knows what there should be."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import evert
from evert.schema.schema import Schema

Row = dict[str, Any]
Key = tuple[Any, ...]

HELD_BACK = 0.1
NULLS = 0.05


class Warehouse:
    """Tables of a database, and the same rows in Python.

    A tenth of the rows is held back, and comes in later rounds. A row that changes takes some of its values from
    another row of its table, so that they stay of their kind and foreign keys mostly have their parents; a few
    become NULL. Parents are deleted like others, and may come back.
    """

    def __init__(self, tables: Mapping[str, pa.Table], keys: Mapping[str, str], *, seed: int) -> None:
        self._chance = random.Random(seed)
        self._schemas = {name: table.schema for name, table in tables.items()}
        self._keys = {name: tuple(keys[name].split()) for name in tables}
        self._rows: dict[str, dict[Key, Row]] = {}
        self._waiting: dict[str, list[Row]] = {}
        for name, table in tables.items():
            rows = table.to_pylist()
            self._chance.shuffle(rows)
            held = int(len(rows) * HELD_BACK)
            self._waiting[name] = rows[:held]
            self._rows[name] = {self._key(name, row): row for row in rows[held:]}

    def load(self, db: evert.Database) -> None:
        """Make the tables with their first rows."""
        for name, schema in self._schemas.items():
            made = db.table(name, Schema.from_arrow(schema).ddl(), key=self._keys[name])
            made.upsert(self.table(name))

    def change(self, db: evert.Database, share: float = 0.02) -> None:
        """One round: some rows of every table come, change and go, in one commit."""
        with db.transaction() as tx:
            for name in self._rows:
                gone, written = self._round(name, share)
                if gone:
                    tx.delete(name, gone)
                if written:
                    tx.upsert(name, pa.Table.from_pylist(written, self._schemas[name]))

    def table(self, name: str) -> pa.Table:
        """The present rows of a table."""
        return pa.Table.from_pylist(list(self._rows[name].values()), self._schemas[name])

    def tables(self) -> dict[str, pa.Table]:
        return {name: self.table(name) for name in self._rows}

    def _round(self, name: str, share: float) -> tuple[list[Key], list[Row]]:
        rows, waiting = self._rows[name], self._waiting[name]
        coming = [waiting.pop() for _ in range(min(len(waiting), self._some(len(rows) * share)))]
        gone = self._chance.sample(list(rows), min(self._some(len(rows) * share / 2), len(rows) - 1))
        for key in gone:
            waiting.insert(self._chance.randint(0, len(waiting)), rows.pop(key))
        changing = self._chance.sample(list(rows), min(self._some(max(len(rows) * share, 0.3)), len(rows)))
        others = list(rows.values())
        written = coming + [self._changed(name, rows[key], others) for key in changing]
        rows.update({self._key(name, row): row for row in written})
        return gone, written

    def _some(self, about: float) -> int:
        return int(about + self._chance.random())

    def _changed(self, name: str, row: Row, others: list[Row]) -> Row:
        values = [column for column in row if column not in self._keys[name]]
        changed = dict(row)
        for column in self._chance.sample(values, min(len(values), self._chance.randint(1, 3))):
            null = self._chance.random() < NULLS
            changed[column] = None if null else self._chance.choice(others)[column]
        return changed

    def _key(self, name: str, row: Row) -> Key:
        return tuple(row[column] for column in self._keys[name])
