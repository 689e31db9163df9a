"""What happens when producers are faster than consumers.

`buffer` (the default) lets the topic grow on disk, up to `max_bytes` if that is set. `block` and `drop` keep
the slowest consumer group at most `capacity` rows behind: the producer waits (up to `block_timeout`), or its
rows are dropped and counted. A topic without a consumer group is never full in that sense.
"""

from __future__ import annotations

from evert.catalog import Transaction
from evert.errors import Full
from evert.log.topic import Options, Topic


class Wait(Exception):
    """The append has to wait for consumers."""

    def __init__(self, topic: str, behind: int, capacity: int, timeout: float) -> None:
        super().__init__(topic)
        self.topic = topic
        self.behind = behind
        self.capacity = capacity
        self.timeout = timeout


def admit(tx: Transaction, topic: Topic, options_text: str, rows: int, size: int) -> bool:
    """Whether the rows may be appended now; False if they are to be dropped."""
    options = topic.options if options_text == topic.options.text else Options.load(options_text)
    if options.max_bytes is not None and (held := stored_bytes(tx, topic)) + size > options.max_bytes:
        raise Full(
            f"{topic.name} holds {held} bytes and may hold {options.max_bytes}",
            hint="raise max_bytes, set a retention, or let its consumers catch up",
            topic=topic.name,
        )
    if options.when_full == "buffer" or options.capacity is None:
        return True
    behind = backlog(tx, topic)
    if behind is None or behind == 0 or behind + rows <= options.capacity:
        return True
    if options.when_full == "block":
        raise Wait(topic.name, behind, options.capacity, options.block_timeout / 1_000_000)
    return False


def drop(tx: Transaction, parts: list[tuple[Topic, int]]) -> None:
    """Count the rows of a commit that is dropped: all of it, because a commit is never split."""
    for topic, rows in parts:
        tx.run("UPDATE topics SET dropped = dropped + ? WHERE id = ?", rows, topic.id)


def backlog(tx: Transaction, topic: Topic) -> int | None:
    """How many rows the slowest consumer group is behind; None if there is no group.

    Of a queue, messages that are taken and not acknowledged count too; dead letters do not.
    """
    rows = tx.all(
        'SELECT c."group", sum(o.next - CASE WHEN c.next > o.first THEN c.next ELSE o.first END)'
        ' FROM consumed c JOIN offsets o ON o.topic = c.topic AND o."partition" = c."partition"'
        ' WHERE c.topic = ? GROUP BY c."group"',
        topic.id,
    )
    sql = """SELECT count(*) FROM deliveries WHERE "group" = ? AND topic = ? AND state <> 'dead'"""
    return max(
        (behind + (tx.one(sql, group, topic.id) or (0,))[0] for group, behind in rows),
        default=None,
    )


def stored_bytes(tx: Transaction, topic: Topic) -> int:
    """The bytes of a topic in tail and segments."""
    total = 0
    for table in ("tail", "segments"):
        (size,) = tx.one(f"SELECT coalesce(sum(bytes), 0) FROM {table} WHERE topic = ?", topic.id) or (0,)
        total += size
    return total
