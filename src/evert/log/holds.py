"""Holds: who still needs old rows of a topic, so that retention and compaction do not take them unseen.

A holder counts the topic's rows after `since`, has seen everything up to `seen`, and can do without the rows
up to `upto`, because it has taken them over or has taken them back. One that reads the versions of a table
needs the rows that others have replaced, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from evert.catalog import Transaction


@dataclass(frozen=True)
class Hold:
    """What one holder needs of one topic."""

    holder: int
    since: int
    upto: int
    seen: int


def take(tx: Transaction, topic: int, holder: int, since: int, upto: int) -> None:
    """Begin to hold: rows after `since` count, those up to `upto` are kept elsewhere, none has been seen."""
    sql = "INSERT INTO holds (topic, holder, since, upto, seen) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    tx.run(sql, topic, holder, since, upto, since)


def needs_versions(tx: Transaction, topic: int, holder: int) -> None:
    tx.run("INSERT INTO version_holds (topic, holder) VALUES (?, ?) ON CONFLICT DO NOTHING", topic, holder)


def of_versions(tx: Transaction, topic: int) -> bool:
    """Whether somebody needs all versions of a table's rows."""
    return bool(tx.one("SELECT 1 FROM version_holds WHERE topic = ? LIMIT 1", topic))


def release(tx: Transaction, holder: int) -> None:
    tx.run("DELETE FROM holds WHERE holder = ?", holder)
    tx.run("DELETE FROM version_holds WHERE holder = ?", holder)


def seen(tx: Transaction, holder: int, position: int) -> None:
    tx.run("UPDATE holds SET seen = ? WHERE holder = ?", position, holder)


def can_go(tx: Transaction, topic: int, holder: int, upto: int, *, since: int | None = None) -> None:
    """The holder can do without rows up to here; with `since` it no longer counts them either."""
    tx.run(
        "UPDATE holds SET upto = ?, since = coalesce(?, since) WHERE topic = ? AND holder = ?",
        upto,
        since,
        topic,
        holder,
    )


def of_topic(tx: Transaction, topic: int) -> list[Hold]:
    sql = "SELECT holder, since, upto, seen FROM holds WHERE topic = ? ORDER BY holder"
    return [Hold(*row) for row in tx.all(sql, topic)]


def of_holder(tx: Transaction, topic: int, holder: int) -> Hold | None:
    row = tx.one("SELECT holder, since, upto, seen FROM holds WHERE topic = ? AND holder = ?", topic, holder)
    return None if row is None else Hold(*row)


def free_upto(tx: Transaction, topic: int) -> int | None:
    """The position up to which nobody needs the topic's rows; None if nobody holds any."""
    (upto,) = tx.one("SELECT min(upto) FROM holds WHERE topic = ?", topic) or (None,)
    return None if upto is None else int(upto)


def seen_upto(tx: Transaction, topic: int) -> int | None:
    """The position up to which every holder has seen the topic's rows; None if there is no holder."""
    (position,) = tx.one("SELECT min(seen) FROM holds WHERE topic = ?", topic) or (None,)
    return None if position is None else int(position)
