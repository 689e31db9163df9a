"""A catalog in memory, for tests that need no files."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from evert.catalog.sqlite import Job, SqliteTransaction, commit_jobs, prepare
from evert.clock import Clock, SystemClock

T = TypeVar("T")


class MemoryCatalog:
    """The embedded catalog's tables in memory: one connection, one caller at a time, gone when it is closed."""

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        prepare(self._connection, "memory")

    def read(self) -> Any:
        return self._read()

    @contextmanager
    def _read(self) -> Iterator[SqliteTransaction]:
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield SqliteTransaction(self._connection, self._clock.now())
            finally:
                self._connection.execute("ROLLBACK")

    def write(self, work: Callable[[SqliteTransaction], T]) -> T:
        job = Job(work)
        with self._changed:
            commit_jobs(self._connection, [job], self._clock.now())
            self._changed.notify_all()
        if job.error:
            raise job.error
        return job.result  # type: ignore[return-value]

    def version(self) -> int:
        with self._lock:
            return int(self._connection.execute("SELECT version FROM state").fetchone()[0])

    def seen(self) -> int:
        return self.version()

    def wait(self, version: int, timeout: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.version() > version, timeout)

    def shrink(self, *, eager: bool = True) -> None:
        """Memory has nothing to give back."""

    def close(self) -> None:
        self._connection.close()
