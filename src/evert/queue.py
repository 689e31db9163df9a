"""A queue over a stream: each message goes to one consumer, and comes again until it is acknowledged."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from evert.catalog import Catalog
from evert.catalog import Transaction as CatalogTransaction
from evert.duration import Duration, microseconds
from evert.errors import BadOption, Refused
from evert.log import deliveries, progress
from evert.log.deliveries import Delivery, Place, Stats
from evert.log.embedded import EmbeddedLog
from evert.log.follower import Cursor, Extent, Follower
from evert.log.names import check_name
from evert.log.protocol import Position
from evert.log.topic import INGESTED_AT, OFFSET, PARTITION, POSITION, Topic
from evert.transaction import Transaction

LOOK_AGAIN = 0.1
HELD_AHEAD = 64
WIDEST_WINDOW = 1_000


@dataclass(frozen=True)
class Message:
    """A message on loan. The receipt is good until the message is delivered again."""

    row: dict[str, Any]
    topic: str
    partition: int
    offset: int
    position: Position
    attempts: int
    receipt: str


@dataclass(frozen=True)
class DeadLetter:
    """A message that was given up, with its last reason."""

    row: dict[str, Any]
    topic: str
    partition: int
    offset: int
    position: Position
    attempts: int
    reason: str


Receipts = Message | str | Iterable[Message | str]
Letters = Iterable[int | tuple[int, int] | DeadLetter]


class Queue:
    """A group's queue over one stream. Any number of threads and processes may take from it.

    A message is with at most one consumer at a time. It comes again when its visibility runs out or when it
    is refused, and is a dead letter after `max_attempts` deliveries: so a message may be worked on more than
    once, but acknowledged only once, and with `ack(messages, tx)` in one commit with what came of it. An
    ordered queue gives the messages of a key one at a time, in order; a dead letter lets the next one pass.
    """

    def __init__(
        self,
        catalog: Catalog,
        log: EmbeddedLog,
        topic: str,
        *,
        group: str = "default",
        visibility: Duration = "30 seconds",
        max_attempts: int = 5,
        ordered: bool = False,
    ) -> None:
        if not isinstance(max_attempts, int) or max_attempts < 1:
            raise BadOption(f"max_attempts is a positive whole number, not {max_attempts!r}")
        self._catalog = catalog
        self._log = log
        self._options = (check_name(group, "group"), ordered, microseconds(visibility), max_attempts)
        self._follower: Follower | None = None
        self._followed: Topic | None = None
        self._reading = threading.Lock()
        self.topic = topic
        self._begin(_queueable(log.reader.topic(topic), ordered))

    @property
    def group(self) -> str:
        return self._options[0]

    def take(self, n: int = 1, *, timeout: float = 0.0) -> list[Message]:
        """Up to `n` messages; waits for the first one for at most `timeout` seconds.

        An ordered queue may give fewer although more are there, if many are held behind their keys.
        """
        if n < 1:
            raise BadOption(f"take at least one message, not {n!r}")
        deadline = time.monotonic() + timeout
        while True:
            version, messages = self._attempt(n)
            left = deadline - time.monotonic()
            if messages or left <= 0:
                return messages
            self._catalog.wait(version, min(left, LOOK_AGAIN))

    def ack(self, messages: Receipts, tx: Transaction | None = None) -> None:
        """The messages are done; with a transaction, in its commit and only with it.

        `Fenced` if one of them has been delivered again or is done already: then none of it is stored.
        """
        receipts = _receipts(messages)
        place = self._place()

        def work(catalog_tx: CatalogTransaction, position: Position = 0) -> None:
            deliveries.acknowledge(catalog_tx, place, receipts)

        if tx is not None:
            tx.also(work)
        else:
            self._catalog.write(work)

    def refuse(self, messages: Receipts, reason: str = "", delay: Duration = 0) -> None:
        """Give the messages back, to be delivered again after the delay, or to be dead letters."""
        receipts, place, wait = _receipts(messages), self._place(), microseconds(delay)
        self._catalog.write(lambda tx: deliveries.refuse(tx, place, receipts, reason, wait))

    def extend(self, messages: Receipts, by: Duration) -> None:
        """Keep the messages for so long from now."""
        receipts, place, more = _receipts(messages), self._place(), microseconds(by)
        self._catalog.write(lambda tx: deliveries.extend(tx, place, receipts, more))

    def dead(self) -> list[DeadLetter]:
        """The messages that were given up, each with a copy of its row."""
        place = self._place()

        def work(tx: CatalogTransaction) -> list[DeadLetter]:
            deliveries.bury(tx, place)
            return [
                DeadLetter(
                    d.row(tx, self._log.registry, place.topic),
                    place.topic.name,
                    d.partition,
                    d.offset,
                    d.position,
                    d.attempts,
                    d.reason,
                )
                for d in deliveries.dead(tx, place)
            ]

        return self._catalog.write(work)

    def replay(self, offsets: Letters | None = None) -> int:
        """Make dead letters messages again, all or the ones named; how many."""
        place, chosen = self._place(), self._chosen(offsets)
        return self._catalog.write(lambda tx: deliveries.replay(tx, place, chosen))

    def discard_dead(self, offsets: Letters | None = None) -> int:
        """Remove dead letters, all or the ones named; how many."""
        place, chosen = self._place(), self._chosen(offsets)
        return self._catalog.write(lambda tx: deliveries.discard(tx, place, chosen))

    def stats(self) -> Stats:
        place = self._place()

        def work(tx: CatalogTransaction) -> Stats:
            deliveries.bury(tx, place)
            return deliveries.stats(tx, place)

        return self._catalog.write(work)

    def __repr__(self) -> str:
        return f"<Queue {self.topic} of {self.group}>"

    def _place(self, tx: CatalogTransaction | None = None) -> Place:
        group, ordered, visibility, max_attempts = self._options
        return Place(group, self._log.reader.topic(self.topic, tx), ordered, visibility, max_attempts)

    def _begin(self, topic: Topic) -> None:
        group, ordered, *_ = self._options
        kind: progress.Kind = "ordered queue" if ordered else "queue"
        self._catalog.write(lambda tx: progress.begin(tx, group, topic, kind, "earliest"))

    def _attempt(self, most: int) -> tuple[int, list[Message]]:
        """One look at the queue: read ahead what may be handed out, then take it in one transaction.

        In an ordered queue rows that are held are looked past, further at each try.
        """
        window = most + (HELD_AHEAD if self._options[1] else 0)
        while True:
            with self._catalog.read() as tx:
                place = self._place(tx)
                held = progress.extent(tx, place.topic)
                cursors = progress.cursors(tx, place.group, place.topic)
                due = deliveries.anything_due(tx, place)
                (version,) = tx.one("SELECT version FROM state") or (0,)
            if len(cursors) < place.topic.partitions:
                self._begin(place.topic)
                continue
            with self._reading:
                fresh, complete = self._fresh(place, cursors, held, window)
            if not due and not fresh:
                return version, []
            receipt = uuid.uuid4().hex
            stored = [delivery for delivery, _ in fresh]
            taken, retry = self._catalog.write(
                partial(
                    deliveries.take, place=place, most=most, fresh=stored, complete=complete, receipt=receipt
                )
            )
            if taken:
                rows = {(d.partition, d.offset): row for d, row in fresh}
                return version, self._messages(place, taken, rows, receipt)
            if not retry:
                return version, []
            if place.ordered:
                window = max(window, min(2 * window, WIDEST_WINDOW))

    def _fresh(
        self, place: Place, cursors: dict[int, Cursor], held: Extent, most: int
    ) -> tuple[list[tuple[Delivery, dict[str, Any]]], Position]:
        """The next rows that nobody has taken, each as it would be stored and as the user sees it."""
        schema = place.topic.readable(None)
        if self._follower is None or self._followed != place.topic:
            self._follower, self._followed = Follower(self._log.reader, place.topic), place.topic
        piece = progress.advance(self._catalog, place.group, place.topic, self._follower, cursors, held, most)
        if piece.rows is None:
            return [], piece.complete
        if piece.rows.schema != schema:
            self._follower = None
            return [], 0
        return list(_deliveries(place, piece.rows)), piece.complete

    def _messages(
        self,
        place: Place,
        taken: Sequence[Delivery],
        rows: dict[tuple[int, int], dict[str, Any]],
        receipt: str,
    ) -> list[Message]:
        if any((d.partition, d.offset) not in rows for d in taken):
            with self._catalog.read() as tx:
                for d in taken:
                    rows.setdefault((d.partition, d.offset), d.row(tx, self._log.registry, place.topic))
        return [
            Message(
                rows[d.partition, d.offset],
                place.topic.name,
                d.partition,
                d.offset,
                d.position,
                d.attempts,
                f"{d.partition}.{d.offset}.{receipt}",
            )
            for d in taken
        ]

    def _chosen(self, letters: Letters | None) -> list[tuple[int, int]] | None:
        if letters is None:
            return None
        chosen = []
        for letter in letters:
            if isinstance(letter, DeadLetter):
                chosen.append((letter.partition, letter.offset))
            elif isinstance(letter, tuple):
                chosen.append(letter)
            elif self._log.reader.topic(self.topic).partitions == 1:
                chosen.append((0, letter))
            else:
                raise BadOption(f"{self.topic} has partitions: name a dead letter as (partition, offset)")
        return chosen


def _queueable(topic: Topic, ordered: bool) -> Topic:
    if topic.kind != "stream":
        raise Refused(
            f"{topic.name} is a table: its rows replace each other and are no messages",
            hint="make a queue over a stream, or follow the table with db.consumer()",
            topic=topic.name,
        )
    if ordered and not topic.key:
        raise Refused(
            f"{topic.name} has no key to keep an order by",
            hint='declare one: db.stream(name, schema, key="id")',
            topic=topic.name,
        )
    return topic


def _deliveries(place: Place, rows: pa.RecordBatch) -> Iterable[tuple[Delivery, dict[str, Any]]]:
    topic = place.topic
    users = rows.select(topic.schema.names)
    at = rows.column(INGESTED_AT).cast(pa.int64()).to_pylist()
    stamps = zip(*(rows.column(name).to_pylist() for name in (PARTITION, OFFSET, POSITION)), at, strict=True)
    for number, ((partition, offset, position, time_), row) in enumerate(
        zip(stamps, users.to_pylist(), strict=True)
    ):
        key = repr([_plain(row[name]) for name in topic.key]) if place.ordered else ""
        data = users.slice(number, 1).serialize().to_pybytes()
        yield Delivery(partition, offset, position, time_, topic.version, 1, key, "", data), row


def _plain(value: Any) -> Any:
    """Equal keys are written alike."""
    return value + 0.0 if isinstance(value, float) else value


def _receipts(messages: Receipts) -> list[tuple[int, int, str]]:
    given = [messages] if isinstance(messages, Message | str) else list(messages)
    found: dict[str, tuple[int, int, str]] = {}
    for message in given:
        text = message if isinstance(message, str) else message.receipt
        try:
            partition, offset, receipt = text.split(".")
            found[text] = (int(partition), int(offset), receipt)
        except ValueError:
            receipt = ""
        if not receipt:
            raise BadOption(f"{text!r} is no receipt")
    return list(found.values())
