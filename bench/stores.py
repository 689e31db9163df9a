"""What every measured system can do, and the two that need nothing but files: SQLite rows and JSON lines.

A store is a small picklable description (where it lies), so that each worker process opens it for itself.
Rows are turned into what a system takes (`inputs`) before the clock starts.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa


@dataclass
class Expected:
    """What must be in a store: how many events, the sum of their prices, and who may be first and last."""

    events: int = 0
    price: int = 0
    first: list[dict[str, Any]] = field(default_factory=list)
    last: list[dict[str, Any]] = field(default_factory=list)

    def add(self, other: Expected) -> None:
        self.events += other.events
        self.price += other.price
        self.first += other.first
        self.last += other.last


class Writer(Protocol):
    def append(self, rows: Any) -> None:
        """Store the rows; they are durable when this returns."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Store(ABC):
    """One system's place for one run. `batch` is how many events an append will carry."""

    folder: Path
    batch: int = 10_000
    name: ClassVar[str]

    def create(self) -> None:
        """Make it, empty."""
        self.folder.mkdir(parents=True)

    @abstractmethod
    def inputs(self, batch: pa.RecordBatch) -> Any:
        """A batch in the form in which this system is given it."""

    @abstractmethod
    def writers(self, count: int) -> list[Writer]:
        """One for each thread of the calling process."""

    @abstractmethod
    def holds(self, expected: Expected) -> bool:
        """Whether it holds just what was appended."""

    def read(self, events: int) -> int:
        """Read every event, all columns; how many there were. `events` says how many to wait for."""
        raise TypeError(f"reading {self.name} is not measured")

    def follow(self) -> Iterator[list[int]]:
        """The prices of the events from the first one on, as they come, without an end."""
        raise TypeError(f"{self.name} cannot be followed")

    def disk_bytes(self) -> int:
        """The blocks in use on disk, once the store has tidied up."""
        return blocks(self.folder)

    def drop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def blocks(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def as_json(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows that `json.dumps` takes as they are."""
    columns = batch.to_pydict()
    columns["at"] = [
        at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}" for at in columns["at"]
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


encode = json.JSONEncoder(separators=(",", ":")).encode


class SqliteRows(Store):
    """A table with a row for each event, in WAL mode, one fully synced transaction a batch."""

    name = "sqlite"

    def create(self) -> None:
        super().create()
        db = self._connect()
        columns = "auction INTEGER, bidder INTEGER, price INTEGER, channel TEXT, at INTEGER"
        db.execute(f"CREATE TABLE bids (position INTEGER PRIMARY KEY, {columns})")
        db.close()

    def inputs(self, batch: pa.RecordBatch) -> list[tuple[Any, ...]]:
        columns = [
            column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch
        ]
        return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def writers(self, count: int) -> list[Writer]:
        return [_SqliteWriter(self._connect()) for _ in range(count)]

    def holds(self, expected: Expected) -> bool:
        db = self._connect()
        stored = db.execute("SELECT count(*), sum(price) FROM bids").fetchone()
        db.close()
        return bool(stored == (expected.events, expected.price))

    def read(self, events: int) -> int:
        db = self._connect()
        rows = db.execute("SELECT auction, bidder, price, channel, at FROM bids ORDER BY position").fetchall()
        db.close()
        return len(rows)

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.folder / "bids.db", isolation_level=None, timeout=60, check_same_thread=False
        )
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=FULL")
        return db


class _SqliteWriter:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def append(self, rows: list[tuple[Any, ...]]) -> None:
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(
            "INSERT INTO bids (auction, bidder, price, channel, at) VALUES (?, ?, ?, ?, ?)", rows
        )
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


class JsonLines(Store):
    """One file that everyone appends to: a write and an fsync a batch."""

    name = "jsonl"

    def inputs(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        return as_json(batch)

    def writers(self, count: int) -> list[Writer]:
        return [_LineWriter(self._path) for _ in range(count)]

    def holds(self, expected: Expected) -> bool:
        with self._path.open("rb") as file:
            count, price = 0, 0
            for line in file:
                count += 1
                price += json.loads(line)["price"]
        return (count, price) == (expected.events, expected.price)

    @property
    def _path(self) -> Path:
        return self.folder / "bids.jsonl"


class _LineWriter:
    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(self, rows: list[dict[str, Any]]) -> None:
        lines = "".join([encode(row) + "\n" for row in rows]).encode()
        if os.write(self._file, lines) != len(lines):
            raise OSError("a short write")
        os.fsync(self._file)

    def close(self) -> None:
        os.close(self._file)
