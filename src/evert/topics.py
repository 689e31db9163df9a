"""Handles on topics: what a program holds to write and read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from evert.errors import Refused, UnknownTopic
from evert.log.clocks import DeviceClock
from evert.log.progress import locate
from evert.log.sizes import Sizes, offsets, position_before_last, position_before_time, sizes
from evert.log.times import moment
from evert.log.topic import LATE, Options, Topic
from evert.log.watermarks import Source, sources, watermark
from evert.transaction import Transaction, request_of

if TYPE_CHECKING:
    from evert.database import Database

T = TypeVar("T")
REPLAY = "evert.replay"
"""The consumer group that remembers which stragglers have been let in."""


class TopicHandle:
    """A topic of an open database. The schema and options are looked up anew whenever they are asked for."""

    def __init__(self, db: Database, name: str) -> None:
        self._db = db
        self.name = name

    @property
    def definition(self) -> Topic:
        return self._db.definition(self.name)

    @property
    def schema(self) -> str:
        """The schema as Spark DDL."""
        return self.definition.schema.ddl()

    @property
    def key(self) -> tuple[str, ...]:
        return self.definition.key

    @property
    def options(self) -> Options:
        return self.definition.options

    def read(
        self,
        *,
        after: int = 0,
        upto: int | None = None,
        columns: Sequence[str] | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Arrow record batches in the log's order, with `_position`, `_partition`, `_offset` and `_ingested_at`
        beside the columns (and `_deleted` for tables). With `follow` it waits for more, for ever, or until
        nothing has come for `timeout` seconds.
        """
        batches = self._db.read(
            [self.name], after=after, upto=upto, columns=columns, follow=follow, timeout=timeout
        )
        return (batch.rows for batch in batches)

    def sizes(self) -> Sizes:
        """How much the topic holds: rows, bytes, positions, tail and segments."""
        return self._ask(sizes)

    def offsets(self) -> list[tuple[int, int, int]]:
        """For each partition: its number, the first offset that is kept, and the next one to come."""
        return self._ask(offsets)

    def position_before(self, *, at: int | None = None, last: int | None = None) -> int:
        """A position before every row that came at a time (microseconds since 1970) or later, or before the
        last so many rows. Rows that are not asked for may follow it too.
        """
        if at is not None:
            return self._ask(position_before_time, at)
        return self._ask(position_before_last, last or 0)

    def position_of(self, partition: int, offset: int) -> int:
        """A position before the row at an offset; its partition's rows in between may follow it too."""
        return self._ask(locate, partition, offset)

    def _ask(self, question: Callable[..., T], *values: Any) -> T:
        with self._db.catalog.read() as tx:
            return question(tx, self.definition, *values)

    def alter(self, schema: str | None = None, **options: Any) -> None:
        """Add nullable columns, widen numbers, or change options."""
        self._db.alter(self.name, schema, **options)

    def _write(
        self,
        fill: Callable[[Transaction, str, Any], None],
        rows: Any,
        request_id: str | None,
        producer: str | None,
        sequence: int | None,
        unmoved_since: int | None,
        unmoved_key: Any,
    ) -> int | None:
        """Commit rows under the definition known from before; if they do not fit, look whether it has changed.

        Rows that can be gone through only once are checked against the present definition right away.
        """

        def attempt(find: Callable[[str], Topic]) -> int | None:
            tx = Transaction(self._db.log, find, request_of(request_id, producer, sequence))
            fill(tx, self.name, rows)
            if unmoved_since is not None:
                tx.require_unmoved(self.name, unmoved_since, key=unmoved_key)
            return tx.commit()

        if hasattr(rows, "__next__"):
            return attempt(self._db.definition)
        known = self._db.known(self.name)
        try:
            return attempt(self._db.known)
        except (Refused, UnknownTopic):
            if self._db.definition(self.name) == known:
                raise
        return attempt(self._db.known)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class Stream(TopicHandle):
    """A stream of facts: rows are appended and never change."""

    def append(
        self,
        rows: Any,
        *,
        producer: str | None = None,
        sequence: int | None = None,
        request_id: str | None = None,
        unmoved_since: int | None = None,
        unmoved_key: Any = None,
    ) -> int | None:
        """Append rows (dicts, dataclasses, Arrow, pandas, Polars); durable when it returns. The position.

        The same `request_id`, or the same `producer` and `sequence`, changes nothing the second time and
        returns the first position. With `unmoved_since` the rows are appended only if the topic, or the key
        `unmoved_key` of it, has no row after that position. None is returned if flow control dropped the rows.
        """
        return self._write(
            Transaction.append, rows, request_id, producer, sequence, unmoved_since, unmoved_key
        )

    @property
    def watermark(self) -> datetime | None:
        """No source that is not idle is expected to send an event older than this; None before the first event."""
        return moment(self._ask(lambda tx, topic: watermark(tx, topic.id)))

    def sources(self) -> list[Source]:
        """Who has sent events, how far they are, and what of theirs came late; the furthest behind is first."""
        return self._ask(lambda tx, topic: sources(tx, topic.id))

    def clocks(self) -> list[DeviceClock]:
        """What the clocks of the stream's devices are off by; those that are furthest ahead come first."""
        return self._db.clocks(self.name)

    def no_more_before(self, time: datetime, *, source: str | int | bool | None = None) -> int | None:
        """Promise that no event older than `time` will come, of one source or at all; the position."""
        return self._db.no_more_before(self.name, time, source=source)

    def replay_late(self) -> int:
        """Let the events in that were set aside, each once; how many there were.

        Those that are older than `forget_after` allows stay where they are.
        """
        upto, count = self._db.position, 0
        with self._db.consumer(REPLAY, self.name + LATE) as consumer:
            while batches := consumer.poll(timeout=0):
                if batches[0].first > upto:
                    break
                with self._db.transaction() as tx:
                    for batch in batches:
                        tx.let_in(self.name, pa.table(batch.rows).select(self.definition.schema.names))
                        count += batch.rows.num_rows
                    consumer.commit(tx)
        return count


class Table(TopicHandle):
    """A table as its changes: rows replace each other by key."""

    def upsert(
        self,
        rows: Any,
        *,
        producer: str | None = None,
        sequence: int | None = None,
        request_id: str | None = None,
        unmoved_since: int | None = None,
        unmoved_key: Any = None,
    ) -> int | None:
        """Insert rows, or replace the ones of the same key. See `Stream.append` for the options."""
        return self._write(
            Transaction.upsert, rows, request_id, producer, sequence, unmoved_since, unmoved_key
        )

    def delete(
        self,
        keys: Any,
        *,
        producer: str | None = None,
        sequence: int | None = None,
        request_id: str | None = None,
        unmoved_since: int | None = None,
        unmoved_key: Any = None,
    ) -> int | None:
        """Delete by key: a value, a tuple, a dict, or many of them. An absent key is fine."""
        return self._write(
            Transaction.delete, keys, request_id, producer, sequence, unmoved_since, unmoved_key
        )

    def compact(self) -> int:
        """Keep the latest row of each key, and what `history` asks for; how many rows went."""
        return self._db.compact(self.name)


def handle(db: Database, topic: Topic) -> Stream | Table:
    return Table(db, topic.name) if topic.kind == "table" else Stream(db, topic.name)
