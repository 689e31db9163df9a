"""The queue over a topic: which messages are with whom, which wait, and which are given up.

    never taken ──take──> taken ──ack──> gone
    (the cursor)            │ ▲
             refuse, or the │ │ due
             time runs out  ▼ │
                           waiting ──too often──> dead ──replay──> waiting

A delivery is a row of the catalog from the first take until it is acknowledged, with a copy of the message,
so that neither redelivery nor a dead letter depends on what retention has left. In an ordered queue a message
whose key has an older delivery is *held*: it is taken out of the log, and waits for its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evert.catalog import Transaction
from evert.errors import Fenced, UnknownTopic
from evert.log import progress, tail
from evert.log.follower import Cursor
from evert.log.protocol import Position
from evert.log.registry import Registry
from evert.log.topic import Topic
from evert.schema.schema import upgrade

CHUNK = 100
MOST_HELD = 10_000

Receipt = tuple[int, int, str]
"""A message's partition and offset, and the secret of its present delivery."""

_PLACE = '"group" = ? AND topic = ?'
_ACTIVE = "state IN ('taken', 'waiting')"
_COLUMNS = '"partition", "offset", position, at, schema, attempts, key, reason, data'


@dataclass(frozen=True)
class Place:
    """A group's queue over a topic, and how it treats deliveries. Durations are in microseconds."""

    group: str
    topic: Topic
    ordered: bool
    visibility: int
    max_attempts: int


@dataclass(frozen=True)
class Delivery:
    """A message as it is stored while it is not acknowledged."""

    partition: int
    offset: int
    position: Position
    at: int
    schema: int
    attempts: int
    key: str
    reason: str
    data: bytes

    def row(self, tx: Transaction, registry: Registry, topic: Topic) -> dict[str, Any]:
        """The user's columns under the topic's present schema."""
        written = registry.at_version(tx, topic, self.schema)
        table = pa.Table.from_batches([tail.decode(self.data, written.schema.arrow)])
        if written.version != topic.version:
            table = upgrade(table, topic.schema)
        found: dict[str, Any] = table.to_pylist()[0]
        return found


@dataclass(frozen=True)
class Stats:
    """How many messages of a queue are where; `behind` is all that are neither acknowledged nor dead."""

    ready: int
    in_flight: int
    delayed: int
    held: int
    dead: int
    behind: int


def take(
    tx: Transaction, place: Place, most: int, fresh: Sequence[Delivery], complete: Position, receipt: str
) -> tuple[list[Delivery], bool]:
    """Hand out what is due again and then what is fresh; the deliveries, and whether to try again.

    `fresh` are the next rows of the log as the caller has read them, up to the position `complete`. Rows that
    another consumer has taken since are left out. To try again makes sense where nothing is handed out and
    the cursor was not where the caller thought, or has moved past rows that are held.
    """
    topic = place.topic
    if tx.one("SELECT 1 FROM topics WHERE id = ? AND created = ?", topic.id, topic.created) is None:
        raise UnknownTopic(f"the topic {topic.name} was dropped", topic=topic.name)
    bury(tx, place)
    due = tx.now + place.visibility
    again = _redeliver(tx, place, most, receipt, due)
    room = most - len(again)
    if not room or not fresh:
        return again, False
    at = progress.cursors(tx, place.group, place.topic)
    left = [d for d in fresh if d.offset >= at[d.partition].next]
    firsts: dict[int, int] = {}
    for delivery in left:
        firsts.setdefault(delivery.partition, delivery.offset)
    if not left or any(offset != at[partition].next for partition, offset in firsts.items()):
        return again, True
    given, held, passed = _pick(tx, place, left, room)
    if not passed:
        return again, False
    _insert(tx, place, given, "taken", receipt, due)
    _insert(tx, place, held, "held", "", 0)
    moved = {d.partition: d.offset + 1 for d in left[:passed]}
    seen = complete if passed == len(left) else left[passed].position - 1
    cursors = {p: Cursor(next_, max(at[p].position, seen)) for p, next_ in moved.items()}
    progress.store(tx, place.group, place.topic.id, cursors)
    return again + given, True


def _redeliver(tx: Transaction, place: Place, most: int, receipt: str, due: int) -> list[Delivery]:
    sql = (
        f"SELECT id, {_COLUMNS} FROM deliveries WHERE {_PLACE} AND {_ACTIVE} AND due <= ?"
        " ORDER BY state, due LIMIT ?"
    )
    rows = tx.all(sql, place.group, place.topic.id, tx.now, most)
    for chunk in _chunks(rows):
        tx.run(
            "UPDATE deliveries SET state = 'taken', receipt = ?, due = ?, attempts = attempts + 1"
            f" WHERE id IN ({_marks(chunk)})",
            receipt,
            due,
            *(row[0] for row in chunk),
        )
    return [Delivery(p, o, pos, at, s, n + 1, *rest) for _, p, o, pos, at, s, n, *rest in rows]


def _pick(
    tx: Transaction, place: Place, left: Sequence[Delivery], room: int
) -> tuple[list[Delivery], list[Delivery], int]:
    """Which fresh rows go out, which are held back behind their key, and how many rows that makes."""
    if not place.ordered:
        return list(left[:room]), [], min(room, len(left))
    busy = _busy_keys(tx, place, {d.key for d in left})
    (count,) = tx.one(
        f"SELECT count(*) FROM deliveries WHERE {_PLACE} AND state = 'held'", place.group, place.topic.id
    ) or (0,)
    given: list[Delivery] = []
    held: list[Delivery] = []
    for passed, delivery in enumerate(left):
        if len(given) == room or count + len(held) >= MOST_HELD:
            return given, held, passed
        (held if delivery.key in busy else given).append(delivery)
        busy.add(delivery.key)
    return given, held, len(left)


def _busy_keys(tx: Transaction, place: Place, keys: Iterable[str]) -> set[str]:
    busy: set[str] = set()
    for chunk in _chunks(sorted(keys)):
        where = f"{_PLACE} AND key IN ({_marks(chunk)}) AND state <> 'dead'"
        sql = f"SELECT DISTINCT key FROM deliveries WHERE {where}"
        busy.update(key for (key,) in tx.all(sql, place.group, place.topic.id, *chunk))
    return busy


def _insert(
    tx: Transaction, place: Place, found: Sequence[Delivery], state: str, receipt: str, due: int
) -> None:
    for chunk in _chunks(found):
        values: list[Any] = []
        for d in chunk:
            values += (place.group, place.topic.id, d.partition, d.offset, d.position, d.at, d.schema)
            values += (state, receipt, due, 0 if state == "held" else d.attempts, d.key, "", d.data)
        tx.run(
            'INSERT INTO deliveries ("group", topic, "partition", "offset", position, at, schema, state,'
            " receipt, due, attempts, key, reason, data)"
            f" VALUES {', '.join([f'({_marks(range(14))})'] * len(chunk))}",
            *values,
        )


def acknowledge(tx: Transaction, place: Place, receipts: Sequence[Receipt]) -> None:
    """The messages are done. `Fenced`, and none of it, if a receipt does not hold any more."""
    keys = _keys(tx, place, receipts)
    _each(tx, place, receipts, "DELETE FROM deliveries")
    promote(tx, place.group, place.topic.id, keys)


def refuse(tx: Transaction, place: Place, receipts: Sequence[Receipt], reason: str, delay: int) -> None:
    """The messages come again after the delay, or are dead if they came often enough."""
    keys = _keys(tx, place, receipts)
    _each(
        tx,
        place,
        receipts,
        "UPDATE deliveries SET state = CASE WHEN attempts >= ? THEN 'dead' ELSE 'waiting' END,"
        " receipt = '', due = ?, reason = ?",
        place.max_attempts,
        tx.now + delay,
        reason,
    )
    promote(tx, place.group, place.topic.id, keys)


def extend(tx: Transaction, place: Place, receipts: Sequence[Receipt], by: int) -> None:
    """The messages stay with their holder for so long from now."""
    _each(tx, place, receipts, "UPDATE deliveries SET due = ?", tx.now + by)


def bury(tx: Transaction, place: Place) -> None:
    """Messages whose last delivery has timed out are dead."""
    where = f"{_PLACE} AND state = 'taken' AND due <= ? AND attempts >= ?"
    values = (place.group, place.topic.id, tx.now, place.max_attempts)
    keys = {key for (key,) in tx.all(f"SELECT DISTINCT key FROM deliveries WHERE {where}", *values)}
    if not keys:
        return
    tx.run(
        "UPDATE deliveries SET state = 'dead', receipt = '', reason = 'not acknowledged in time, delivered '"
        f" || CAST(attempts AS TEXT) || ' times' WHERE {where}",
        *values,
    )
    promote(tx, place.group, place.topic.id, keys - {""})


def promote(tx: Transaction, group: str, topic: int, keys: Iterable[str] | None) -> None:
    """Of each of the keys (None: of all) that has no message out, the oldest held one may go now."""
    if keys is None:
        sql = f"SELECT DISTINCT key FROM deliveries WHERE {_PLACE} AND state = 'held'"
        keys = [key for (key,) in tx.all(sql, group, topic)]
    for chunk in _chunks(sorted(keys)):
        tx.run(
            "UPDATE deliveries SET state = 'waiting', due = ? WHERE id IN (SELECT min(id) FROM deliveries"
            f" WHERE {_PLACE} AND key IN ({_marks(chunk)}) AND state <> 'dead' GROUP BY key"
            f" HAVING sum(CASE WHEN state = 'held' THEN 0 ELSE 1 END) = 0)",
            tx.now,
            group,
            topic,
            *chunk,
        )


def dead(tx: Transaction, place: Place) -> list[Delivery]:
    where = f"{_PLACE} AND state = 'dead'"
    sql = f'SELECT {_COLUMNS} FROM deliveries WHERE {where} ORDER BY "partition", "offset"'
    return [Delivery(*row) for row in tx.all(sql, place.group, place.topic.id)]


def replay(tx: Transaction, place: Place, chosen: Iterable[tuple[int, int]] | None) -> int:
    """Dead letters are messages again, with no attempts; in an ordered queue each when its key is free."""
    keys = [d.key for d in dead(tx, place)] if place.ordered else []
    state = "held" if place.ordered else "waiting"
    change = f"UPDATE deliveries SET state = '{state}', attempts = 0, reason = '', due = ?"
    count = _each_dead(tx, place, chosen, change, tx.now)
    promote(tx, place.group, place.topic.id, set(keys))
    return count


def discard(tx: Transaction, place: Place, chosen: Iterable[tuple[int, int]] | None) -> int:
    return _each_dead(tx, place, chosen, "DELETE FROM deliveries")


def stats(tx: Transaction, place: Place) -> Stats:
    sql = (
        "SELECT state, CASE WHEN due <= ? THEN 1 ELSE 0 END AS over, count(*) FROM deliveries"
        f" WHERE {_PLACE} GROUP BY state, over"
    )
    counts = {(state, over): n for state, over, n in tx.all(sql, tx.now, place.group, place.topic.id)}
    held = sum(n for (state, _), n in counts.items() if state == "held")
    gone = sum(n for (state, _), n in counts.items() if state == "dead")
    flying, delayed = counts.get(("taken", 0), 0), counts.get(("waiting", 0), 0)
    extent = progress.extent(tx, place.topic)
    at = progress.cursors(tx, place.group, place.topic)
    untaken = sum(end - max(at[p].next, extent.firsts[p]) for p, end in extent.ends.items() if p in at)
    ready = untaken + counts.get(("taken", 1), 0) + counts.get(("waiting", 1), 0)
    return Stats(ready, flying, delayed, held, gone, ready + flying + delayed + held)


def anything_due(tx: Transaction, place: Place) -> bool:
    sql = f"SELECT 1 FROM deliveries WHERE {_PLACE} AND {_ACTIVE} AND due <= ? LIMIT 1"
    return tx.one(sql, place.group, place.topic.id, tx.now) is not None


def forget(tx: Transaction, group: str, topic: int, cursors: Mapping[int, Cursor]) -> int:
    """Drop the deliveries and dead letters that a reset will read again; how many somebody holds."""
    flying = 0
    for partition, cursor in cursors.items():
        where = f"""{_PLACE} AND "partition" = ? AND "offset" >= ?"""
        values = (group, topic, partition, cursor.next)
        sql = f"SELECT count(*) FROM deliveries WHERE {where} AND state = 'taken' AND due > ?"
        flying += (tx.one(sql, *values, tx.now) or (0,))[0]
        tx.run(f"DELETE FROM deliveries WHERE {where}", *values)
    promote(tx, group, topic, None)
    return flying


def _keys(tx: Transaction, place: Place, receipts: Sequence[Receipt]) -> set[str]:
    if not place.ordered:
        return set()
    keys: set[str] = set()
    for partition, _, offsets in _by_partition(receipts):
        where = f'{_PLACE} AND "partition" = ? AND "offset" IN ({_marks(offsets)})'
        sql = f"SELECT key FROM deliveries WHERE {where}"
        keys.update(key for (key,) in tx.all(sql, place.group, place.topic.id, partition, *offsets))
    return keys


def _each(tx: Transaction, place: Place, receipts: Sequence[Receipt], change: str, *values: Any) -> None:
    """Change the deliveries of these receipts, all of them or none; only what is taken has a receipt."""
    changed = 0
    for partition, receipt, offsets in _by_partition(receipts):
        where = f'{_PLACE} AND "partition" = ? AND "offset" IN ({_marks(offsets)}) AND receipt = ?'
        at = (place.group, place.topic.id, partition, *offsets, receipt)
        changed += tx.run(f"{change} WHERE {where}", *values, *at)
    if changed != len(receipts):
        raise Fenced(
            f"{len(receipts) - changed} of {len(receipts)} receipts of {place.topic.name} no longer hold: the"
            " messages were delivered again, or are done",
            hint="nothing was changed; leave these messages to whoever has them now",
            topic=place.topic.name,
            group=place.group,
        )


def _each_dead(
    tx: Transaction, place: Place, chosen: Iterable[tuple[int, int]] | None, change: str, *values: Any
) -> int:
    sql = f"{change} WHERE {_PLACE} AND state = 'dead'"
    if chosen is None:
        return tx.run(sql, *values, place.group, place.topic.id)
    where = ' AND "partition" = ? AND "offset" = ?'
    return sum(tx.run(sql + where, *values, place.group, place.topic.id, *pair) for pair in set(chosen))


def _chunks(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _marks(items: Sequence[Any] | range) -> str:
    return ", ".join(["?"] * len(items))


def _by_partition(receipts: Sequence[Receipt]) -> Iterator[tuple[int, str, Sequence[int]]]:
    """The offsets of each partition and receipt: in this form SQLite looks them up instead of searching."""
    offsets: dict[tuple[int, str], list[int]] = {}
    for partition, offset, receipt in receipts:
        offsets.setdefault((partition, receipt), []).append(offset)
    for (partition, receipt), numbers in offsets.items():
        for chunk in _chunks(numbers):
            yield partition, receipt, chunk
