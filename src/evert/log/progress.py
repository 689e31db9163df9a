"""How far each group has read each partition: the `consumed` rows of the catalog.

A row is made when a group first meets a topic, so that what comes later counts as its backlog. A group reads
a topic in one way only: with members that own partitions, or as a queue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np
import pyarrow as pa

from evert.catalog import Catalog, Transaction
from evert.errors import BadOption, Expired, Refused
from evert.log import segments, tail
from evert.log.follower import Cursor, Extent, Follower, Piece
from evert.log.protocol import Position
from evert.log.reader import LogReader
from evert.log.topic import INGESTED_AT, OFFSET, PARTITION, POSITION, Topic

Kind = Literal["consumer", "queue", "ordered queue"]
Start = Literal["earliest", "latest"]
Target = str | int | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class First:
    """The first row of a partition that a scan was looking for."""

    offset: int
    position: Position
    at: int


def head(tx: Transaction) -> Position:
    row = tx.one("SELECT head FROM state")
    assert row is not None
    return int(row[0])


def extent(tx: Transaction, topic: Topic) -> Extent:
    rows = tx.all('SELECT "partition", first, next FROM offsets WHERE topic = ?', topic.id)
    (gone,) = tx.one("SELECT gone FROM topics WHERE id = ?", topic.id) or (0,)
    firsts = {partition: first for partition, first, _ in rows}
    return Extent(firsts, {partition: end for partition, _, end in rows}, gone, head(tx))


def cursors(tx: Transaction, group: str, topic: Topic) -> dict[int, Cursor]:
    sql = 'SELECT "partition", next, position FROM consumed WHERE "group" = ? AND topic = ?'
    return {partition: Cursor(next_, position) for partition, next_, position in tx.all(sql, group, topic.id)}


def begin(tx: Transaction, group: str, topic: Topic, kind: Kind, start: Start) -> None:
    """Make the group's rows for a topic that it has not met before."""
    sql = 'SELECT kind, "partition" FROM consumed WHERE "group" = ? AND topic = ?'
    known = tx.all(sql, group, topic.id)
    for other, _ in known:
        if other != kind:
            raise Refused(
                f"the group {group} already reads {topic.name} as {_article(other)}, not as {_article(kind)}",
                hint="choose another group name",
                topic=topic.name,
                group=group,
            )
    if len(known) == topic.partitions:
        return
    held = extent(tx, topic)
    for partition, first in held.firsts.items():
        ends = Cursor(held.ends[partition], held.head)
        cursor = ends if start == "latest" else Cursor(first, held.gone)
        sql = "INSERT INTO consumed VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        tx.run(sql, group, topic.id, partition, kind, cursor.next, cursor.position, tx.now)


def store(tx: Transaction, group: str, topic: int, moved: Mapping[int, Cursor]) -> None:
    where = '"group" = ? AND topic = ? AND "partition" = ?'
    sql = f"UPDATE consumed SET next = ?, position = ?, at = ? WHERE {where}"
    for partition, cursor in moved.items():
        tx.run(sql, cursor.next, cursor.position, tx.now, group, topic, partition)


def lost(topic: Topic, at: Mapping[int, Cursor], held: Extent) -> dict[int, tuple[int, int]]:
    """For each partition where retention has overtaken the cursor, the offsets from and to that are gone.

    That a table's rows were compacted away is not a loss: later rows of their keys tell all there is to know.
    """
    return {
        partition: (cursor.next, held.firsts[partition] - 1)
        for partition, cursor in at.items()
        if cursor.next < held.firsts[partition] and (topic.kind == "stream" or cursor.position < held.gone)
    }


def refuse_lost(group: str, topic: Topic, at: Mapping[int, Cursor], held: Extent) -> None:
    """`Expired` if rows that the group has not read were removed."""
    missing = lost(topic, at, held)
    if not missing:
        return
    count = sum(last - first + 1 for first, last in missing.values())
    places = "; ".join(f"partition {p}, offsets {a} to {b}" for p, (a, b) in sorted(missing.items()))
    raise Expired(
        f"{count} rows of {topic.name} passed retention before the group {group} read them: {places}",
        hint=f"go on with what is kept: evert groups reset {group} --to earliest --topic {topic.name}",
        topic=topic.name,
        group=group,
        lost=count,
        partitions={p: list(span) for p, span in sorted(missing.items())},
    )


def after(rows: pa.RecordBatch | None) -> dict[int, int]:
    """For each partition that has some of these rows, the offset that follows its last one."""
    if rows is None:
        return {}
    partitions, offsets = (rows.column(name).to_numpy() for name in (PARTITION, OFFSET))
    last = {p: int(offsets[np.flatnonzero(partitions == p)[-1]]) for p in np.unique(partitions).tolist()}
    return {partition: offset + 1 for partition, offset in last.items()}


def advance(
    catalog: Catalog,
    group: str,
    topic: Topic,
    follower: Follower,
    at: Mapping[int, Cursor],
    held: Extent,
    most: int,
) -> Piece:
    """The next rows at the cursors, without any left out: `Expired` says what was lost.

    Retention may run beside it. What it took while we read is a loss only if it was ours to read.
    """
    refuse_lost(group, topic, at, held)
    try:
        piece = follower.rows(at, held, most)
        _refuse_gap(topic, at, piece.rows)
    except Expired:
        with catalog.read() as tx:
            now = extent(tx, topic)
        refuse_lost(group, topic, at, now)
        follower.forget()
        piece = follower.rows(at, now, most)
        _refuse_gap(topic, at, piece.rows)
    return piece


def _refuse_gap(topic: Topic, at: Mapping[int, Cursor], rows: pa.RecordBatch | None) -> None:
    """`Expired` if the rows of a stream do not begin where the cursors are: retention came in between."""
    if rows is None or topic.kind != "stream":
        return
    partitions, offsets = (rows.column(name).to_numpy() for name in (PARTITION, OFFSET))
    for partition in np.unique(partitions).tolist():
        wanted, first = at[partition].next, int(offsets[np.argmax(partitions == partition)])
        if first != wanted:
            raise Expired(
                f"offsets {wanted} to {first - 1} of partition {partition} of {topic.name} are gone",
                topic=topic.name,
                offset=wanted,
            )


def locate(tx: Transaction, topic: Topic, partition: int, offset: int) -> Position:
    """A position after which the partition's rows from this offset on are found, and few before them."""
    places = [
        *((segment.first, segment.spans) for segment in segments.segments(tx, topic)),
        *tail.places(tx, topic),
    ]
    holding = [
        first for first, spans in places if any(p == partition and end > offset for p, _, end in spans)
    ]
    return min(holding) - 1 if holding else head(tx)


def first_rows(
    reader: LogReader,
    topic: Topic,
    after: Position,
    upto: Position,
    *,
    offsets: Mapping[int, int],
    since: int = 0,
) -> dict[int, First]:
    """The first row of each of the partitions at or after its offset and ingested at or after a time."""
    found: dict[int, First] = {}
    if not offsets:
        return found
    nexts = np.full(topic.partitions, 2**62)
    for partition, offset in offsets.items():
        nexts[partition] = offset
    for batch in reader.read([topic.name], after, upto, ()):
        partitions, numbers, positions = (
            batch.rows.column(name).to_numpy() for name in (PARTITION, OFFSET, POSITION)
        )
        at = batch.rows.column(INGESTED_AT).cast(pa.int64()).to_numpy()
        hits = np.flatnonzero((numbers >= nexts[partitions]) & (at >= since))
        for partition in np.unique(partitions[hits]).tolist():
            row = hits[np.argmax(partitions[hits] == partition)]
            found[partition] = First(int(numbers[row]), int(positions[row]), int(at[row]))
            nexts[partition] = 2**62
        if len(found) == len(offsets):
            break
    return found


def targets(reader: LogReader, topic: Topic, held: Extent, to: Target) -> dict[int, Cursor]:
    """The cursors that a reset asks for; it reads the log where they are not at one of its ends."""
    if to == "earliest":
        return {p: Cursor(first, held.gone) for p, first in held.firsts.items()}
    if to == "latest":
        return {p: Cursor(end, held.head) for p, end in held.ends.items()}
    if isinstance(to, datetime):
        since = (to.replace(tzinfo=to.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1)
        found = first_rows(reader, topic, 0, held.head, offsets=dict(held.firsts), since=since)
    elif isinstance(to, int) and not isinstance(to, bool) and to >= 0:
        found = first_rows(reader, topic, to, held.head, offsets=dict(held.firsts))
    else:
        raise BadOption(
            f"a group is reset to earliest, latest, a position or a datetime, not {to!r}",
            hint="a position stands for the rows after it",
        )
    return {
        p: Cursor(found[p].offset, found[p].position - 1) if p in found else Cursor(end, held.head)
        for p, end in held.ends.items()
    }


def topics_of(tx: Transaction, group: str) -> list[tuple[int, Kind]]:
    """The topics that a group reads, and how."""
    sql = 'SELECT topic, kind FROM consumed WHERE "group" = ? GROUP BY topic, kind ORDER BY topic'
    return [(topic, kind) for topic, kind in tx.all(sql, group)]


def _article(kind: str) -> str:
    return {"consumer": "a group of consumers", "queue": "a queue"}.get(kind, "a queue with order per key")
