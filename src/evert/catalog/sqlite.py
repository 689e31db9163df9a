"""The embedded catalog: one SQLite file in WAL mode, synced at every commit."""

from __future__ import annotations

import os
import queue
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from evert.catalog.bell import Bell
from evert.catalog.locks import WriterLock
from evert.catalog.steps import FORMAT, STEPS
from evert.clock import Clock, SystemClock
from evert.disk import disk_errors, full
from evert.errors import Corrupt, DiskFailed, EvertError, FormatTooNew, NotADatabase, TimedOut

T = TypeVar("T")

APPLICATION_ID = 0x45565254
FILE = "catalog.sqlite"
POLL_SECONDS = 0.003
RECHECK_SECONDS = 0.1
LAZY_PAGES = 16_384

_STATE = """
CREATE TABLE state (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, head INTEGER NOT NULL, at INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, 0, 0);
"""


class SqliteTransaction:
    """A transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._connection = connection
        self.now = now

    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
        return row

    def each(self, sql: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        return iter(self._connection.execute(sql, values))

    def run(self, sql: str, *values: Any) -> int:
        return self._connection.execute(sql, values).rowcount


class Job(Generic[T]):
    """One caller's work on its way through a shared commit."""

    def __init__(self, work: Callable[[SqliteTransaction], T]) -> None:
        self.work = work
        self.done = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self, transaction: SqliteTransaction) -> None:
        try:
            self.result = self.work(transaction)
        except BaseException as error:
            self.error = error


def commit_jobs(connection: sqlite3.Connection, jobs: list[Job[Any]], now: int) -> int | None:
    """Run the jobs in one transaction; the version it committed, or None if nothing was changed.

    A job that raises is undone alone. If the commit itself fails, every job fails with that error.
    """
    connection.execute("BEGIN IMMEDIATE")
    before = connection.total_changes
    for job in jobs:
        if len(jobs) == 1:
            job.run(SqliteTransaction(connection, now))
            if job.error:
                connection.execute("ROLLBACK")
                return None
            break
        connection.execute("SAVEPOINT job")
        job.run(SqliteTransaction(connection, now))
        if job.error:
            connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
    if connection.total_changes == before:
        connection.execute("ROLLBACK")
        return None
    version = connection.execute("UPDATE state SET version = version + 1 RETURNING version").fetchone()[0]
    connection.execute("COMMIT")
    return int(version)


class SqliteCatalog:
    """A catalog in a folder, shared by any number of threads and processes of one machine."""

    def __init__(self, folder: Path, *, clock: Clock | None = None, create: bool = True) -> None:
        self.folder = folder
        self.path = folder / FILE
        self._clock = clock or SystemClock()
        if not self.path.exists() and not create:
            raise NotADatabase(f"{folder} holds no Evert database", hint=f"evert init {folder}")
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._start()
        self._prepare()
        _OPEN.add(self)

    def _start(self) -> None:
        self._lock = WriterLock(self.folder)
        self._bell = Bell(self.folder / "head")
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._writer: sqlite3.Connection | None = None
        self._leader = threading.Lock()
        self._leading = 0
        self._jobs: list[Job[Any]] = []
        self._jobs_lock = threading.Lock()
        self._closed = False

    def read(self) -> Any:
        return self._read()

    @contextmanager
    def _read(self) -> Iterator[SqliteTransaction]:
        self._check_open()
        with _translated(self.path):
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = self._connect()
            try:
                connection.execute("BEGIN")
            except sqlite3.Error:
                connection.close()
                raise
        healthy = True
        try:
            with _translated(self.path):
                yield SqliteTransaction(connection, self._clock.now())
        except (Corrupt, DiskFailed):
            healthy = False
            raise
        finally:
            if healthy and not self._closed:
                connection.execute("ROLLBACK")
                self._readers.put(connection)
            else:
                connection.close()

    def write(self, work: Callable[[SqliteTransaction], T]) -> T:
        self._check_open()
        if self._leading == threading.get_ident():
            raise RuntimeError("work inside a catalog write may not call the catalog again")
        job = Job(work)
        with self._jobs_lock:
            self._jobs.append(job)
        with self._leader:
            if not job.done:
                self._lead()
        if job.error:
            raise job.error
        return job.result  # type: ignore[return-value]

    def _lead(self) -> None:
        with self._jobs_lock:
            jobs, self._jobs = self._jobs, []
        self._leading = threading.get_ident()
        try:
            with self._lock(), _translated(self.path):
                if self._writer is None:
                    self._writer = self._connect()
                version = commit_jobs(self._writer, jobs, self._clock.now())
                if version is not None:
                    self._bell.ring(version)
        except BaseException as error:
            self._abandon_writer()
            for job in jobs:
                job.error = job.error or error
        finally:
            self._leading = 0
            for job in jobs:
                job.done = True

    def _abandon_writer(self) -> None:
        """After a failed commit the connection's state is not to be trusted; the next write opens another."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with suppress(sqlite3.Error):
                writer.close()

    def version(self) -> int:
        with self._read() as transaction:
            row = transaction.one("SELECT version FROM state")
        assert row is not None
        return int(row[0])

    def wait(self, version: int, timeout: float) -> bool:
        self._check_open()
        deadline = time.monotonic() + timeout
        recheck = 0.0
        while True:
            if self._bell.read() > version:
                return True
            now = time.monotonic()
            if now >= recheck:
                if self.version() > version:
                    return True
                recheck = now + RECHECK_SECONDS
            if now >= deadline:
                return False
            time.sleep(min(POLL_SECONDS, deadline - now))

    def shrink(self, *, eager: bool = True) -> None:
        with self._lock(), _translated(self.path):
            connection = self._connect()
            try:
                pages, free = (
                    connection.execute(f"PRAGMA {name}").fetchone()[0]
                    for name in ("page_count", "freelist_count")
                )
                if eager or (free > LAZY_PAGES and 2 * free > pages):
                    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                connection.close()

    def accept_loss(self) -> None:
        """Go on from what the catalog holds, although commits that had been acknowledged are missing."""
        with self._lock():
            self._bell.ring(0)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        _OPEN.discard(self)
        if self._writer:
            self._writer.close()
        while not self._readers.empty():
            self._readers.get_nowait().close()
        self._bell.close()
        self._lock.close()

    def _check_open(self) -> None:
        if self._closed:
            raise EvertError(f"the database {self.folder} is closed", hint="open it again with evert.open()")

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=30, isolation_level=None, check_same_thread=False, cached_statements=256
        )
        for pragma in (
            "synchronous=FULL",
            "temp_store=MEMORY",
            "cache_size=-16384",
            "wal_autocheckpoint=4000",
        ):
            connection.execute(f"PRAGMA {pragma}")
        return connection

    def _prepare(self) -> None:
        try:
            with self._lock(), _translated(self.path):
                connection = self._connect()
                try:
                    prepare(connection, self.folder)
                    version = connection.execute("SELECT version FROM state").fetchone()[0]
                finally:
                    connection.close()
                if self._bell.read() > version:
                    raise Corrupt(
                        f"the catalog of {self.folder} ends at commit {version}, "
                        f"but commit {self._bell.read()} had been acknowledged",
                        hint="restore a backup, or accept the loss with `evert doctor --accept-loss`",
                        file=self.path.name,
                    )
        except BaseException:
            self._bell.close()
            self._lock.close()
            raise

    def _after_fork(self) -> None:
        """In a forked child: leave the parent's connections and locks alone and open our own."""
        with suppress(OSError):
            self._lock.close()
        _FORGOTTEN.append((self._writer, self._readers))
        self._start()


def prepare(connection: sqlite3.Connection, folder: Path | str) -> None:
    """Make the tables of a new catalog, or take the steps that an older one lacks."""
    application, taken = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise NotADatabase(f"{folder} holds a SQLite file that is not Evert's")
    if taken > FORMAT:
        raise FormatTooNew(
            f"{folder} has format {taken}, and this version of Evert reads up to {FORMAT}",
            hint="pip install --upgrade evert",
        )
    if not tables:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
    if taken == FORMAT:
        return
    script = (_STATE if not tables else "") + "".join(STEPS[taken:])
    connection.executescript(
        f"BEGIN IMMEDIATE; {script} PRAGMA application_id = {APPLICATION_ID};"
        f" PRAGMA user_version = {FORMAT}; COMMIT;"
    )


_FULL = ("disk is full",)
_DAMAGED = ("malformed", "not a database", "file is encrypted")


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into Evert's."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if any(words in text for words in _FULL):
            raise full(path) from error
        if any(words in text for words in _DAMAGED):
            raise Corrupt(f"{path} is damaged: {text}", hint="restore a backup", file=path.name) from error
        if "locked" in text:
            raise TimedOut(f"{path} stayed locked for 30 seconds") from error
        if isinstance(error, sqlite3.OperationalError) and ("I/O" in text or "unable to open" in text):
            raise DiskFailed(f"the disk of {path} failed: {text}", file=path.name) from error
        raise


_OPEN: weakref.WeakSet[SqliteCatalog] = weakref.WeakSet()
_FORGOTTEN: list[Any] = []


def _after_fork() -> None:
    for catalog in list(_OPEN):
        catalog._after_fork()


os.register_at_fork(after_in_child=_after_fork)
