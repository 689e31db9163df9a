"""Logs for tests, and short ways to write to them and read them back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from evert.catalog import SqliteCatalog
from evert.config import Config
from evert.log.embedded import EmbeddedLog
from evert.log.protocol import Log
from evert.testing import MemoryLog
from evert.transaction import Transaction

TINY = Config(
    direct_rows=20,
    spill_bytes=500,
    seal_rows=10,
    seal_bytes=2_000,
    seal_entries=4,
    segment_rows=25,
    background=False,
)


class SweepingCatalog:
    """A catalog that sweeps the log's files before and after every one of its calls.

    An append is a sequence of calls, with file operations between them; so the sweep runs between every two
    steps, and must not take what has been announced and not yet committed.
    """

    def __init__(self, catalog: Any) -> None:
        self._catalog = catalog
        self._sweeping = False
        self.log: EmbeddedLog | None = None

    def _sweep(self) -> None:
        if self.log is not None and not self._sweeping:
            self._sweeping = True
            try:
                self.log.files.sweep()
            finally:
                self._sweeping = False

    def write(self, work: Any) -> Any:
        self._sweep()
        try:
            return self._catalog.write(work)
        finally:
            self._sweep()

    def read(self) -> Any:
        self._sweep()
        return self._catalog.read()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


def make_log(kind: str, folder: Any, clock: Any) -> tuple[Log, Any]:
    """A log and how to close it."""
    if kind == "memory":
        return MemoryLog(clock=clock), lambda: None
    catalog: Any = SqliteCatalog(folder, clock=clock)
    if kind == "sweeping":
        catalog = SweepingCatalog(catalog)
    config = Config(background=False) if kind == "embedded" else TINY
    log = EmbeddedLog(catalog, folder, config)
    if kind == "sweeping":
        catalog.log = log
    return log, lambda: (log.close(), catalog.close())


def begin(log: Log, request: Any = None) -> Transaction:
    return Transaction(log, lambda name: _find(log, name), request)


def _find(log: Log, name: str) -> Any:
    topics = log.topics()
    return (
        topics[name] if name in topics else next(t for t in topics.values() if t.name.lower() == name.lower())
    )


def append(log: Log, topic: str, rows: Any, request: Any = None) -> Any:
    tx = begin(log, request)
    tx.append(topic, rows)
    return tx.commit()


def upsert(log: Log, topic: str, rows: Any) -> Any:
    tx = begin(log)
    tx.upsert(topic, rows)
    return tx.commit()


def delete(log: Log, topic: str, keys: Any) -> Any:
    tx = begin(log)
    tx.delete(topic, keys)
    return tx.commit()


def rows_of(log: Log, *topics: str, **options: Any) -> list[dict[str, Any]]:
    return [row for batch in log.read(topics, **options) for row in batch.rows.to_pylist()]


def column(log: Log, topic: str, name: str, **options: Any) -> list[Any]:
    return [row[name] for row in rows_of(log, topic, **options)]


def as_table(log: Log, topic: str) -> pa.Table:
    return pa.Table.from_batches([batch.rows for batch in log.read([topic])])
