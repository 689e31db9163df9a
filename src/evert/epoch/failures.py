"""When an epoch fails: which views are to blame, and which rows.

One job computes many views, so its error does not say whose it is. Each view is tried alone, without a commit.
The one that fails stops, and with it those that read it; for it, the first position that makes it fail is
sought by halving the range. Where the reason is a damaged run, the view is built anew from the log.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evert.catalog import Lease, Transaction
from evert.epoch.define import rebuild
from evert.epoch.spark import Damaged, JobFailed
from evert.errors import BadQuery, Expired
from evert.views import definition as definitions
from evert.views.definition import Definition

if TYPE_CHECKING:
    from evert.database import Database
    from evert.epoch.epoch import Epochs
    from evert.epoch.work import Work

JOB_FAILURES = (JobFailed, BadQuery, Expired)
DAMAGED = "damaged"
MOST_TRIES = 24
SHOWN = 5


def stop_culprits(db: Database, epochs: Epochs, work: Work, lease: Lease) -> list[Definition]:
    """Stop the views that fail alone and those that read them; all that are stopped now.

    None of them if all succeed alone: then it was not the data, but a worker that died or a machine too small.
    """
    blamed: dict[int, Exception] = {}
    for view in work.views:
        below = [other for other in work.views if other.id in _below(view, work.views)]
        if any(other.id in blamed for other in below):
            continue
        alone = replace(
            work, views=tuple(other for other in work.views if other in below or other.id == view.id)
        )
        try:
            epochs.attempt(alone)
        except JOB_FAILURES as own:
            blamed[view.id] = own
    stopped = [view for view in work.views if view.id in blamed or _below(view, work.views) & blamed.keys()]
    details = {view.id: _details(db, epochs, work, view, blamed.get(view.id)) for view in stopped}

    damaged = {number for number, own in blamed.items() if isinstance(own, Damaged)}

    def stop(tx: Transaction) -> None:
        lease.check(tx)
        for view in stopped:
            definitions.mark(tx, view.id, "stopped", error=details[view.id])
            if view.id in damaged or (damaged and work.building):  # what is built together begins together
                rebuild(tx, view)

    if stopped:
        db.catalog.write(stop)
    return stopped


def _below(view: Definition, views: tuple[Definition, ...]) -> set[int]:
    """The views that a view reads, directly or not."""
    by_id = {other.id: other for other in views}
    found: set[int] = set()
    waiting = [view]
    while waiting:
        for read in waiting.pop().reads:
            if read.kind == "view" and read.id in by_id and read.id not in found:
                found.add(read.id)
                waiting.append(by_id[read.id])
    return found


def _details(
    db: Database, epochs: Epochs, work: Work, view: Definition, error: Exception | None
) -> dict[str, Any]:
    """What is told of a stopped view."""
    if error is None:
        return {"error": "stopped", "message": "a view that it reads has stopped", "epoch": work.upto}
    if isinstance(error, Damaged):
        return {"error": DAMAGED, "message": f"{error}; it is being rebuilt from the log", "epoch": work.upto}
    before = view.error or {}
    if before.get("message") == str(error):
        return before | {"epoch": work.upto}
    below = _below(view, work.views)
    alone = replace(work, views=tuple(v for v in work.views if v.id == view.id or v.id in below))
    position = first_bad_position(epochs, alone)
    return {
        "error": "failed",
        "message": str(error),
        "epoch": work.upto,
        "position": position,
        "rows": [] if position is None else _rows_at(db, view, position),
    }


def first_bad_position(epochs: Epochs, work: Work) -> int | None:
    """The first position that makes the work fail, by halving.

    None if that takes too long, or is not to be found because compaction has replaced what was in between.
    """
    good, bad = max(0, work.after), work.upto
    for _ in range(MOST_TRIES):
        if bad - good <= 1:
            return bad
        middle = (good + bad) // 2
        try:
            epochs.attempt(replace(work, upto=middle, joins=False))
            good = middle
        except Expired:
            return None
        except JOB_FAILURES:
            bad = middle
    return None


def _rows_at(db: Database, view: Definition, position: int) -> list[dict[str, Any]]:
    """A few rows of what was written at a position to the topics that a view reads, as far as they are there."""
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(read.name for read in view.reads if read.kind != "view"):
        with suppress(Expired):
            for batch in db.log.read([name], after=position - 1, upto=position):
                rows = batch.rows.slice(0, SHOWN - len(found)).to_pylist()
                found += [{"topic": name} | {k: _plain(v) for k, v in row.items()} for row in rows]
    return found


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | str | None) else str(value)
