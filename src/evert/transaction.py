"""Several writes, and acknowledgements, that become visible together or not at all."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

import pyarrow as pa

from evert.catalog import Transaction as CatalogTransaction
from evert.errors import BadOption, BadRow, Refused
from evert.log.protocol import Commit, Guard, Log, Request, Write
from evert.log.topic import DELETED, Topic
from evert.schema.rows import keys_table, to_table


class Transaction:
    """Collects writes; leaving the `with` block commits them at one position, an exception drops them.

    Nothing is visible, to anyone, before the block ends. Rows are checked as they are given.
    """

    def __init__(self, log: Log, find: Callable[[str], Topic], request: Request | None = None) -> None:
        self._log = log
        self._find = find
        self._request = request
        self._rows: dict[int, tuple[Topic, list[pa.Table]]] = {}
        self._accepted: set[int] = set()
        self._guards: list[Guard] = []
        self._also: list[Callable[[CatalogTransaction, int], None]] = []
        self._done = False
        self.position: int | None = None

    @property
    def over(self) -> bool:
        """Whether it has been committed or given up; `position` tells which."""
        return self._done

    def append(self, topic: str | object, rows: Any) -> None:
        """Rows for a stream."""
        found = self._topic(topic)
        if found.kind != "stream":
            raise Refused(f"{found.name} is a table", hint="use upsert() and delete()", topic=found.name)
        self._add(found, _appended(found, rows))

    def upsert(self, topic: str | object, rows: Any) -> None:
        """Rows for a table; each replaces the row of its key."""
        found = self._table(topic)
        self._add(
            found, flagged(found, to_table(found.schema, rows, topic=found.name, required=found.key), False)
        )

    def delete(self, topic: str | object, keys: Any) -> None:
        """Keys to delete from a table; an absent key is fine."""
        found = self._table(topic)
        self._add(found, flagged(found, keys_table(found.schema, keys, found.key, topic=found.name), True))

    def let_in(self, topic: str | object, rows: pa.Table) -> None:
        """Rows of a stream that were set aside, as they are stored: they are not set aside again for being late,
        and what was found out about their time when they came stays.
        """
        found = self._topic(topic)
        self._accepted.add(found.id)
        self._add(found, to_table(found.schema, rows, topic=found.name, required=found.key))

    def require_unmoved(self, topic: str | object, since: int, *, key: Any = None) -> None:
        """Commit only if the topic, or one key of it, has no row after this position."""
        found = self._topic(topic)
        if key is None:
            self._guards.append(Guard(found, since))
            return
        if not found.key:
            raise BadOption(f"{found.name} has no key", topic=found.name)
        keys = keys_table(found.schema, [key], found.key, topic=found.name)
        self._guards.append(Guard(found, since, tuple(keys.column(name)[0] for name in found.key)))

    def also(self, work: Callable[[CatalogTransaction, int], None]) -> None:
        """Run this in the commit's own catalog transaction; how acknowledgements join a commit."""
        self._also.append(work)

    def commit(self) -> int | None:
        """Make it so. Called by the end of the `with` block."""
        if self._done:
            raise Refused("the transaction is over", hint="begin another with db.transaction()")
        self._done = True
        writes = tuple(
            Write(topic, parts[0] if len(parts) == 1 else pa.concat_tables(parts), topic.id in self._accepted)
            for topic, parts in self._rows.values()
        )
        self.position = self._log.append(
            Commit(writes, tuple(self._guards), self._request, tuple(self._also))
        )
        return self.position

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and not self._done:
            self.commit()
        self._done = True

    def _topic(self, topic: str | object) -> Topic:
        return self._find(topic if isinstance(topic, str) else getattr(topic, "name", str(topic)))

    def _table(self, topic: str | object) -> Topic:
        found = self._topic(topic)
        if found.kind != "table":
            raise Refused(f"{found.name} is a stream", hint="use append()", topic=found.name)
        return found

    def _add(self, topic: Topic, rows: pa.Table) -> None:
        if self._done:
            raise Refused("the transaction is over", hint="begin another with db.transaction()")
        self._rows.setdefault(topic.id, (topic, []))[1].append(rows)


def _appended(topic: Topic, rows: Any) -> pa.Table:
    """Rows for a stream, without the columns that are not for users to give."""
    try:
        return to_table(topic.given, rows, topic=topic.name, required=topic.key)
    except BadRow as error:
        column = error.details.get("column")
        if column not in topic.own:
            raise
        raise BadRow(
            f"row {error.details['row']} for {topic.name}, column {column}: is filled by Evert, and not appended",
            hint=f"leave out {' and '.join(topic.own)}",
            **error.details,
        ) from None


def flagged(topic: Topic, rows: pa.Table, deleted: bool) -> pa.Table:
    """A table's rows as they are stored, each with the mark whether it deletes."""
    marks = pa.repeat(pa.scalar(deleted), rows.num_rows)
    fields = [topic.stored.field(name) for name in (*topic.schema.names, DELETED)]
    return pa.Table.from_arrays([*rows.columns, marks], schema=pa.schema(fields))


def request_of(request_id: str | None, producer: str | None, sequence: int | None) -> Request | None:
    """The request that the options of a write name."""
    if request_id is not None:
        if producer is not None or sequence is not None:
            raise BadOption("give a request_id, or a producer and a sequence, not both")
        if not isinstance(request_id, str) or not request_id:
            raise BadOption(f"a request id is a text that is not empty, not {request_id!r}")
        return Request(request_id)
    if producer is None and sequence is None:
        return None
    whole = isinstance(sequence, int) and not isinstance(sequence, bool)
    if not producer or not whole or not 0 <= sequence < 2**63:  # type: ignore[operator]
        raise BadOption("a producer needs a name and a sequence that is a whole number from 0 to 2^63 - 1")
    return Request(str(sequence), producer)
