"""When to commit what time it is, for views that ask for it.

A tick goes before the epoch that brings new events, so that they are seen at the time they came; and when a row is
due, so that it leaves or comes though nothing else happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evert.catalog import Transaction
from evert.delta.passing import Passing
from evert.epoch.planning import Planning
from evert.log import ticks
from evert.plan.now import CLOCK_ID
from evert.trace import RunCache, Stored, Trace
from evert.views import states
from evert.views.definition import Definition

if TYPE_CHECKING:
    from evert.database import Database

AT_LEAST = 60_000_000
"""Where it cannot be foreseen when a row is due, it is looked at once a minute."""


BUILDING = 1_000_000
"""A view that is being built is told the time once a second."""


class Ticking:
    """Knows the views of a database that ask what time it is."""

    def __init__(self, db: Database, planning: Planning) -> None:
        self._db = db
        self._planning = planning
        self._cache = RunCache()
        self._known: dict[tuple[int, ...], int | None] = {}

    def tick_if_due(self, views: Sequence[Definition]) -> None:
        """Commit a tick if a view has to be told the time now."""
        asking = [view for view in views if view.state in ("live", "building") and self.asks(view)]
        if asking and self._is_due(asking):
            self._db.log.tick()

    def asks(self, view: Definition) -> bool:
        return any(leaf.id == CLOCK_ID for leaf in self._planning.plan(view).leaves)

    def _is_due(self, views: Sequence[Definition]) -> bool:
        head = self._db.position
        with self._db.catalog.read() as tx:
            now, last = tx.now, ticks.last(tx)
            if last is None:
                return True
            if now > last.at and last.position < head and any(view.position < head for view in views):
                return True
            if now >= last.at + BUILDING and any(view.state == "building" for view in views):
                return True
            due = [one for view in views if view.state == "live" for one in self._due(tx, view)]
        return any(last.at + AT_LEAST <= now if one == 0 else last.at < one <= now for one in due)

    def _due(self, tx: Transaction, view: Definition) -> Iterator[int]:
        """When the clock reaches the first rows of the view's nodes; 0 where that is not known."""
        numbers = states.of_view(tx, view.id)
        for node in self._planning.plan(view).nodes:
            operator = node.operator
            if isinstance(operator, Passing) and node.ports[1][0].source == CLOCK_ID:
                for stored in self._shards(tx, numbers[node.id]):
                    at = self._first(operator, stored)
                    if at is not None:
                        yield at

    def _shards(self, tx: Transaction, state: int) -> list[list[Stored]]:
        sql = (
            "SELECT shard, id, file, start, bytes, rows, checksum FROM runs"
            " WHERE node = ? AND trace = 'rows' ORDER BY id DESC"
        )
        found: dict[int, list[Stored]] = {}
        for shard, *run in tx.all(sql, state):
            found.setdefault(shard, []).append(Stored(*run))
        return list(found.values())

    def _first(self, operator: Passing, stored: Sequence[Stored]) -> int | None:
        runs = tuple(run.id for run in stored)
        if runs not in self._known:
            self._known = {} if len(self._known) > 1000 else self._known
            opened = [self._cache.open(self._db.path, run) for run in stored]
            self._known[runs] = operator.due(Trace(operator.layout, opened), self._db.config.hash_bits)
            self._cache.forget_removed()
        return self._known[runs]
