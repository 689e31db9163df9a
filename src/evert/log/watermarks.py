"""Watermarks: how far a stream has come in the time of its events.

    latest event time of a source, less `lateness` ──┬──> its mark ──> the least of those
    a marker: no more before                       ──┘                 that are not idle ──> the stream's watermark
    the watermark, less `forget_after` ──> the stream's horizon, before which nothing is let in any more

Neither a mark nor a watermark nor a horizon ever goes back. They are decided in the commit that moves them, and the
latter two are written down with the commit's position: what they were at a position is a matter of the log up to
there, however the log is cut, and whenever it is read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evert.catalog import Transaction
from evert.log.topic import UTC_MICROSECONDS, Topic

LEAST = -(2**62)
"""The mark of a source that has said nothing yet."""
NOW = 2**62
"""After all positions."""
_AT_ONCE = 500


@dataclass(frozen=True)
class Source:
    """Who sends events, and what is known of them; times are microseconds since 1970."""

    name: str
    mark: int
    seen: int
    idle: bool
    events: int
    late: int
    dropped: int


@dataclass(frozen=True)
class Sent:
    """What a commit brings of one source: its latest event time, and how many events are late and set aside."""

    source: str
    high: int
    events: int
    late: int
    dropped: int


def marks(tx: Transaction, topic: Topic, names: Sequence[str]) -> dict[str, int]:
    """The marks of sources, which are none of them before the stream's last marker or its horizon."""
    floor = max(_floor(tx, topic), horizon(tx, topic.id))
    found = dict.fromkeys(names, floor)
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        places = ", ".join("?" * len(some))
        sql = f"SELECT source, mark FROM sources WHERE topic = ? AND source IN ({places})"
        found.update((source, max(mark, floor)) for source, mark in tx.all(sql, topic.id, *some))
    return found


def record(tx: Transaction, topic: Topic, position: int, at: int, sent: Iterable[Sent]) -> None:
    """Count what sources have sent, and move their marks and the watermark."""
    for one in sent:
        _raise(tx, topic, one.source, one.high - topic.options.lateness, at)
        tx.run(
            "UPDATE sources SET events = events + ?, late = late + ?, dropped = dropped + ?"
            " WHERE topic = ? AND source = ?",
            one.events,
            one.late,
            one.dropped,
            topic.id,
            one.source,
        )
    settle(tx, topic, position, at)


def no_more_before(
    tx: Transaction, topic: Topic, position: int, at: int, time: int, source: str | None
) -> None:
    """A source, or every one there is or will be, has promised to send nothing older than a time."""
    if source is not None:
        _raise(tx, topic, source, max(time, marks(tx, topic, [source])[source]), at)
    else:
        tx.run(
            "INSERT INTO floors VALUES (?, ?) ON CONFLICT (topic) DO UPDATE SET floor = excluded.floor",
            topic.id,
            max(time, _floor(tx, topic)),
        )
        tx.run("UPDATE sources SET mark = ? WHERE topic = ? AND mark < ?", time, topic.id, time)
    settle(tx, topic, position, at)


def held_back(tx: Transaction, topic: Topic, at: int) -> bool:
    """Whether a source has fallen silent by now that still counts."""
    idle = topic.options.idle_after
    if idle is None:
        return False
    sql = "SELECT 1 FROM sources WHERE topic = ? AND idle = 0 AND seen <= ? LIMIT 1"
    return tx.one(sql, topic.id, at - idle) is not None


def watermark(tx: Transaction, topic: int, upto: int = NOW) -> int | None:
    """The watermark of a stream after the commit at a position; None before its first event."""
    return _value(tx, "watermarks", topic, upto)


def horizon(tx: Transaction, topic: int, upto: int = NOW) -> int:
    """The time before which nothing is let into a stream after the commit at a position; LEAST if there is none."""
    found = _value(tx, "horizons", topic, upto)
    return LEAST if found is None else found


def _value(tx: Transaction, table: str, topic: int, upto: int) -> int | None:
    sql = f"SELECT value FROM {table} WHERE topic = ? AND position <= ? ORDER BY position DESC LIMIT 1"
    row = tx.one(sql, topic, upto)
    return None if row is None else int(row[0])


@dataclass(frozen=True)
class History:
    """The watermarks of a stream by the positions of the commits that moved it."""

    positions: np.ndarray
    values: np.ndarray

    def before(self, positions: np.ndarray) -> pa.Array:
        """For each position the watermark after all earlier commits, NULL if there was none."""
        place = np.searchsorted(self.positions, positions, "left") - 1
        none = place < 0
        values = np.zeros(len(place), np.int64) if none.all() else self.values[np.maximum(place, 0)]
        return pa.array(values, pa.int64(), mask=none).cast(UTC_MICROSECONDS)


def history(tx: Transaction, topic: int, after: int, upto: int) -> History:
    """The watermarks that matter to events in `(after, upto]`."""
    sql = (
        "SELECT position, value FROM watermarks WHERE topic = ? AND position <= ? AND position >= coalesce("
        "(SELECT max(position) FROM watermarks WHERE topic = ? AND position <= ?), 0) ORDER BY position"
    )
    found = np.array(tx.all(sql, topic, upto, topic, after), np.int64).reshape(-1, 2)
    return History(found[:, 0], found[:, 1])


def sources(tx: Transaction, topic: int) -> list[Source]:
    """The sources of a stream, the one that is furthest behind first."""
    columns = "source, mark, seen, idle, events, late, dropped"
    sql = f"SELECT {columns} FROM sources WHERE topic = ? ORDER BY mark, source"
    return [
        Source(name, mark, seen, bool(idle), *rest) for name, mark, seen, idle, *rest in tx.all(sql, topic)
    ]


def retire(tx: Transaction, topic: int) -> None:
    """Another column names the sources from now on: those of before are not waited for."""
    tx.run("UPDATE sources SET idle = 1 WHERE topic = ?", topic)


def corrected(tx: Transaction, topic: int, position: int, events: int) -> None:
    """So many stragglers have come into a stream."""
    tx.run("INSERT INTO corrections VALUES (?, ?, ?)", topic, position, events)


def corrections(tx: Transaction, topic: int, upto: int) -> int:
    """How many stragglers have come into a stream, up to a position."""
    sql = "SELECT coalesce(sum(events), 0) FROM corrections WHERE topic = ? AND position <= ?"
    (events,) = tx.one(sql, topic, upto) or (0,)
    return int(events)


def prune(tx: Transaction, topic: int, gone: int) -> None:
    """The events up to a position are gone: of the watermarks and horizons up to there the last is enough, of the
    corrections their number.
    """
    if events := corrections(tx, topic, gone):
        tx.run("DELETE FROM corrections WHERE topic = ? AND position <= ?", topic, gone)
        corrected(tx, topic, gone, events)
    for table in ("watermarks", "horizons"):
        sql = f"SELECT max(position) FROM {table} WHERE topic = ? AND position <= ?"
        (last,) = tx.one(sql, topic, gone) or (None,)
        if last is not None:
            tx.run(f"DELETE FROM {table} WHERE topic = ? AND position < ?", topic, last)


def forget(tx: Transaction, topic: int) -> None:
    """A topic is dropped."""
    for table in ("corrections", "floors", "horizons", "sources", "watermarks"):
        tx.run(f"DELETE FROM {table} WHERE topic = ?", topic)


def _raise(tx: Transaction, topic: Topic, source: str, mark: int, at: int) -> None:
    tx.run(
        "INSERT INTO sources (topic, source, mark, seen, idle, events, late, dropped)"
        " VALUES (?, ?, ?, ?, 0, 0, 0, 0) ON CONFLICT (topic, source) DO UPDATE SET"
        " mark = CASE WHEN sources.mark < excluded.mark THEN excluded.mark ELSE sources.mark END,"
        " seen = excluded.seen, idle = 0",
        topic.id,
        source,
        mark,
        at,
    )


def settle(tx: Transaction, topic: Topic, position: int, at: int) -> None:
    """Let those be idle that are silent, and the watermark be what the others say."""
    idle = topic.options.idle_after
    if idle is not None:
        tx.run("UPDATE sources SET idle = 1 WHERE topic = ? AND idle = 0 AND seen <= ?", topic.id, at - idle)
    least = tx.one("SELECT min(mark) FROM sources WHERE topic = ? AND idle = 0", topic.id)
    if least is None or least[0] is None:  # all are silent, and nobody holds back the one that was ahead
        least = tx.one("SELECT max(mark) FROM sources WHERE topic = ?", topic.id)
    value = least[0] if least is not None and least[0] is not None else _floor(tx, topic)
    now = watermark(tx, topic.id)
    if value != LEAST and (now is None or now < value):
        tx.run("INSERT INTO watermarks VALUES (?, ?, ?)", topic.id, position, value)
        now = value
    length = topic.options.forget_after
    if now is not None and length is not None and horizon(tx, topic.id) < now - length:
        tx.run(
            "INSERT INTO horizons VALUES (?, ?, ?)"
            " ON CONFLICT (topic, position) DO UPDATE SET value = excluded.value",
            topic.id,
            position,
            now - length,
        )


def _floor(tx: Transaction, topic: Topic) -> int:
    """What the stream's last marker said for all sources."""
    row = tx.one("SELECT floor FROM floors WHERE topic = ?", topic.id)
    return LEAST if row is None else int(row[0])
