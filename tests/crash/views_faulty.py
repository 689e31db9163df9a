"""A server of views whose children die, and those who write and read meanwhile."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.crash.views_workload import QUERIES, SETTINGS, check_answers, expected, write

import evert
from evert.clock import SystemClock
from evert.doctor import examine_database
from evert.errors import NotReady, Stopped, UnknownView
from evert.testing import ManualClock

ROOT = Path(__file__).parents[2]


class ViewServer:
    """A JVM, and children that run views in it, in a session of processes of their own."""

    def __init__(self, scratch: Path, environment: Mapping[str, str] | None = None) -> None:
        self._said = scratch / "said"
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.views_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
            start_new_session=True,
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._server.stdout
        return self._server.stdout.readline().strip()

    def start(self, folder: Path, **task: Any) -> int:
        """Begin a child; its pid."""
        self._said.unlink(missing_ok=True)
        assert self._server.stdin
        task |= {"folder": str(folder), "said": str(self._said)}
        print(json.dumps(task), file=self._server.stdin, flush=True)
        return int(self._line())

    def end(self) -> int:
        """The status of the child when it has ended; negative if it was killed. An error in it is raised here."""
        status = int(self._line())
        assert status in (0, -signal.SIGKILL), self._said.read_text()
        return status

    def run(self, folder: Path, **task: Any) -> int:
        self.start(folder, **task)
        return self.end()

    def members(self, words: str = "") -> list[int]:
        """The processes of the session whose command line has these words."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    pid = int(entry.name)
                    if os.getsid(pid) == self._server.pid:
                        command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                        if words in command and command:
                            found.append(pid)
        return found

    def kill(self) -> None:
        """Kill everything: the driver, the JVM and Spark's Python workers."""
        while members := self.members():
            for pid in members:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self._server.wait(0.1)
        self._close()

    def close(self) -> None:
        assert self._server.stdin
        self._server.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._server.wait(30)
        deadline = time.monotonic() + 20
        while self.members() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.kill()

    def _close(self) -> None:
        for pipe in (self._server.stdin, self._server.stdout):
            assert pipe
            with suppress(BrokenPipeError):
                pipe.close()
        self._server.wait(10)


class Crowd:
    """A writer and a reader of a database, at work all the time, whoever dies beside them."""

    def __init__(self, folder: Path, seed: int, pause: float = 0.3, *, writes: bool = True) -> None:
        self.folder = folder
        self._chance = random.Random(seed)
        self._pause = pause
        self._over = threading.Event()
        self._failed: list[BaseException] = []
        self.seen: dict[int, int] = {}
        self.fed = {name: Counter[tuple[Any, ...]]() for name in QUERIES}
        self._at: dict[str, int | None] = dict.fromkeys(QUERIES)
        self._work = [self._read, self._write] if writes else [self._read]
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Crowd:
        self._over.clear()
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in self._work]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def _guarded(self, work: Any) -> None:
        try:
            with evert.open(self.folder, **SETTINGS) as db:
                work(db)
        except BaseException as error:
            self._failed.append(error)

    def _write(self, db: evert.Database) -> None:
        number = 0
        while not self._over.wait(self._pause):
            write(db, self._chance, number)
            number += 1

    def _read(self, db: evert.Database) -> None:
        version = -1
        while not self._over.is_set():
            if db.catalog.wait(version, 0.1):
                version = db.catalog.version()
                self.look(db)

    def look(self, db: evert.Database) -> None:
        """Check what there is to see: the views in one commit, and every change since the last look."""
        with suppress(NotReady, UnknownView, Stopped):
            self._look(db)

    def _look(self, db: evert.Database) -> None:
        position, orders = check_answers(db.answers(list(QUERIES)))
        assert position >= max(self.seen, default=0), "the views went back in time"
        fresh = position not in self.seen
        assert self.seen.setdefault(position, orders) == orders, "a position has two answers"
        if fresh:
            self.follow(db)

    def follow(self, db: evert.Database) -> None:
        """Take in what has changed since the last time."""
        for name in QUERIES:
            self._follow(db, name)

    def _follow(self, db: evert.Database, name: str) -> None:
        for change in db.view(name).changes(after=self._at[name]):
            assert change.kind == ("snapshot" if self._at[name] is None else "delta")
            assert change.position > (self._at[name] or 0), "a feed went back in time"
            self._at[name] = change.position
            for *row, weight in zip(*(column.to_pylist() for column in change.rows.columns), strict=True):
                self.fed[name][tuple(row)] += weight
                if not self.fed[name][tuple(row)]:
                    del self.fed[name][tuple(row)]
            assert all(n > 0 for n in self.fed[name].values()), f"{name} has rows less than no times"


def check_end(folder: Path, crowd: Crowd) -> None:
    """At the head of the log all is as if nothing had ever happened, and nothing is left over."""
    later = ManualClock(SystemClock().now() + 3_600_000_000)
    with evert.open(folder, clock=later, **SETTINGS) as db:
        crowd.look(db)
        crowd.follow(db)
        right = expected(db)
        for name, view in db.views.items():
            assert (view.state, view.position) == ("live", db.position), view.error
            rows = Counter(tuple(row.values()) for row in view.rows())
            assert rows == right[name], name
            assert crowd.fed[name] == right[name], f"the changes of {name} do not add up to its rows"
            assert summed(view.changes(after=0)) == right[name], f"the history of {name} does not"
        positions = [row["_position"] for b in db.topic("orders").read() for row in b.to_pylist()]
        for position, orders in crowd.seen.items():
            assert orders == sum(at <= position for at in positions), f"the orders at {position}"
        check_files(db)
    bad = [check for check in examine_database(folder, deep=True) if check.level == "error" or check.corrupt]
    assert not bad


def check_files(db: evert.Database) -> None:
    """Every file is of something that there is."""
    folder = db.path
    db.maintain()
    with db.catalog.read() as tx:
        tables = ("segments", "tail", "runs", "changes", "bases")
        known = {f for t in tables for (f,) in tx.all(f"SELECT file FROM {t} WHERE file IS NOT NULL")}
        assert not tx.all("SELECT * FROM announcements")
        assert not tx.all("SELECT * FROM garbage")
    rooms = [path for path in folder.iterdir() if path.is_dir()]
    there = {str(path.relative_to(folder)) for room in rooms for path in room.rglob("*") if path.is_file()}
    assert there == known, "files that nobody refers to were left, or others removed"


def summed(changes: Any) -> Counter[tuple[Any, ...]]:
    """A feed from its start: a snapshot where history is gone, then every delta."""
    found: Counter[tuple[Any, ...]] = Counter()
    for change in changes:
        for *row, weight in zip(*(column.to_pylist() for column in change.rows.columns), strict=True):
            found[tuple(row)] += weight
    return Counter({row: n for row, n in found.items() if n})
