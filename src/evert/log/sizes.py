"""How much a topic holds, as the catalog knows it."""

from __future__ import annotations

from dataclasses import dataclass

from evert.catalog import Transaction
from evert.log.topic import Topic


@dataclass(frozen=True)
class Sizes:
    """What is kept of a topic. Positions are None where it is empty."""

    rows: int
    bytes: int
    first_position: int | None
    last_position: int | None
    segments: int
    tail_commits: int
    tail_rows: int
    dropped: int


def sizes(tx: Transaction, topic: Topic) -> Sizes:
    count, rows, size, first, last = tx.one(
        "SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(bytes), 0), min(first), max(last)"
        " FROM segments WHERE topic = ?",
        topic.id,
    ) or (0, 0, 0, None, None)
    commits, tail_rows, tail_size, tail_first, tail_last = tx.one(
        "SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(bytes), 0), min(position), max(position)"
        " FROM tail WHERE topic = ?",
        topic.id,
    ) or (0, 0, 0, None, None)
    (dropped,) = tx.one("SELECT dropped FROM topics WHERE id = ?", topic.id) or (0,)
    return Sizes(
        rows=rows + tail_rows,
        bytes=size + tail_size,
        first_position=min((p for p in (first, tail_first) if p is not None), default=None),
        last_position=max((p for p in (last, tail_last) if p is not None), default=None),
        segments=count,
        tail_commits=commits,
        tail_rows=tail_rows,
        dropped=dropped,
    )


def offsets(tx: Transaction, topic: Topic) -> list[tuple[int, int, int]]:
    """For each partition: its number, the first offset that is kept, and the next one to come."""
    sql = 'SELECT "partition", first, next FROM offsets WHERE topic = ? ORDER BY "partition"'
    return [(int(partition), int(first), int(after)) for partition, first, after in tx.all(sql, topic.id)]


def position_before_time(tx: Transaction, topic: Topic, at: int) -> int:
    """A position before every row that came at this time or later; some earlier rows may follow it too."""
    (tail,) = tx.one("SELECT max(position) FROM tail WHERE topic = ? AND at < ?", topic.id, at) or (None,)
    (sealed,) = tx.one("SELECT max(last) FROM segments WHERE topic = ? AND last_at < ?", topic.id, at) or (
        None,
    )
    return max(tail or 0, sealed or 0)


def position_before_last(tx: Transaction, topic: Topic, rows: int) -> int:
    """A position after which at least this many rows lie, if there are as many."""
    left = rows
    sql = (
        "SELECT first, rows FROM segments WHERE topic = ?1"
        " UNION ALL SELECT position, rows FROM tail WHERE topic = ?1 ORDER BY 1 DESC"
    )
    for first, count in tx.each(sql, topic.id):
        left -= count
        if left <= 0:
            return int(first) - 1
    return 0
