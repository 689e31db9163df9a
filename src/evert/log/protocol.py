"""What a log promises, and the values that go in and out of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from evert.catalog import Transaction
from evert.log.topic import Topic

Position = int


@dataclass(frozen=True)
class Write:
    """Rows for one topic, already checked against its schema: the columns of `topic.stored` without partition, and
    without those that the log fills itself.

    `accepts`: rows that were set aside once. They have all columns, and stragglers among them are not set aside.
    """

    topic: Topic
    rows: pa.Table
    accepts: bool = False


@dataclass(frozen=True)
class Guard:
    """Only if the topic, or one key of it, has no row after this position."""

    topic: Topic
    since: Position
    key: tuple[pa.Scalar, ...] | None = None


@dataclass(frozen=True)
class Request:
    """Names a commit so that a retry is known: a request id (no producer), or a producer's sequence."""

    id: str
    producer: str = ""


@dataclass(frozen=True)
class Commit:
    """What becomes visible at one position. `also` runs in the same transaction, with the position."""

    writes: tuple[Write, ...]
    guards: tuple[Guard, ...] = ()
    request: Request | None = None
    also: tuple[Callable[[Transaction, Position], None], ...] = ()


@dataclass(frozen=True)
class Batch:
    """Rows of one topic in the log's order, with their positions beside the columns."""

    topic: str
    first: Position
    last: Position
    rows: pa.RecordBatch


class Log(Protocol):
    """What happened, in order.

    Positions grow by one with every commit and become visible in order: a reader that has seen position p
    will never see a new row at or before p. A commit is visible as a whole or not at all. Offsets count the
    rows of one partition without gaps. Not promised: that every position has a row in every topic.
    """

    def create(self, topic: Topic) -> Topic:
        """Create the topic; if it is there with the same definition, that is fine too."""
        ...

    def alter(
        self, name: str, *, schema: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Topic: ...

    def drop(self, name: str) -> None: ...

    def topics(self) -> dict[str, Topic]: ...

    def append(self, commit: Commit) -> Position | None:
        """Make the commit durable. The position it has; None if flow control dropped all there was to it."""
        ...

    def read(
        self,
        topics: Sequence[str],
        *,
        after: Position = 0,
        upto: Position | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Batch]:
        """All rows of the topics in `(after, upto]`, in order of position. `upto` is the head if not given."""
        ...

    def head(self) -> Position:
        """The last position; everything up to it is visible."""
        ...

    def wait(self, after: Position, timeout: float) -> Position:
        """Block until the head has passed `after` or the time is over; the head."""
        ...
