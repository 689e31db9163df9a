"""The embedded catalog: one SQLite file in WAL mode, synced at every commit."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from evert import fork
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
FORK_SECONDS = 5.0

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
        except Exception as error:
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
        fork.watch(self)
        self._prepare()

    def _start(self) -> None:
        self._lock = WriterLock(self.folder)
        self._bell = Bell(self.folder / "head")
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        self._quiet = threading.Condition()
        self._writer: sqlite3.Connection | None = None
        self._leader = threading.Lock()
        self._leading = 0
        self._jobs: list[Job[Any]] = []
        self._jobs_lock = threading.Lock()
        self._closed = False

    def read(self) -> AbstractContextManager[SqliteTransaction]:
        return self._read()

    @contextmanager
    def _read(self) -> Iterator[SqliteTransaction]:
        with _translated(self.path):
            connection = self._borrow()
        healthy = False
        try:
            with _translated(self.path):
                connection.execute("BEGIN")
                try:
                    yield SqliteTransaction(connection, self._clock.now())
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
            healthy = True
        except (Corrupt, DiskFailed):
            raise
        except BaseException:
            healthy = True
            raise
        finally:
            self._give_back(connection, healthy)

    def _borrow(self) -> sqlite3.Connection:
        with self._quiet:
            self._check_open()
            self._reading += 1
            if self._idle:
                return self._idle.pop()
        try:
            return self._connect()
        except BaseException:
            with self._quiet:
                self._reading -= 1
                self._quiet.notify_all()
            raise

    def _give_back(self, connection: sqlite3.Connection, healthy: bool) -> None:
        with self._quiet:
            if healthy and not self._closed:
                self._idle.append(connection)
            else:
                connection.close()
            self._reading -= 1
            self._quiet.notify_all()

    @contextmanager
    def _alone(self) -> Iterator[sqlite3.Connection]:
        """A connection while no process writes. Like every use of one, it is counted: a fork waits for it."""
        with self._lock(), _translated(self.path):
            connection = self._borrow()
            try:
                yield connection
            finally:
                self._give_back(connection, healthy=False)

    def write(self, work: Callable[[SqliteTransaction], T]) -> T:
        if self._leading == threading.get_ident():
            raise RuntimeError("work inside a catalog write may not call the catalog again")
        job = Job(work)
        with self._jobs_lock:
            self._jobs.append(job)
        with self._leader:
            if not job.done:
                self._check_open()
                self._lead()
        with _translated(self.path):
            if job.error:
                raise job.error
        if not job.done:
            raise DiskFailed("the commit was interrupted before it began")
        return job.result  # type: ignore[return-value]

    def _lead(self) -> None:
        """Commit what all waiting threads want to write. An interrupt undoes all of it and is passed on."""
        self._leading = threading.get_ident()
        jobs: list[Job[Any]] = []
        try:
            with self._jobs_lock:
                jobs, self._jobs = self._jobs, []
            with self._lock(), _translated(self.path):
                if self._writer is None:
                    self._writer = self._connect()
                version = commit_jobs(self._writer, jobs, self._clock.now())
                if version is not None:
                    self._bell.ring(version)
        except BaseException as error:
            self._abandon_writer()
            interrupted = not isinstance(error, Exception)
            reason = (
                DiskFailed("the commit was interrupted; nothing of it was written") if interrupted else error
            )
            for job in jobs:
                job.error = job.error or reason
            if interrupted:
                raise
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

    def seen(self) -> int:
        self._check_open()
        return self._bell.read()

    def wait(self, version: int, timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        recheck = 0.0
        while True:
            self._check_open()
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
        with self._alone() as connection:
            pages, free = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count")
            )
            if eager or (free > LAZY_PAGES and 2 * free > pages):
                connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")

    @staticmethod
    def accept_loss(folder: Path) -> None:
        """Go on from what the catalog holds, although commits that had been acknowledged are missing."""
        lock, bell = WriterLock(folder), Bell(folder / "head")
        try:
            with lock():
                bell.ring(0)
        finally:
            bell.close()
            lock.close()

    def close(self) -> None:
        """Wait for the commit that is under way, and close. Reads that are under way close behind themselves."""
        with self._leader, self._quiet:
            if self._closed:
                return
            self._closed = True
            self._abandon_writer()
            while self._idle:
                self._idle.pop().close()
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
            with self._alone() as connection:
                prepare(connection, self.folder)
                version = connection.execute("SELECT version FROM state").fetchone()[0]
                if self._bell.read() > version:
                    raise Corrupt(
                        f"the catalog of {self.folder} ends at commit {version}, "
                        f"but commit {self._bell.read()} had been acknowledged",
                        hint="restore a backup, or accept the loss with `evert doctor --accept-loss`",
                        file=self.path.name,
                    )
        except BaseException:
            self.close()
            raise

    def before_fork(self) -> None:
        """Close every connection, when no thread is using one; a thread that forks inside a read is on its own."""
        self._leader.acquire()
        self._quiet.acquire()
        self._quiet.wait_for(lambda: not self._reading, timeout=FORK_SECONDS)
        self._abandon_writer()
        while self._idle:
            self._idle.pop().close()

    def after_fork(self, *, child: bool) -> None:
        if not child:
            self._quiet.release()
            self._leader.release()
        elif self._closed:
            self._leader, self._quiet = threading.Lock(), threading.Condition()
        else:
            self._lock.close()
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
