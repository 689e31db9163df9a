"""What a catalog promises."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Transaction(Protocol):
    """One transaction: SQL in the subset that SQLite and PostgreSQL share, with `?` for values."""

    @property
    def now(self) -> int:
        """The transaction's time, in microseconds since 1970; the same for all of it."""
        ...

    def all(self, sql: str, *values: Any) -> list[tuple[Any, ...]]: ...

    def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None: ...

    def each(self, sql: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """The rows one by one, for results whose size is not known; only inside the transaction."""
        ...

    def run(self, sql: str, *values: Any) -> int:
        """Execute a statement; how many rows it changed."""
        ...


class Catalog(Protocol):
    """What is committed, and nothing else: the one commit under log, state and views.

    A write is all or nothing and durable when it returns. Writes have one order, and a read sees all of a
    prefix of that order. Reads never wait for writes. Not promised: that two writes of different threads
    are two disk operations, or that a read sees a write that has not returned yet.
    """

    def read(self) -> AbstractContextManager[Transaction]:
        """A snapshot. Keep it short: it holds back the reuse of space."""
        ...

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction and commit it. If `work` raises, nothing of it remains.

        `work` may be run together with other threads' work in one disk commit. It must not call the
        catalog again: everything it needs is in the transaction.
        """
        ...

    def version(self) -> int:
        """A number that grows with every commit of any process."""
        ...

    def seen(self) -> int:
        """The version that some process has seen through, without looking at the disk.

        It is never ahead, and moves before the write that moves it returns. Only where a process died between the
        two does it lag, until the next commit.
        """
        ...

    def wait(self, version: int, timeout: float) -> bool:
        """Block until `version()` has passed the given one, or until the time is over; which of the two."""
        ...

    def shrink(self, *, eager: bool = True) -> None:
        """Give freed space back to the disk; unless eager, only when there is much of it."""
        ...

    def close(self) -> None: ...
