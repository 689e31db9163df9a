"""What runs next: brings the views of a database to the head of the log, one process at a time.

The runner holds a lease. A `refresh` beside it waits for it, and takes over only when it is dead or has gone.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evert.catalog import Lease, acquire, release
from evert.epoch.define import Wanted, define, go_back
from evert.epoch.epoch import EpochDone
from evert.epoch.planning import Planning
from evert.epoch.prove import Proof, prove
from evert.epoch.schedule import Scheduler
from evert.errors import EvertError, Fenced, Refused, TimedOut
from evert.log import ticks
from evert.views import definition as definitions
from evert.views import states
from evert.views.definition import Definition
from evert.views.profile import NodeProfile, of_group
from evert.views.states import OUTPUT

if TYPE_CHECKING:
    from evert.database import Database

LEASE = "runner"
LEASE_TIME = 20_000_000
LOOK_AGAIN = 0.05

OnEpoch = Callable[[EpochDone], None]


@dataclass(frozen=True)
class Explanation:
    """How a query is kept up to date: its nodes, and why it, or a node of it, is recomputed if it is."""

    view: str
    recomputes: str | None
    key: tuple[str, ...] | None
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.lines)


class Runner:
    """Runs the epochs of one database from this process."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._owner = uuid.uuid4().hex
        self._alone = threading.Lock()
        self.planning = Planning(db)
        self._scheduler = Scheduler(db, self.planning)

    def define(self, wanted: Wanted) -> Definition:
        """Plan a view and write it down; it is built by the next refresh or run."""
        return define(self._db, self.planning, wanted)

    def go_back(self, name: str) -> Definition:
        """Plan what a view was before, as a replacement; it is built by the next refresh or run."""
        return go_back(self._db, self.planning, name)

    def explain(self, query: str | Callable[[Any], Any], *, analyze: bool = False) -> Explanation:
        """The plan of a view by its name, or of a query that could be one; with what its last epoch did."""
        with self._db.catalog.read() as tx:
            view = definitions.lookup(tx, query) if isinstance(query, str) else None
        plan = self.planning.tried(query) if view is None else self.planning.plan(view)
        if analyze and view is None:
            raise Refused("only a view has epochs that can be looked at", hint="name one; see `evert views`")
        shared: dict[str, list[str]] = {}
        figures: dict[str, NodeProfile] = {}
        if view is not None:
            with self._db.catalog.read() as tx:
                shared = states.shared_with(tx, view.id)
                epoch = of_group(tx, view.group, [view]) if analyze else None
            figures = {} if epoch is None else {node.node: node for node in epoch.nodes}
        lines = []
        for line in plan.explain:
            others = shared.get(line.node or "", [])
            lines.append(f"{line}, shared with {', '.join(others)}" if others else str(line))
            name = OUTPUT if line.node == plan.output.id else line.node or ""
            if name in figures:
                lines.append(f"{'  ' * line.depth}  ({figures[name]})")
        name = "" if view is None else view.name
        return Explanation(name, plan.reads_all_again, plan.key, tuple(lines))

    def prove(self, name: str | None) -> list[Proof]:
        """Compare a view, or all that have rows, with plain Spark SQL over the log."""
        with self._db.catalog.read() as tx:
            chosen = definitions.all(tx) if name is None else [definitions.find(tx, name)]
        shown = [view for view in chosen if view.current and (name is not None or view.state == "live")]
        return [prove(self._db, self.planning, view) for view in shown]

    def refresh(self, timeout: float | None = None, on_epoch: OnEpoch | None = None) -> int:
        """Bring every view to the head of the log as it is now; the position."""
        self._tell_time()
        target = self._db.position
        deadline = None if timeout is None else time.monotonic() + timeout
        again = self._scheduler.can_retry()
        while again or not self._reached(target):
            with self._held() as lease:
                if lease is None:
                    again = False  # whoever runs lets them try
                    self._db.catalog.wait(self._db.catalog.version(), LOOK_AGAIN)
                else:
                    self._scheduler.retry_stopped()
                    again = False
                    self._until(lambda: self._reached(target), lease, on_epoch, deadline)
            if deadline is not None and time.monotonic() > deadline:
                raise TimedOut(f"the views have not reached position {target} in time", position=target)
        return target

    def run(
        self,
        *,
        stop: threading.Event | None = None,
        on_epoch: OnEpoch | None = None,
        seconds: float | None = None,
    ) -> None:
        """Keep the views at the head of the log, until told to stop or the time is over."""
        stop = stop or threading.Event()
        deadline = None if seconds is None else time.monotonic() + seconds

        def over() -> bool:
            return stop.is_set() or (deadline is not None and time.monotonic() >= deadline)

        while not over():
            with self._held() as lease:
                if lease is None:
                    stop.wait(LOOK_AGAIN)
                    continue
                while not over():
                    version = self._db.catalog.version()
                    done = self._scheduler.step(lease, eager=False)
                    for epoch in done:
                        if on_epoch is not None:
                            on_epoch(epoch)
                    self._scheduler.housekeeping()
                    if not done:
                        self._db.catalog.wait(version, 0.25)

    def _tell_time(self) -> None:
        """Let rows that are due leave or come, unless another process runs, which does so itself."""
        with self._db.catalog.read() as tx:
            nobody_asks = ticks.last(tx) is None
        if not nobody_asks:
            with self._held() as lease:
                if lease is not None:
                    self._scheduler.tell_time()

    def _until(
        self, reached: Callable[[], bool], lease: Lease, on_epoch: OnEpoch | None, deadline: float | None
    ) -> None:
        while not reached() and (deadline is None or time.monotonic() <= deadline):
            done = self._scheduler.step(lease, eager=True)
            for epoch in done:
                if on_epoch is not None:
                    on_epoch(epoch)
            self._scheduler.housekeeping()
            if not done and not reached():
                time.sleep(0.01)

    def _reached(self, position: int) -> bool:
        with self._db.catalog.read() as tx:
            views = definitions.all(tx)
        return all(_settled(view, position) for view in views) and not self._scheduler.must_forget(views)

    @contextmanager
    def _held(self) -> Iterator[Lease | None]:
        """The lease, renewed while it is held; None if another process or thread has it."""
        if not self._alone.acquire(timeout=LOOK_AGAIN):
            yield None
            return
        try:
            lease = acquire(self._db.catalog, LEASE, self._owner, LEASE_TIME)
            if lease is None:
                yield None
                return
            over = threading.Event()
            renewal = threading.Thread(
                target=self._renew, args=(lease, over), name="evert-lease", daemon=True
            )
            renewal.start()
            try:
                yield lease
            except Fenced:
                if self._has(lease):
                    raise  # else another runner went on while this one slept, and this one waits like any other
            finally:
                over.set()
                renewal.join()
                release(self._db.catalog, lease)
        finally:
            self._alone.release()

    def _renew(self, lease: Lease, over: threading.Event) -> None:
        """Hold the lease, and the files of the epoch that runs, for longer; a lease that was lost stays lost."""
        while not over.wait(LEASE_TIME / 4_000_000):
            with suppress(EvertError):  # a failure here is one that the commit will meet
                if not self._has(lease):
                    return
                acquire(self._db.catalog, LEASE, self._owner, LEASE_TIME)
                self._scheduler.epochs.hold_files()

    def _has(self, lease: Lease) -> bool:
        with self._db.catalog.read() as tx:
            try:
                lease.check(tx)
            except Fenced:
                return False
        return True


def _settled(view: Definition, position: int) -> bool:
    """Whether nothing more can be done for a view to reach a position."""
    if view.state in ("stopped", "absent"):
        return True
    if not view.current and not view.held:
        return False
    return view.state == "live" and view.position >= position
