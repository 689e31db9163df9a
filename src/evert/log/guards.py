"""Conditional appends: only if a topic, or a key, has not moved past a position.

No index of keys is kept. The rows after the position are scanned for the key, outside the transaction as
far as they are committed already, inside it for the few that came since: the cost follows what has happened
since the position, not the size of the topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from evert.catalog import Transaction
from evert.errors import BadRow, Conflict
from evert.log.protocol import Batch, Guard
from evert.log.reader import LogReader
from evert.log.topic import POSITION, Topic


def settle(guards: tuple[Guard, ...], reader: LogReader) -> tuple[Guard, ...]:
    """Check the guards on keys against what is committed, and move them forward to there."""
    settled = []
    for guard in guards:
        if guard.key is not None:
            head = reader.head()
            topic = reader.topic(guard.topic)
            _scan(topic, guard, reader.read([guard.topic], guard.since, head, topic.key))
            guard = replace(guard, since=max(guard.since, head))
        settled.append(guard)
    return tuple(settled)


def check_guard(tx: Transaction, reader: LogReader, guard: Guard) -> None:
    """In the commit: `Conflict` if the guard does not hold."""
    topic = reader.topic(guard.topic, tx)
    if guard.key is not None:
        _scan(topic, guard, reader.rows_in(tx, topic, guard.since, topic.key))
        return
    last = last_position(tx, topic)
    if last > guard.since:
        raise _conflict(topic, f"the topic {topic.name}", guard, last)


def last_position(tx: Transaction, topic: Topic) -> int:
    """The position of the topic's last row."""
    sql = (
        "SELECT coalesce((SELECT position FROM tail WHERE topic = ? ORDER BY position DESC LIMIT 1), 0),"
        " coalesce((SELECT last FROM segments WHERE topic = ? ORDER BY last DESC LIMIT 1), 0)"
    )
    return max(tx.one(sql, topic.id, topic.id) or (0,))


def _scan(topic: Topic, guard: Guard, batches: Iterable[Batch]) -> None:
    assert guard.key is not None
    if len(guard.key) != len(topic.key):
        raise BadRow(
            f"the key of {topic.name} is ({', '.join(topic.key)}), not {guard.key!r}", topic=topic.name
        )
    for batch in batches:
        mask = None
        for name, value in zip(topic.key, guard.key, strict=True):
            column = batch.rows.column(name)
            equal = pc.equal(column, pa.scalar(value, column.type))
            mask = equal if mask is None else pc.and_(mask, equal)
        if hits := batch.rows.column(POSITION).filter(mask).to_pylist():
            raise _conflict(topic, f"the key {guard.key!r} of {topic.name}", guard, hits[-1])


def _conflict(topic: Topic, what: str, guard: Guard, last: int) -> Conflict:
    return Conflict(
        f"{what} has moved to position {last}, past {guard.since}",
        hint="read it again and decide anew",
        topic=topic.name,
        position=last,
    )
