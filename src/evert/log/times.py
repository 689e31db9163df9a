"""What is known of the time of streams: their watermarks, their sources, and what came too late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from evert.catalog import Transaction
from evert.log import watermarks
from evert.log.names import folded
from evert.log.topic import LATE, Topic

RECENTLY = 3_600_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class StreamTime:
    """A stream with event time. `events` are those that had a time, `late` those older than their source's mark,
    `dropped` those of them that were set aside, `recently` how many of these in the last hour, about.
    """

    topic: str
    watermark: datetime | None
    sources: int
    idle: int
    events: int
    late: int
    dropped: int
    recently: int

    @property
    def rising(self) -> bool:
        """Whether more has been set aside in the last hour than in all the time before."""
        return self.recently > self.dropped - self.recently


def moment(micros: int | None) -> datetime | None:
    """A time of the log's, as far as Python has one."""
    if micros is None:
        return None
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return None


def micros(time: datetime) -> int:
    """Microseconds since 1970; a time without zone is in UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def stream_time(tx: Transaction, topic: Topic) -> StreamTime:
    found = watermarks.sources(tx, topic.id)
    dropped = sum(source.dropped for source in found)
    return StreamTime(
        topic.name,
        moment(watermarks.watermark(tx, topic.id)),
        len(found),
        sum(source.idle for source in found),
        sum(source.events for source in found),
        sum(source.late for source in found),
        dropped,
        min(dropped, _recently(tx, topic)) if dropped else 0,
    )


def _recently(tx: Transaction, topic: Topic) -> int:
    """How many rows the stream of stragglers got in the last hour, to the segment."""
    row = tx.one("SELECT id FROM topics WHERE folded = ?", folded(topic.name + LATE))
    if row is None:
        return 0
    sql = (
        "SELECT coalesce(sum(rows), 0) FROM (SELECT rows FROM tail WHERE topic = ? AND at > ?"
        " UNION ALL SELECT rows FROM segments WHERE topic = ? AND last_at > ?) AS recent"
    )
    since = tx.now - RECENTLY
    (rows,) = tx.one(sql, row[0], since, row[0], since) or (0,)
    return int(rows)
