"""How far consumer groups are behind: in rows, in seconds, and in time until retention reaches them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evert.catalog import Catalog, Transaction
from evert.log import progress
from evert.log.follower import Cursor, Extent
from evert.log.progress import First
from evert.log.reader import LogReader
from evert.log.registry import Registry
from evert.log.topic import Topic

WARN_AT = 4
"""A warning comes when less than one part in so many of the retention is left."""


@dataclass(frozen=True)
class Lag:
    """One group's distance from the end of one partition.

    `events` counts the rows that are neither consumed nor removed, in a queue also those taken and not
    acknowledged. `seconds` is the age of the oldest of them. `expires_in` is the time in seconds until age
    retention reaches the first row that was not read; None without such a row or retention. `dropped` is what
    flow control has dropped of the topic.
    """

    group: str
    topic: str
    partition: int
    committed: int
    end: int
    events: int
    seconds: float
    expires_in: float | None
    warning: str | None
    dropped: int


@dataclass(frozen=True)
class _State:
    """What the catalog knows of a group on a topic."""

    group: str
    topic: Topic
    extent: Extent
    cursors: Mapping[int, Cursor]
    unacknowledged: Mapping[int, tuple[int, int]]
    dropped: int
    deletes_gone: int
    now: int


def lag(
    catalog: Catalog, registry: Registry, reader: LogReader, topic: str | None, group: str | None
) -> list[Lag]:
    """The lag of every partition that a group reads, by group, topic and partition."""
    with catalog.read() as tx:
        chosen = None if topic is None else registry.find(tx, topic).id
        topics = {t.id: t for t in registry.all(tx).values()}
        pairs = tx.all('SELECT DISTINCT "group", topic FROM consumed')
        states = [
            _state(tx, name, topics[number])
            for name, number in pairs
            if chosen in (None, number) and group in (None, name)
        ]
    found = [one for state in states for one in _lags(catalog, reader, state)]
    return sorted(found, key=lambda one: (one.group, one.topic, one.partition))


def _state(tx: Transaction, group: str, topic: Topic) -> _State:
    sql = (
        'SELECT "partition", count(*), min(at) FROM deliveries'
        """ WHERE "group" = ? AND topic = ? AND state <> 'dead' GROUP BY "partition" """
    )
    taken = {partition: (count, at) for partition, count, at in tx.all(sql, group, topic.id)}
    row = tx.one("SELECT dropped, deletes_gone FROM topics WHERE id = ?", topic.id)
    assert row is not None
    dropped, deletes_gone = row
    return _State(
        group,
        topic,
        progress.extent(tx, topic),
        progress.cursors(tx, group, topic),
        taken,
        dropped,
        deletes_gone,
        tx.now,
    )


def _lags(catalog: Catalog, reader: LogReader, state: _State) -> list[Lag]:
    extent = state.extent
    unread = {
        p: max(cursor.next, extent.firsts[p])
        for p, cursor in state.cursors.items()
        if cursor.next < extent.ends[p]
    }
    after = max(min((state.cursors[p].position for p in unread), default=0), extent.gone)
    if after < state.deletes_gone:
        after = 0
    firsts = progress.first_rows(reader, state.topic, after, extent.head, offsets=unread)
    lost = progress.lost(state.topic, state.cursors, extent)
    found = []
    for partition, cursor in sorted(state.cursors.items()):
        first = firsts.get(partition)
        taken, oldest = state.unacknowledged.get(partition, (0, None))
        since = min(at for at in (oldest, first.at if first else None, state.now) if at is not None)
        expires_in = _expires_in(state, first)
        behind = extent.ends[partition] - max(cursor.next, extent.firsts[partition])
        found.append(
            Lag(
                state.group,
                state.topic.name,
                partition,
                cursor.next,
                extent.ends[partition],
                behind + taken,
                (state.now - since) / 1_000_000,
                expires_in,
                _lost_warning(lost.get(partition))
                or _age_warning(state.topic, expires_in)
                or _size_warning(catalog, state.topic, first),
                state.dropped,
            )
        )
    return found


def _expires_in(state: _State, first: First | None) -> float | None:
    retain = state.topic.options.retain
    if retain is None or first is None:
        return None
    return max(0, first.at + retain - state.now) / 1_000_000


def _lost_warning(span: tuple[int, int] | None) -> str | None:
    if span is None:
        return None
    first, last = span
    return f"{last - first + 1} rows were removed before they were read: offsets {first} to {last}"


def _age_warning(topic: Topic, expires_in: float | None) -> str | None:
    retain = topic.options.retain
    if retain is None or expires_in is None or expires_in * WARN_AT >= retain / 1_000_000:
        return None
    return f"retention reaches the first unread row in {expires_in:.0f} seconds"


def _size_warning(catalog: Catalog, topic: Topic, first: First | None) -> str | None:
    """What lies at or after the first unread row fills most of what the topic may hold."""
    most = topic.options.retain_bytes
    if most is None or first is None:
        return None
    with catalog.read() as tx:
        (tail,) = tx.one(
            "SELECT coalesce(sum(bytes), 0) FROM tail WHERE topic = ? AND position >= ?",
            topic.id,
            first.position,
        ) or (0,)
        (sealed,) = tx.one(
            "SELECT coalesce(sum(bytes), 0) FROM segments WHERE topic = ? AND last >= ?",
            topic.id,
            first.position,
        ) or (0,)
    left = most - tail - sealed
    if left * WARN_AT >= most:
        return None
    return f"the first unread row will be removed after about {max(left, 0)} more bytes"
