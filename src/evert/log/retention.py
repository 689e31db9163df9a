"""Retention: whole segments at the old end go, by age or by size, and readers who needed them are told."""

from __future__ import annotations

from evert.catalog import Catalog, Lease, Transaction
from evert.log import flow, holds, segments, watermarks
from evert.log.files import to_garbage
from evert.log.registry import Registry
from evert.log.segments import Segment
from evert.log.topic import Topic


def old_enough_to_seal(tx: Transaction, topic: Topic) -> int | None:
    """The last position of the tail that retention could remove once it is sealed; None if there is none."""
    if topic.options.retain is not None:
        sql = "SELECT max(position) FROM tail WHERE topic = ? AND at < ?"
        row = tx.one(sql, topic.id, tx.now - topic.options.retain)
        if row is not None and row[0] is not None:
            return int(row[0])
    if topic.options.retain_bytes is not None and flow.stored_bytes(tx, topic) > topic.options.retain_bytes:
        row = tx.one("SELECT max(position) FROM tail WHERE topic = ?", topic.id)
        return None if row is None else row[0]
    return None


def wanted(tx: Transaction, topic: Topic) -> int | None:
    """The last position that retention would remove now if nobody held it; None if there is none."""
    gone = _expired(tx, topic)
    return gone[-1].last if gone else None


def expire(catalog: Catalog, registry: Registry, topic: Topic, lease: Lease) -> int:
    """Remove the segments that are past the topic's retention; how many."""

    def work(tx: Transaction) -> int:
        lease.check(tx)
        current = registry.current(tx, topic)
        free = holds.free_upto(tx, topic.id)
        gone = [segment for segment in _expired(tx, current) if free is None or segment.last <= free]
        for segment in gone:
            to_garbage(tx, segment.file)
            tx.run("DELETE FROM segments WHERE id = ?", segment.id)
            for partition, _, end in segment.spans:
                sql = 'UPDATE offsets SET first = ? WHERE topic = ? AND "partition" = ? AND first < ?'
                tx.run(sql, end, topic.id, partition, end)
        if gone:
            tx.run("UPDATE topics SET gone = ? WHERE id = ?", gone[-1].last, topic.id)
            watermarks.prune(tx, topic.id, gone[-1].last)
        return len(gone)

    return catalog.write(work)


def _expired(tx: Transaction, topic: Topic) -> list[Segment]:
    """The oldest segments, up to the first that is young enough and within the size, or behind the tail."""
    options = topic.options
    (barrier,) = tx.one("SELECT min(position) FROM tail WHERE topic = ?", topic.id) or (None,)
    size = flow.stored_bytes(tx, topic)
    gone = []
    for segment in segments.segments(tx, topic):
        old = options.retain is not None and segment.last_at < tx.now - options.retain
        large = options.retain_bytes is not None and size > options.retain_bytes
        if not (old or large) or (barrier is not None and segment.last > barrier):
            break
        gone.append(segment)
        size -= segment.bytes
    return gone
