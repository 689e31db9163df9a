"""A view's rows, read from the catalog: no JVM is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evert.catalog import Catalog, Transaction
from evert.errors import NotFound, TopicExists
from evert.log.names import check_name, folded


@dataclass(frozen=True)
class Answer:
    """A view's rows at a position."""

    position: int
    rows: pa.Table


class View:
    """A query whose answer is kept."""

    def __init__(self, catalog: Catalog, name: str, query: str) -> None:
        self._catalog = catalog
        self.name = name
        self.query = query

    def answer(self) -> Answer:
        """The rows and the position they are right for, in one look."""
        with self._catalog.read() as tx:
            row = tx.one("SELECT position, data FROM views WHERE folded = ?", folded(self.name))
        if row is None or row[1] is None:
            raise NotFound(f"the view {self.name} has no rows yet", hint="call db.refresh()")
        with pa.ipc.open_stream(row[1]) as stream:
            return Answer(row[0], stream.read_all())

    @property
    def position(self) -> int:
        return self.answer().position

    def arrow(self) -> pa.Table:
        return self.answer().rows

    def rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.arrow().to_pylist()
        return rows

    def __repr__(self) -> str:
        return f"<View {self.name}>"


def create(tx: Transaction, name: str, query: str) -> None:
    """Define a view; defining it again with the same query is fine."""
    name = check_name(name, "view")
    taken = tx.one("SELECT name FROM topics WHERE folded = ?", folded(name))
    there = tx.one("SELECT name, query FROM views WHERE folded = ?", folded(name))
    if taken or (there and (there[0], there[1]) != (name, query)):
        raise TopicExists(f"{name} exists with another definition", hint="choose another name")
    if not there:
        tx.run("INSERT INTO views VALUES (?, ?, ?, 0, 0, NULL)", name, folded(name), query)


def definitions(tx: Transaction) -> dict[str, str]:
    """The queries of all views, in the order in which they were defined."""
    return dict(tx.all("SELECT name, query FROM views ORDER BY rowid"))


def store(tx: Transaction, name: str, position: int, rows: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    sql = "UPDATE views SET position = ?, at = ?, data = ? WHERE folded = ?"
    tx.run(sql, position, tx.now, sink.getvalue().to_pybytes(), folded(name))
