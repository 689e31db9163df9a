"""Following a view: its rows at a position, and then what every epoch changes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import pyarrow as pa

from evert.catalog import Transaction
from evert.errors import Expired, UnknownView
from evert.views import changes, definition, reader
from evert.views.changes import Entry
from evert.views.definition import Definition
from evert.views.frontier import begin
from evert.views.reader import Reader

ROWS_AT_ONCE = 100_000
WEIGHT = "_weight"


@dataclass(frozen=True)
class Change:
    """One step of a feed. To go on later, remember the position.

    `snapshot`: the whole content. `delta`: what one epoch changed; `_weight` is how often a row was added, or
    if it is negative, removed. `reset`: forget what you have, a snapshot follows. `progress`: nothing has changed
    up to this position.
    """

    kind: Literal["snapshot", "delta", "reset", "progress"]
    position: int
    rows: pa.Table


@dataclass(frozen=True)
class _Step:
    """What a look at the feed found: where the view is, and what comes next, if it can be given."""

    version: int
    view: Definition
    lost: bool = False
    waiting: bool = False
    entries: tuple[Entry, ...] = ()


def follow(
    views: Reader, name: str, after: int | None, wait: bool, timeout: float | None, progress: bool
) -> Iterator[Change]:
    """The changes of a view after a position; see `View.changes`."""
    feed: int | None = None
    if after is None:
        change, feed = _snapshot(views, name)
        after = change.position
        yield change
    last = time.monotonic()
    while True:
        step = _look(views, name, feed, after, wait)
        if step.lost:
            yield Change("reset", step.view.position, surface_schema(step.view).empty_table())
            change, feed = _snapshot(views, name)
            after, last = change.position, time.monotonic()
            yield change
            continue
        feed = step.view.feed
        for position, entries in groupby(step.entries, key=lambda entry: entry.position):
            change = Change("delta", position, _surface(step.view, list(entries)))
            after, last = position, time.monotonic()
            if change.rows.num_rows:
                yield change
        if step.entries:
            continue
        if not step.waiting and after < step.view.position:
            after = step.view.position
            if progress:
                yield Change("progress", after, surface_schema(step.view).empty_table())
        if step.view.state == "stopped" or (step.view.state == "resuming" and not wait):
            raise reader.stopped(step.view)
        if not wait:
            return
        left = 1.0 if timeout is None else min(1.0, last + timeout - time.monotonic())
        if left <= 0:
            return
        views.catalog.wait(step.version, left)


def _look(views: Reader, name: str, feed: int | None, after: int, wait: bool) -> _Step:
    """What comes after a position: a feed that is another one by now, or has lost it, cannot be continued."""

    def look(tx: Transaction) -> _Step:
        (version,) = tx.one("SELECT version FROM state") or (0,)
        view = definition.lookup(tx, name)
        if view is None:
            if feed is not None:
                raise Expired(f"the view {name} was dropped while it was read", view=name)
            raise _unknown(tx, name)
        if view.state == "building":
            if not wait:
                raise reader.not_ready(tx, view)
            return _Step(version, view, waiting=True)
        start = begin(tx, view)
        if (feed is not None and view.feed != feed) or (start is not None and after < start):
            return _Step(version, view, lost=True)
        entries = changes.deltas(tx, views.folder, view.feed, after, view.position, most_rows=ROWS_AT_ONCE)
        return _Step(version, view, entries=tuple(entries))

    return changes.look_again(views.catalog, look)


def _snapshot(views: Reader, name: str) -> tuple[Change, int]:
    (opened,) = views.open([name])
    view = opened.seen.view
    rows = opened.weighted()
    if view.key is None:  # equal rows may be in several shards
        rows = changes.added_up([rows], view.schema)
    rows = pa.Table.from_arrays(rows.columns, schema=surface_schema(view))
    return Change("snapshot", view.position, rows), view.feed


def _surface(view: Definition, entries: Sequence[Entry]) -> pa.Table:
    summed = changes.consolidated(view.feed, entries, view.schema)
    return pa.Table.from_arrays(summed.columns, schema=surface_schema(view))


def surface_schema(view: Definition) -> pa.Schema:
    return pa.schema([*view.schema, pa.field(WEIGHT, pa.int64(), nullable=False)])


def _unknown(tx: Transaction, name: str) -> UnknownView:
    names = [view.name for view in definition.all(tx) if view.current]
    return definition.unknown(name, names)
