"""The law of views: whatever happens, a view's rows, its feed, and plain Spark SQL over the tables agree.

Plain Spark SQL means: the tables' present content kept here in Python, given to Spark as temporary views, with
the views' queries as temporary views on top. Nothing of the engine's own recomputation is used.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.laws.cases import Case, Commit, Refresh, View
from tests.laws.comparing import counted, difference
from tests.laws.plain import Answers, Model, Plain

import evert
from evert.epoch.epoch import EpochDone
from evert.epoch.schedule import RETRY_LAST
from evert.errors import EvertError, Expired

WAIT = 2 * RETRY_LAST


@dataclass(frozen=True)
class Mode:
    """How a case is run."""

    bits: int = 64
    most_events: int | None = None
    spark_reads: bool = False
    reopen: bool = False
    tidy: bool = False
    running: bool = False
    copies: int | None = None


class Broken(AssertionError):
    """The law does not hold."""


@dataclass
class Run:
    """One case in one database and mode."""

    spark: Any
    case: Case
    mode: Mode
    folder: Path

    def __post_init__(self) -> None:
        self.db = self._open()
        self.model = Model(self.case)
        self.plain = Plain(self.spark, self.case)
        self.views: dict[str, View] = {}
        self.seen: dict[str, dict[int, Counter]] = {}
        self.refused: dict[str, str] = {}
        self.answers: list[Answers] = []
        self.columns: dict[str, pa.Schema] = {}
        self.epochs: list[EpochDone] = []
        self.commits: list[tuple[int, Commit]] = []
        self.target = 0
        self.stop = threading.Event()
        self.failure: Exception | None = None
        for topic in self.case.topics:
            make = self.db.stream if topic.kind == "stream" else self.db.table
            options = {"key": list(topic.key), "partitions": topic.partitions} if topic.key else {}
            make(topic.name, topic.ddl, **options)
        self.schemas = {t.name: self.db.definition(t.name).schema.arrow for t in self.case.topics}

    def _open(self) -> evert.Database:
        return evert.open(self.folder / "db", background=False, hash_bits=self.mode.bits)

    def go(self, answers: list[Answers] | None = None) -> None:
        """All steps. The answers of plain Spark at each refresh can be taken over from another run."""
        known = iter(answers or [])
        for step in self.case.steps:
            match step:
                case View():
                    self._define(step)
                case Commit():
                    self._write(step)
                case Refresh():
                    self._refresh()
                    expected = next(known, None)
                    if expected is None:
                        expected = self.plain.answers(self.model, self.views, self.schemas)
                    self._check(expected)
                    self._check_between()
                    self.answers.append(expected)

    @contextmanager
    def beside(self) -> Iterator[None]:
        """With a thread that keeps the views up to date all the while, if the mode says so."""
        if not self.mode.running:
            yield
            return

        def keep() -> None:
            try:
                self.db.run(stop=self.stop, on_epoch=lambda epoch: self.epochs.append(epoch))
            except Exception as error:
                self.failure = error

        thread = threading.Thread(target=keep, name="law")
        thread.start()
        try:
            yield
        finally:
            self.stop.set()
            thread.join()

    def _define(self, view: View) -> None:
        if view.replace and view.name not in self.views:
            return
        try:
            self.db.view(view.name, view.query, replace=view.replace)
        except EvertError as error:
            self.refused[view.name] = f"{type(error).__name__}: {error}\n  {view.query}"
            return
        self.views[view.name] = view

    def _write(self, commit: Commit) -> None:
        with self.db.transaction() as tx:
            for write in commit.writes:
                {"append": tx.append, "upsert": tx.upsert, "delete": tx.delete}[write.kind](
                    write.topic, list(write.rows)
                )
        self.model.apply(commit)
        self.commits.append((tx.position or 0, commit))
        if self.mode.tidy:
            self.db.maintain()
            for topic in self.case.topics:
                if topic.kind == "table":
                    self.db.compact(topic.name)

    def _refresh(self) -> None:
        if self.mode.reopen:
            self.db.close()
            self.db = self._open()
        self.target = self.db.refresh(timeout=600, on_epoch=lambda epoch: self.epochs.append(epoch))
        if self.failure is not None:
            raise self.failure

    def _check(self, expected: Answers) -> None:
        self._let_go_on([name for name, rows in expected.items() if rows is not None])
        broken = [told for name, rows in expected.items() for told in self._states(name, rows)]
        answers = self.db.answers([name for name in expected if self.db.views[name].state == "live"])
        for name, answer in answers.items():
            rows = counted(answer.rows)
            missing, unexpected = difference(expected[name] or Counter(), rows)
            if missing or unexpected:
                broken.append(self._told(name, "differs from plain Spark", missing, unexpected))
            if answer.position < self.target:
                broken.append(f"{name} stands at {answer.position}, not at {self.target}")
            broken += self._feeds(name, rows)
            self.seen.setdefault(name, {})[answer.position] = rows
        if broken:
            raise Broken("\n".join(broken))

    def _check_between(self) -> None:
        """An epoch on the way, one in the middle, was right where it stood too."""
        head = self.db.position
        epochs, self.epochs = self.epochs, []
        shown = [epoch for epoch in epochs if epoch.position < head and self._shown(epoch)]
        if not shown:
            return
        epoch = shown[len(shown) // 2]
        before = Model(self.case)
        for position, commit in self.commits:
            if position <= epoch.position:
                before.apply(commit)
        expected = self.plain.answers(before, self.views, self.schemas)
        broken = []
        for name in expected.keys() & self._shown(epoch):
            past = self.db.view(name).at(epoch.position)
            missing, unexpected = difference(expected[name] or Counter(), counted(past.arrow()))
            if missing or unexpected:
                told = self._told(name, f"differs from plain Spark at {epoch.position}", missing, unexpected)
                broken.append(told)
        if broken:
            raise Broken("\n".join(broken))

    def _shown(self, epoch: EpochDone) -> list[str]:
        """The views of an epoch that can still be asked for their rows at its position."""
        found = []
        for name in epoch.views:
            if name not in self.views or self._replaced_below(name):
                continue
            try:
                if self.db.view(name).at(epoch.position).position == epoch.position:
                    found.append(name)
            except Expired:
                continue
        return found

    def _replaced_below(self, name: str) -> bool:
        """Whether a view, or one that it reads, had another query before."""
        view = self.views[name]
        read = set(re.findall(r"\w+", view.query)) & self.views.keys()
        return view.replace or any(self._replaced_below(below) for below in read - {name})

    def _let_go_on(self, names: list[str]) -> None:
        """An epoch on the way may have met data that have been mended since: the next try must go well."""
        over = time.monotonic() + WAIT
        while any(self.db.views[name].state != "live" for name in names) and time.monotonic() < over:
            self.db.refresh(timeout=600)
            if not self.mode.running:
                return
            time.sleep(0.1)

    def _states(self, name: str, expected: Counter | None) -> Iterator[str]:
        """A view is stopped where Spark fails, or just being tried again, and live elsewhere."""
        view = self.db.views[name]
        if (view.state == "live") != (expected is not None):
            yield f"{name} is {view.state}: {view.error}\n  {self.views[name].query}"

    def _feeds(self, name: str, rows: Counter) -> Iterator[str]:
        """Its changes added up from every earlier position give its rows, and none is told twice."""
        view = self.db.view(name)
        if not self.columns.setdefault(name, view.columns).equals(view.columns):
            self.columns[name] = view.columns
            self.seen.pop(name, None)
        for position, before in {None: Counter(), -1: Counter(), **self.seen.get(name, {})}.items():
            total = Counter(before)
            last = -1
            for change in view.changes(after=position):
                once = counted(change.rows, "_weight")
                if change.kind in ("reset", "snapshot"):
                    if position in self.seen.get(name, {}):
                        yield f"{name}: {change.kind} of the feed after {position}"
                    total.clear()
                if len(once) != change.rows.num_rows or not all(once.values()):
                    yield f"{name}: changes at {change.position} are not consolidated: {change.rows.to_pylist()}"
                if change.kind == "delta" and change.position <= last:
                    yield f"{name}: change at {change.position} comes after that at {last}"
                last = change.position
                for row, weight in once.items():
                    total[row] += weight
            left = Counter({row: count for row, count in total.items() if count})
            if left != rows:
                wrong = Counter(left)
                wrong.subtract(rows)
                odd = {row: count for row, count in wrong.items() if count}
                yield f"{name}: the feed after {position} does not add up to its rows: {odd}"
        for position, before in self.seen.get(name, {}).items():
            if counted(view.at(position).arrow()) != before:
                yield f"{name}: its rows at {position} are not what they were then"

    def _told(self, name: str, what: str, missing: list, unexpected: list) -> str:
        explained = "\n    ".join(str(self.db.explain(name)).splitlines())
        return (
            f"{name} {what}\n  {self.views[name].query}\n    {explained}\n"
            f"  missing: {missing[:6]}\n  unexpected: {unexpected[:6]}"
        )


@contextmanager
def surroundings(mode: Mode) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if mode.most_events is not None:
            patch.setattr("evert.epoch.schedule.MOST_EVENTS", mode.most_events)
        if mode.copies is not None:
            patch.setattr("evert.epoch.job.MOST_COPIES", mode.copies)
        if mode.spark_reads:
            patch.setattr("evert.epoch.inputs.SMALL", 0)
        yield


def obey(spark: Any, case: Case, mode: Mode, folder: Path, answers: Any = None) -> Run:
    """Run a case and compare after every refresh; what breaks the law is told with a script that runs it again."""
    run = Run(spark, case, mode, folder)
    try:
        with surroundings(mode), run.beside():
            run.go(answers)
    except Exception as error:
        raise Broken(f"{error}\n\n{script(case, mode)}") from error
    finally:
        run.db.close()
    return run


def at_once(run: Run) -> Case:
    """The same log, and the views as they were in the end, seen by one refresh."""
    views = [replace(view, replace=False) for view in run.views.values()]
    commits = [step for step in run.case.steps if isinstance(step, Commit)]
    return replace(run.case, steps=(*commits, *views, Refresh()))


def script(case: Case, mode: Mode) -> str:
    """A program that runs a case again."""
    steps = "\n".join(f"        {step!r}," for step in case.steps)
    topics = "\n".join(f"        {topic!r}," for topic in case.topics)
    return (
        "# Save this as a file and run it with python from the project's folder.\n"
        "import datetime, sys, tempfile\nfrom decimal import Decimal\nfrom pathlib import Path\n"
        "sys.path.insert(0, '.')\n"
        "from tests.laws.cases import Case, Commit, Refresh, Topic, View, Write\n"
        "from tests.laws.law import Mode, obey\nfrom tests.laws.values import Column, inf, nan\n"
        "from evert.epoch.spark import session\n"
        f"case = Case(\n    topics=(\n{topics}\n    ),\n    steps=(\n{steps}\n    ),\n)\n"
        "if __name__ == '__main__':\n"
        f"    obey(session(), case, {mode!r}, Path(tempfile.mkdtemp()))\n"
    )
