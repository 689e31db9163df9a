"""One writer at a time among processes, and no process starved.

`flock` alone lets a busy process take the lock again before a waiter has woken up. So a writer passes a
turnstile: it holds the *turn* while it waits for the *write* lock. Whoever holds the turn is the next to
write, and a process that has just written has to queue for the turn like all others.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class WriterLock:
    """A lock between processes (and between catalogs of one process), released when its holder dies."""

    def __init__(self, folder: Path) -> None:
        self._paths = (folder / "turn.lock", folder / "write.lock")
        self._turn, self._write = (
            os.open(p, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644) for p in self._paths
        )
        self._threads = threading.Lock()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._threads:
            fcntl.flock(self._turn, fcntl.LOCK_EX)
            try:
                fcntl.flock(self._write, fcntl.LOCK_EX)
            finally:
                fcntl.flock(self._turn, fcntl.LOCK_UN)
            try:
                yield
            finally:
                fcntl.flock(self._write, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._turn)
        os.close(self._write)
