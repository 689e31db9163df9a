"""Which views run next, how far, and what happens when they fail.

    building ──> live <──> (epochs of its group)
       ^          │ fails on its data
       └ rebuilt  v
    resuming <── stopped

All live views of a group stand at one position and go on together. A new view is built from the log beside
them and joins when it stands where they do. A view that fails on its data stops alone, with those that read it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from evert.catalog import Lease, Transaction
from evert.epoch import failures, ranges, replacing, reuse, stopping
from evert.epoch.define import renew
from evert.epoch.epoch import EpochDone, Epochs
from evert.epoch.planning import Planning
from evert.epoch.ticking import Ticking
from evert.epoch.work import Work
from evert.errors import Absent, Conflict, Refused
from evert.log import holds, retention
from evert.log.files import Revoked
from evert.log.protocol import Commit
from evert.views import definition as definitions
from evert.views import upkeep
from evert.views.definition import DEFAULT_GROUP, NOWHERE, Definition

if TYPE_CHECKING:
    from evert.database import Database

MOST_EVENTS = 1_000_000
"""A backlog is worked off in epochs of at most so many events."""

MOST_BLAMELESS = 2
"""How often an epoch is tried again that fails without any view being to blame."""

KEEP_HOUSE = 2.0
RETRY_FIRST, RETRY_LAST = 1.0, 60.0


class Scheduler:
    """Chooses and runs epochs, one after the other."""

    def __init__(self, db: Database, planning: Planning) -> None:
        self._db = db
        self._planning = planning
        self.epochs = Epochs(db, planning)
        self._kept_house = 0.0
        self._ticking = Ticking(db, planning)
        self._retries: dict[int, tuple[float, float]] = {}
        self._from_log: set[int] = set()
        self._last_run: dict[str, tuple[float, float]] = {}

    def step(self, lease: Lease, *, eager: bool) -> list[EpochDone]:
        """Run an epoch of every group that has something to do. `eager`: recompute without waiting."""
        if not eager:
            self._retry_later()
        views = self._views()
        self._ticking.tick_if_due(views)
        done: list[EpochDone] = []
        for group in _groups_in_order(views):
            if eager or self._due(group, views):
                done += self._step_group(group, lease)
        return done

    def tell_time(self) -> None:
        """Let rows that are due leave or come with the next epoch."""
        self._ticking.tick_if_due(self._views())

    def _views(self) -> list[Definition]:
        """All views that can be planned here, as they are now."""
        self._planning.look()
        with self._db.catalog.read() as tx:
            found = definitions.all(tx)
        planned, changed = [], False
        for view in found:
            try:
                if view.state == "stopped" or self._planning.is_valid(view):
                    planned.append(view)
                    if view.state == "absent":
                        self._db.catalog.write(partial(definitions.go_on, view=view))
                        changed = True
                else:
                    renew(self._db, self._planning, view)
                    changed = True
            except Absent as error:
                if view.state != "absent":
                    self._mark(view, "absent", error.as_dict())
                    changed = True
            except Refused as error:
                self._mark(view, "stopped", error.as_dict() | {"epoch": self._db.position})
                self._planned_retry(view)
                changed = True
        if stopping.readers_of_stopped(found):  # a write for nothing would wake whoever waits, this loop too
            self._db.catalog.write(stopping.stop_readers)
            changed = True
        return self._views() if changed else planned

    def _step_group(self, group: str, lease: Lease) -> list[EpochDone]:
        done = []
        live, _ = self._live(group)
        if live and (work := self._forward(live)) is not None:
            done += self._run(work, lease)
        for state in ("live", "resuming", "building"):
            for together in _by_position(self._in_state(group, state)):
                live, held = self._live(group)
                if together[0] in held:
                    work = self._beside(together[0], live)
                elif state != "live" or _left_behind(together[0], live):
                    work = self._catch_up(together, [view for view in live if view not in together])
                else:
                    continue
                if work is not None:
                    done += self._run(work, lease)
        return done

    def _live(self, group: str) -> tuple[list[Definition], list[Definition]]:
        """The live views of a group, and the replacements that are live and wait."""
        live = self._in_state(group, "live")
        return [view for view in live if not view.held], [view for view in live if view.held]

    def _in_state(self, group: str, state: definitions.State) -> list[Definition]:
        return [view for view in self._views() if view.group == group and view.state == state]

    def _forward(self, live: Sequence[Definition]) -> Work | None:
        """The next epoch of live views: up to the head, or to where the views stand that they read."""
        position = max(view.position for view in live)
        ready = replacing.one_each(view for view in live if not view.current and view.position == position)
        changing = tuple(replacing.switches(self._db, ready))
        gone = {change.old.id for change in changing}
        views = tuple(v for v in live if v.id not in gone and (v.current or v in ready))
        forgets = self._forgotten(views, position)
        if (changing or forgets) and self._db.position <= position:
            self._db.log.append(Commit(()))
        upto = self._limit(views)
        if upto <= position or self._too_early(views, upto):
            return None
        if not self._outside(views):  # those outside have answers where they stand, and not at every position
            upto = self._cut(views, upto)
        return Work(views, upto, switches=changing, forgets=forgets)

    def _beside(self, view: Definition, live: Sequence[Definition]) -> Work | None:
        """The next epoch of a replacement that waits: to where its group stands."""
        forgets = self._forgotten([view], view.position)
        if forgets and self._db.position <= view.position:
            self._db.log.append(Commit(()))
        upto = min([self._limit([view]), *(other.position for other in live)])
        if upto <= view.position or self._too_early([view], upto):
            return None
        if not live and not self._outside([view]):
            upto = self._cut([view], upto)
        return Work((view,), upto, forgets=forgets)

    def must_forget(self, views: Sequence[Definition]) -> bool:
        """Whether there are events that live views have to take back."""
        live = [view for view in views if view.state == "live"]
        return any(self._forgotten([view], view.position) for view in live)

    def _forgotten(self, views: Sequence[Definition], position: int) -> dict[int, int]:
        """The topics whose expired events views take back, and up to where."""
        found = {}
        read = {read.id for view in views for read in view.reads if read.kind != "view"}
        with self._db.catalog.read() as tx:
            for topic in self._db.log.registry.all(tx).values():
                if topic.id not in read or topic.options.views != "forget":
                    continue
                target = min(retention.wanted(tx, topic) or 0, position)
                counted = [holds.of_holder(tx, topic.id, view.id) for view in views]
                if any(hold is not None and hold.since < target for hold in counted):
                    found[topic.id] = target
        return found

    def _catch_up(self, views: Sequence[Definition], live: Sequence[Definition]) -> Work | None:
        """The next epoch of views that are behind; they join when they reach the live ones."""
        frontiers = {view.position for view in live if view.current} or {view.position for view in live}
        limit = self._limit(views)
        upto = min([*frontiers, limit])
        if views[0].state == "live" and upto <= views[0].position:
            return None
        if limit < upto or any(self._unready(view) for view in views) or self._too_early(views, upto):
            return None
        work = Work(tuple(views), upto)
        if work.after == NOWHERE and upto in frontiers and not self._from_log & {view.id for view in views}:
            reuses = reuse.found(self._db, self._planning, views, upto)
            work = replace(work, joins=bool(reuses), reuses=reuses)
        if work.reuses:
            return work
        failed = any(view.error for view in views)  # then what mends it may lie behind any cut
        if views[0].state == "building" and not failed:
            work = replace(work, upto=self._cut(views, upto))
        joins = work.upto == upto and (not frontiers or upto in frontiers)
        if not joins and work.upto <= work.after:
            return None
        return replace(work, joins=joins)

    def _unready(self, view: Definition) -> bool:
        """Whether a view reads one that has no rows yet, and is not built with it."""
        with self._db.catalog.read() as tx:
            for read in view.reads:
                below = definitions.by_id(tx, read.id) if read.kind == "view" else None
                if below is not None and below.state in ("stopped", "absent"):
                    return True
                if below is not None and below.state != "live" and below.position != view.position:
                    return True
        return False

    def _limit(self, views: Sequence[Definition]) -> int:
        """The last position these views can go to: the head, or that of a view outside that they read.

        Groups beside the default one stop only where it has stopped, so that what reads both sees one moment.
        """
        frontiers = [view.position for view in self._outside(views)]
        if views[0].group != DEFAULT_GROUP:
            with self._db.catalog.read() as tx:
                frontiers += _frontier(tx)
        return min([self._db.position, *frontiers])

    def _outside(self, views: Sequence[Definition]) -> list[Definition]:
        """The views that these read and that do not go on with them."""
        together = {view.id for view in views} | {view.replaces for view in views}
        with self._db.catalog.read() as tx:
            read = [definitions.by_id(tx, r.id) for view in views for r in view.reads if r.kind == "view"]
        return [below for below in read if below is not None and below.id not in together]

    def _cut(self, views: Sequence[Definition], upto: int) -> int:
        """Where to cut a backlog; not where a table, compacted since, no longer has all its rows of then."""
        topics = sorted({read.id for view in views for read in view.reads if read.kind != "view"})
        with self._db.catalog.read() as tx:
            found = ranges.cut(tx, topics, max(0, views[0].position), upto, MOST_EVENTS)
            return min(upto, max(found, self._whole_from(tx, views)))

    def _too_early(self, views: Sequence[Definition], upto: int) -> bool:
        """Whether a table was compacted beyond a position, so that it cannot be read as it was there."""
        with self._db.catalog.read() as tx:
            return upto < self._whole_from(tx, views)

    def _whole_from(self, tx: Transaction, views: Sequence[Definition]) -> int:
        """From which position on the tables that these views read have all their rows."""
        tables = {read.id for view in views for read in view.reads if read.kind in ("table", "versions")}
        found = [tx.one("SELECT replaced FROM topics WHERE id = ?", table) or (0,) for table in tables]
        return max((replaced for (replaced,) in found), default=0)

    def _run(self, work: Work, lease: Lease) -> list[EpochDone]:
        """Run an epoch; views that fail on their data stop, and the others go on without them."""
        blameless = 0
        while True:
            try:
                done = self.epochs.run(work, lease)
            except (Conflict, Revoked):
                return []
            except failures.JOB_FAILURES:
                if work.reuses:  # what is taken over may be damaged
                    self._from_log |= work.reuses.keys()
                    return []
                culprits = failures.stop_culprits(self._db, self.epochs, work, lease)
                blameless += not culprits
                if blameless > MOST_BLAMELESS:
                    raise
                for view in culprits:
                    self._planned_retry(view)
                stopped = {view.id for view in culprits}
                left = tuple(view for view in work.views if view.id not in stopped)
                if not left or any(switch.new.id in stopped for switch in work.switches):
                    return []  # a view whose replacement fails goes on itself
                work = replace(work, views=left)
                continue
            self._last_run[work.group] = (time.monotonic(), done.milliseconds / 1e3)
            return [done]

    def can_retry(self) -> bool:
        """Whether there are stopped views that could try again."""
        head = self._db.position
        with self._db.catalog.read() as tx:
            return any(stopping.can_try(tx, view, head) for view in definitions.all(tx))

    def retry_stopped(self) -> None:
        """Let stopped views try again: what has been written since may have mended their data."""

        def work(tx: Transaction) -> None:
            again = True
            while again:
                again = False
                for view in definitions.all(tx):
                    if stopping.can_try(tx, view, head):
                        stopping.try_again(tx, view)
                        now = definitions.by_id(tx, view.id)
                        again |= now is not None and now.state != "stopped"

        head = self._db.position
        self._db.catalog.write(work)

    def _retry_later(self) -> None:
        """In the long run, stopped views try again when there is something new, ever more seldom."""
        now, head = time.monotonic(), self._db.position
        with self._db.catalog.read() as tx:
            views = definitions.all(tx)
            due = [view for view in views if stopping.can_try(tx, view, head)]
        for view in views:
            if view.state == "live":
                self._retries.pop(view.id, None)  # if it stops again, that is another matter
        for view in due:
            at, wait = self._retries.setdefault(view.id, (now + RETRY_FIRST, RETRY_FIRST))
            if now >= at:
                self._retries[view.id] = (now + wait, wait)
                self._db.catalog.write(partial(stopping.try_again, view=view))

    def _planned_retry(self, view: Definition) -> None:
        _, wait = self._retries.get(view.id, (0.0, RETRY_FIRST / 2))
        wait = min(RETRY_LAST, wait * 2)
        self._retries[view.id] = (time.monotonic() + wait, wait)

    def _due(self, group: str, views: Sequence[Definition]) -> bool:
        """Whether a group that recomputes may run again: not more than half of the time."""
        members = [view for view in views if view.group == group]
        if not any(view.recomputes for view in members):
            return True
        last, took = self._last_run.get(group, (0.0, 0.0))
        least = max((view.options.interval or 1_000_000) for view in members) / 1e6
        return time.monotonic() - last >= max(least, took)

    def _mark(self, view: Definition, state: definitions.State, error: dict | None) -> None:
        self._db.catalog.write(lambda tx: definitions.mark(tx, view.id, state, error=error))

    def housekeeping(self) -> None:
        """Now and then: snapshots and expiry of change feeds, and files that nobody refers to any more."""
        if time.monotonic() - self._kept_house < KEEP_HOUSE:
            return
        self._kept_house = time.monotonic()
        self._db.log.pass_time()
        upkeep.keep(self._db.catalog, self._db.log)


def _frontier(tx: Transaction) -> list[int]:
    """Where the default group stands, if it shows anything."""
    row = tx.one(
        "SELECT max(position) FROM views WHERE \"group\" = ? AND state = 'live' AND folded IS NOT NULL",
        DEFAULT_GROUP,
    )
    return [] if row is None or row[0] is None else [int(row[0])]


def _groups_in_order(views: Sequence[Definition]) -> list[str]:
    """The groups so that each comes after those whose views it reads; the default one is first."""
    by_id = {view.id: view for view in views}
    needs = {
        view.group: {
            by_id[read.id].group
            for other in views
            if other.group == view.group
            for read in other.reads
            if read.kind == "view" and read.id in by_id
        }
        - {view.group}
        for view in views
    }
    order: list[str] = []
    waiting = sorted(needs, key=lambda group: (group != DEFAULT_GROUP, group))
    while waiting:
        ready = [group for group in waiting if needs[group] <= set(order)] or waiting[:1]
        order += ready
        waiting = [group for group in waiting if group not in ready]
    return order


def _left_behind(view: Definition, live: Sequence[Definition]) -> bool:
    """Whether a replacement was ready, and the others have gone on without it."""
    return not view.current and view.position < max(other.position for other in live)


def _by_position(views: Sequence[Definition]) -> list[list[Definition]]:
    """Views that stand together, those furthest ahead first; replacements stand alone."""
    found: dict[tuple[int, int], list[Definition]] = {}
    for view in views:
        found.setdefault((-view.position, 0 if view.current else view.id), []).append(view)
    return [found[key] for key in sorted(found)]
