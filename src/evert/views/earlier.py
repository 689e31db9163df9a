"""What views were before they were replaced, so that one can go back.

    defined as A ── replaced by B ── gone back      present: A      earlier, newest first: B, A

A definition is what the user said: kind, query and options. Rows are not kept: going back builds the view from
the log again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from evert.catalog import Transaction
from evert.errors import NothingEarlier
from evert.log.names import folded
from evert.views.record import Definition, Kind, Options

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Earlier:
    """A definition that a view had, and the position and time at which another took its place."""

    name: str
    kind: Kind
    query: str
    options: Options
    position: int
    at: datetime

    @property
    def asked(self) -> tuple[Kind, str, Options]:
        return self.kind, self.query, self.options


def keep(tx: Transaction, view: Definition, position: int) -> None:
    """Another definition takes the place of this one."""
    kind, query, options = view.asked
    tx.run(
        "INSERT INTO earlier (folded, name, kind, query, options, position, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        folded(view.name),
        view.name,
        kind,
        query,
        options.text,
        position,
        tx.now,
    )


def of_view(tx: Transaction, name: str) -> list[Earlier]:
    """The earlier definitions of a view, newest first."""
    sql = "SELECT name, kind, query, options, position, at FROM earlier WHERE folded = ? ORDER BY id DESC"
    return [
        Earlier(known, kind, query, Options.load(options), position, _EPOCH + timedelta(microseconds=at))
        for known, kind, query, options, position, at in tx.all(sql, folded(name))
    ]


def before(tx: Transaction, view: Definition) -> Earlier:
    """The newest earlier definition that is another one than the present."""
    for one in of_view(tx, view.name):
        if one.asked != view.asked:
            return one
    raise NothingEarlier(
        f"the view {view.name} has no earlier definition to go back to",
        hint="definitions are kept when a view is replaced, until it is dropped or they are forgotten",
        view=view.name,
    )


def forget(tx: Transaction, name: str) -> None:
    """Forget the earlier definitions of a view."""
    tx.run("DELETE FROM earlier WHERE folded = ?", folded(name))
