"""`evert run`."""

from __future__ import annotations

import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import click

from evert.cli.base import Command, session, spark_starts
from evert.cli.live import Board, board_lines, on_terminal, spoken_seconds
from evert.cli.show import check_reader
from evert.cli.sql import read_files, run_texts
from evert.cli.status import show_status, trouble
from evert.database import Database
from evert.errors import Stopped
from evert.values import dumps

if TYPE_CHECKING:
    from evert.epoch.epoch import EpochDone

_LOOK = 0.5
_TROUBLE = 2.0


@click.command(cls=Command)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--once", is_flag=True, help="Bring all views to the head of the log, print their state and end."
)
@click.option("--quiet", "-q", is_flag=True, help="No table; only what goes wrong.")
@click.option("--verbose", "-v", is_flag=True, help="A line for each epoch instead of the table.")
@click.option("--seconds", type=click.FloatRange(0), help="End after so many seconds.")
def run(files: tuple[str, ...], once: bool, quiet: bool, verbose: bool, seconds: float | None) -> None:
    """Run the statements in FILES, then keep all views up to date until interrupted.

    On a terminal a table shows how far each view is. With --json there is one object for each epoch.

    \b
    Example: evert run shop.sql
             evert run --once
             evert run --verbose >> run.log
    """
    if once and seconds is not None:
        raise click.UsageError("--once and --seconds exclude each other")
    with session().open() as db:
        run_texts(db, read_files(files), quiet=quiet or session().json)
        if once:
            _once(db, quiet)
            return
        _keep(db, _reporter(db, quiet, verbose), seconds)


def _once(db: Database, quiet: bool) -> None:
    spark_starts()
    db.refresh()
    states = db.status()
    if not quiet:
        show_status(states)
    stopped = [one.name for one in states if one.state == "stopped" and not one.held]
    if stopped:
        raise Stopped(
            f"{', '.join(stopped)} stopped and {'is' if len(stopped) == 1 else 'are'} behind",
            hint=f"see `evert status`; then `evert view resume {stopped[0]}`",
            views=stopped,
        )


class Reporter(Protocol):
    """Tells a person or a program what happens. `epoch` is called by the thread that runs epochs."""

    def epoch(self, done: EpochDone) -> None: ...

    def look(self, stopping: bool) -> None: ...

    def end(self, clean: bool) -> None: ...


def _reporter(db: Database, quiet: bool, verbose: bool) -> Reporter:
    if session().json:
        return _Lines(db, lambda done: dumps(asdict(done)))
    if verbose:
        return _Lines(db, epoch_line)
    if quiet or not on_terminal():
        return _Lines(db, None)
    return _Live(db)


class _Lines:
    """A line for each epoch, or none; and on stderr a line for each view that stops."""

    def __init__(self, db: Database, line: Callable[[EpochDone], str] | None) -> None:
        self._db = db
        self._line = line
        self._said: set[str] = set()
        self._looked = 0.0

    def epoch(self, done: EpochDone) -> None:
        if self._line is not None:
            click.echo(self._line(done))

    def look(self, stopping: bool) -> None:
        check_reader()
        now = time.monotonic()
        if now - self._looked < _TROUBLE:
            return
        self._looked = now
        found = {line for line in map(trouble, self._db.status()) if line}
        for line in sorted(found - self._said):
            click.echo(line, err=True)
        self._said = found

    def end(self, clean: bool) -> None:
        if clean:
            self._looked = 0.0
            self.look(True)


class _Live:
    """The table on a terminal."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._board = Board()
        self._epochs = 0
        self._started = time.monotonic()

    def epoch(self, done: EpochDone) -> None:
        self._epochs += 1

    def look(self, stopping: bool) -> None:
        lines = board_lines(
            self._db.status(),
            head=self._db.position,
            epochs=self._epochs,
            seconds=time.monotonic() - self._started,
            stopping=stopping,
            width=shutil.get_terminal_size().columns,
        )
        self._board.draw(lines)

    def end(self, clean: bool) -> None:
        if clean:
            self.look(True)
        self._board.close()
        if clean:
            ran = spoken_seconds(time.monotonic() - self._started)
            click.echo(f"stopped cleanly after {self._epochs:,} epochs in {ran}")


def epoch_line(done: EpochDone) -> str:
    """What an epoch did, on one line."""
    changed = ", ".join(f"{view} {rows:,}" for view, rows in done.changed.items() if rows)
    return (
        f"position {done.position}  {done.milliseconds:,.0f} ms  {done.rows:,} events"
        f"  changed: {changed or 'nothing'}"
    )


def _keep(db: Database, reporter: Reporter, seconds: float | None) -> None:
    """Run epochs in a thread of their own; this one answers signals and looks after the screen.

    Spark takes SIGINT for itself when it is started by the main thread, and a call into Java cannot be
    interrupted halfway anyway: a signal only asks, and the epoch that runs is finished.
    """
    stop, done = threading.Event(), threading.Event()
    failed: list[BaseException] = []

    def work() -> None:
        try:
            db.run(stop=stop, on_epoch=reporter.epoch, seconds=seconds)
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, name="evert-run", daemon=True)
    with _signals_set(stop):
        thread.start()
        try:
            while not done.wait(_LOOK):
                reporter.look(stop.is_set())
        except BaseException as error:
            stop.set()
            if not isinstance(error, KeyboardInterrupt):
                thread.join()
            reporter.end(False)
            raise
        reporter.end(not failed)
    if failed:
        raise failed[0]


@contextmanager
def _signals_set(stop: threading.Event) -> Iterator[None]:
    """SIGINT and SIGTERM ask to stop; a second one does not wait."""

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
