"""Conditional appends: only if a topic, or a key, has not moved past a position.

No index of keys is kept. The rows after the position are scanned for the key, outside the transaction as
far as they are committed already, inside it for the few that came since: the cost follows what has happened
since the position, not the size of the topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evert.catalog import Transaction
from evert.errors import Conflict
from evert.log.protocol import Batch, Guard
from evert.log.reader import LogReader
from evert.log.topic import POSITION, Topic


def settle(guards: tuple[Guard, ...], reader: LogReader) -> tuple[Guard, ...]:
    """Check the guards on keys against what is committed, and move them forward to there."""
    settled = []
    for guard in guards:
        if guard.key is not None:
            head = reader.head()
            _scan(guard, reader.rows_of(guard.topic, guard.since, head, guard.topic.key))
            guard = replace(guard, since=max(guard.since, head))
        settled.append(guard)
    return tuple(settled)


def check_guard(tx: Transaction, reader: LogReader, guard: Guard) -> None:
    """In the commit: `Conflict` if the guard does not hold."""
    if guard.key is not None:
        _scan(guard, reader.rows_in(tx, guard.topic, guard.since, guard.topic.key))
        return
    last = last_position(tx, guard.topic)
    if last > guard.since:
        raise _conflict(f"the topic {guard.topic.name}", guard, last)


def last_position(tx: Transaction, topic: Topic) -> int:
    """The position of the topic's last row, though it may have been removed since."""
    sql = (
        "SELECT coalesce((SELECT position FROM tail WHERE topic = ? ORDER BY position DESC LIMIT 1), 0),"
        " coalesce((SELECT last FROM segments WHERE topic = ? ORDER BY last DESC LIMIT 1), 0),"
        " gone, compacted FROM topics WHERE id = ?"
    )
    return max(tx.one(sql, topic.id, topic.id, topic.id) or (0,))


def _scan(guard: Guard, batches: Iterable[Batch]) -> None:
    assert guard.key is not None
    for batch in batches:
        mask = None
        for name, value in zip(guard.topic.key, guard.key, strict=True):
            equal = _equal(batch.rows.column(name), value)
            mask = equal if mask is None else pc.and_(mask, equal)
        if hits := batch.rows.column(POSITION).filter(mask).to_pylist():
            shown = tuple(value.as_py() for value in guard.key)
            raise _conflict(f"the key {shown!r} of {guard.topic.name}", guard, hits[-1])


def _equal(column: pa.Array, value: pa.Scalar) -> Any:
    """Where a key column has a value; NaN is equal to itself here, and -0.0 to 0.0."""
    value = value.cast(column.type)
    if pa.types.is_floating(column.type) and value.as_py() != value.as_py():
        return pc.is_nan(column)
    return pc.equal(column, value)


def _conflict(what: str, guard: Guard, last: int) -> Conflict:
    return Conflict(
        f"{what} has moved to position {last}, past {guard.since}",
        hint="read it again and decide anew",
        topic=guard.topic.name,
        position=last,
    )
