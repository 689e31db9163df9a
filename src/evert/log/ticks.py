"""Ticks: commits that bring nothing but the time, for views that ask what time it is.

A view that depends on the clock would change without any change of the log. So the clock is in the log: what
`now()` means at a position is the time of the last tick up to there, the same in every replay.
"""

from __future__ import annotations

from typing import NamedTuple

from evert.catalog import Transaction


class Tick(NamedTuple):
    """A commit that brought the time, in microseconds since 1970."""

    position: int
    at: int


def tick(tx: Transaction, position: int, at: int) -> None:
    """Write down that a commit is a tick, and its time."""
    tx.run("INSERT INTO ticks VALUES (?, ?)", position, at)


def last(tx: Transaction, upto: int | None = None) -> Tick | None:
    """The last tick up to a position, or of all; None if there is none."""
    sql = "SELECT position, at FROM ticks WHERE position <= ? ORDER BY position DESC LIMIT 1"
    row = tx.one(sql, 2**62 if upto is None else upto)
    return None if row is None else Tick(*row)


def prune(tx: Transaction, seen: int) -> None:
    """Nobody asks for the time before a position any more: of the ticks up to there the last is enough."""
    (kept,) = tx.one("SELECT max(position) FROM ticks WHERE position <= ?", seen) or (None,)
    if kept is not None:
        tx.run("DELETE FROM ticks WHERE position < ?", kept)
