"""The embedded log: tail and catalog in SQLite, segments in Parquet, all in one folder."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from evert import fork
from evert.catalog import Catalog, Transaction
from evert.config import Config
from evert.log import ticks, watermarks
from evert.log.append import Appender
from evert.log.files import Files
from evert.log.keeper import Keeper
from evert.log.protocol import Batch, Commit, Position
from evert.log.reader import LogReader
from evert.log.registry import Registry
from evert.log.spill import Spill
from evert.log.topic import Topic


class EmbeddedLog:
    """A log in a folder; see `Log` for what it promises."""

    def __init__(self, catalog: Catalog, folder: Path, config: Config | None = None) -> None:
        self._catalog = catalog
        self._config = config or Config()
        self.registry = Registry(catalog)
        self.files = Files(catalog, folder)
        self.reader = LogReader(catalog, self.registry, self.files)
        self.keeper = Keeper(catalog, self.registry, self.files, self.reader, self._config, self.pass_time)
        self._spill = Spill(catalog, self.files)
        self._appender = Appender(catalog, self.files, self._spill, self.reader, self._config)
        self._unkept_rows = self._unkept_commits = 0
        self._unkept_lock = threading.Lock()
        fork.watch(self)

    def before_fork(self) -> None:
        """Nothing to wait for."""

    def after_fork(self, *, child: bool) -> None:
        if child:
            self._unkept_lock = threading.Lock()
            self.files.new_owner()

    def create(self, topic: Topic) -> Topic:
        return self.registry.create(topic)

    def alter(
        self, name: str, *, schema: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Topic:
        return self.registry.alter(name, schema, options)

    def drop(self, name: str) -> None:
        gone = self.registry.drop(name)
        self.files.sweep()
        for topic in gone:
            with suppress(OSError):
                self.files.path(f"log/{topic.id}").rmdir()

    def topics(self) -> dict[str, Topic]:
        with self._catalog.read() as tx:
            return self.registry.all(tx)

    def append(self, commit: Commit) -> Position | None:
        position = self._appender.append(commit)
        self._count(sum(write.rows.num_rows for write in commit.writes))
        if any(write.topic.options.idle_after is not None for write in commit.writes):
            self.keeper.start()
        return position

    def no_more_before(self, topic: Topic, time: int, source: str | None) -> Position | None:
        """Commit a promise of a stream's sources."""

        def work(tx: Transaction, position: int) -> None:
            at = commit_time(tx)
            watermarks.no_more_before(tx, self.registry.current(tx, topic), position, at, time, source)

        return self._appender.append(Commit((), also=(work,)))

    def pass_time(self) -> None:
        """Let the watermarks of streams go on without sources that have fallen silent."""
        for topic in self.topics().values():
            if topic.options.idle_after is None:
                continue
            with self._catalog.read() as tx:
                due = watermarks.held_back(tx, topic, tx.now)
            if due:
                self._appender.append(Commit((), also=(partial(_settle, topic),)))

    def tick(self) -> Position | None:
        """Commit what time it is."""

        def work(tx: Transaction, position: int) -> None:
            ticks.tick(tx, position, commit_time(tx))

        return self._appender.append(Commit((), also=(work,)))

    def read(
        self,
        topics: Sequence[str],
        *,
        after: Position = 0,
        upto: Position | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Batch]:
        return self.reader.read(topics, after, upto, columns)

    def head(self) -> Position:
        return self.reader.head()

    def wait(self, after: Position, timeout: float) -> Position:
        deadline = time.monotonic() + timeout
        while True:
            version, head = self.reader.state()
            left = deadline - time.monotonic()
            if head > after or left <= 0:
                return head
            self._catalog.wait(version, left)

    def _count(self, rows: int) -> None:
        """Wake the keeper once in a while: it looks for itself whether anything is due."""
        with self._unkept_lock:
            self._unkept_rows += rows
            self._unkept_commits += 1
            if (
                self._unkept_rows < self._config.seal_rows // 2
                and self._unkept_commits < self._config.seal_entries // 2
            ):
                return
            self._unkept_rows = self._unkept_commits = 0
        self.keeper.nudge()

    def keep(self) -> bool:
        """Do all upkeep now; False if another process is at it."""
        self.pass_time()
        self._spill.release()
        return self.keeper.keep(seal_all=True)

    def close(self) -> None:
        self.keeper.close()
        self._spill.release()


def _settle(topic: Topic, tx: Transaction, position: int) -> None:
    watermarks.settle(tx, topic, position, commit_time(tx))


def commit_time(tx: Transaction) -> int:
    """The time of the last commit: in its own transaction, of the commit itself."""
    (at,) = tx.one("SELECT at FROM state") or (tx.now,)
    return int(at)
