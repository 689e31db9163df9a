"""How the views are: where they stand, how far behind they are, how large they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evert.catalog import Transaction
from evert.errors import EvertError
from evert.log import watermarks
from evert.views import definition
from evert.views.definition import Definition, State
from evert.views.reader import Reader


@dataclass(frozen=True)
class ViewStatus:
    """One view, as the catalog knows it; None where it cannot be told.

    `lag_events` counts the rows of the topics it reads that it has not seen; where a segment lies across its
    position they are estimated. `lag_seconds` is the age of the oldest of them. `epoch_ms` is the last epoch of
    its group, `changed` how many rows of the view it changed. `bytes` is the size of all its state.
    """

    name: str
    group: str
    state: State
    position: int
    lag_commits: int
    lag_events: int
    lag_seconds: float
    epoch_ms: float | None
    changed: int | None
    rows: int | None
    bytes: int
    error: dict[str, Any] | None
    recomputes: str | None
    corrections: int = 0
    """How many of the events that it has seen were stragglers."""
    replacing: bool = False
    """Whether this is a replacement, which has no name yet."""
    held: bool = False
    """Whether it is a replacement that waits until it is told to take its place."""


def statuses(views: Reader) -> list[ViewStatus]:
    """All views in the order of their definition, each replacement after the view it will replace."""
    with views.catalog.read() as tx:
        found = definition.all(tx)
        known = {view.id: view for view in found}
        found.sort(key=lambda view: (view.replaces or view.id, not view.current))
        (head,) = tx.one("SELECT head FROM state") or (0,)
        told = [_status(tx, view, known, int(head)) for view in found]
    return [replace(one, rows=_rows(views, one)) for one in told]


def _rows(views: Reader, one: ViewStatus) -> int | None:
    if one.state not in ("live", "absent") or one.replacing:
        return None
    try:
        return views.count(one.name)
    except EvertError:
        return None


def topics_of(view: Definition, known: Mapping[int, Definition]) -> set[int]:
    """The ids of the topics that a view reads, also through other views."""
    found: set[int] = set()
    waiting, done = [view], set()
    while waiting:
        one = waiting.pop()
        done.add(one.id)
        found.update(read.id for read in one.reads if read.kind != "view")
        below = (known.get(read.id) for read in one.reads if read.kind == "view")
        waiting.extend(other for other in below if other is not None and other.id not in done)
    return found


def unseen(tx: Transaction, topics: Iterable[int], position: int) -> tuple[int, int | None]:
    """About how many rows of topics lie after a position, and when the first of them came."""
    events, oldest = 0, None
    for topic in topics:
        tail = tx.one(
            "SELECT coalesce(sum(rows), 0), min(at) FROM tail WHERE topic = ? AND position > ?",
            topic,
            position,
        )
        sealed = tx.all(
            "SELECT first, last, rows, first_at, last_at FROM segments WHERE topic = ? AND last > ?",
            topic,
            position,
        )
        rows, at = tail or (0, None)
        events += rows
        times = [] if at is None else [at]
        for first, last, rows, first_at, last_at in sealed:
            share = min(1.0, (last - position) / (last - first + 1))
            events += max(1, round(rows * share))
            times.append(first_at if first > position else round(last_at - (last_at - first_at) * share))
        oldest = min([*times, *([] if oldest is None else [oldest])], default=None)
    return events, oldest


def _status(tx: Transaction, view: Definition, known: Mapping[int, Definition], head: int) -> ViewStatus:
    topics = topics_of(view, known)
    events, oldest = unseen(tx, topics, max(view.position, 0))
    (size,) = tx.one(
        "SELECT coalesce(sum(r.bytes), 0) FROM nodes n JOIN runs r ON r.node = n.state WHERE n.view = ?",
        view.id,
    ) or (0,)
    epoch = tx.one(
        'SELECT micros FROM epochs WHERE "group" = ? AND upto = ? ORDER BY id DESC LIMIT 1',
        view.group,
        view.position,
    )
    (changed,) = tx.one(
        "SELECT coalesce(sum(rows), 0) FROM changes WHERE feed = ? AND position = ? AND kind = 'delta'",
        view.feed,
        view.position,
    ) or (0,)
    return ViewStatus(
        name=view.name,
        group=view.group,
        state=view.state,
        position=view.position,
        lag_commits=max(0, head - max(view.position, 0)),
        lag_events=int(events),
        lag_seconds=0.0 if oldest is None else max(0, tx.now - oldest) / 1_000_000,
        epoch_ms=None if epoch is None else epoch[0] / 1_000,
        changed=None if epoch is None else int(changed),
        rows=None,
        bytes=int(size),
        error=view.error,
        recomputes=view.recomputes,
        corrections=sum(watermarks.corrections(tx, topic, view.position) for topic in topics),
        replacing=not view.current,
        held=view.held,
    )
