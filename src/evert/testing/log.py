"""A log in memory: the plainest thing that keeps the promises of `Log`, and so the model of the real ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from evert.clock import Clock, SystemClock
from evert.errors import Conflict, RequestReused, UnknownTopic
from evert.log.names import folded
from evert.log.protocol import Batch, Commit, Guard, Position
from evert.log.registry import same_or_refused, unknown
from evert.log.requests import content
from evert.log.topic import UTC_MICROSECONDS, Options, Topic
from evert.schema.partition import assign
from evert.schema.schema import Schema, check_evolution, upgrade


@dataclass
class _Kept:
    topic: Topic
    next: list[int]
    rows: list[tuple[Position, pa.Table]] = field(default_factory=list)


class MemoryLog:
    """A log of this process only; it forgets everything at the end, and never drops or expires a row.

    It knows no event time: no row is too late for it, and no clock is corrected.
    """

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._topics: dict[str, _Kept] = {}
        self._requests: dict[tuple[str, str], tuple[Position, bytes]] = {}
        self._head = 0
        self._made = 0
        self._changed = threading.Condition()

    def create(self, topic: Topic) -> Topic:
        with self._changed:
            kept = self._topics.get(folded(topic.name))
            if kept is not None:
                return same_or_refused(kept.topic, topic)
            self._made += 1
            made = replace(topic, id=self._made, created=self._clock.now())
            self._topics[folded(topic.name)] = _Kept(made, [0] * topic.partitions)
            return made

    def alter(
        self, name: str, *, schema: str | None = None, options: Mapping[str, Any] | None = None
    ) -> Topic:
        with self._changed:
            kept = self._find(name)
            if options:
                made = Options.make(kept.topic.kind, options, kept.topic.options)
                kept.topic = replace(kept.topic, options=made)
            if schema is not None:
                wanted = Schema.parse(schema)
                check_evolution(kept.topic.schema, wanted, kept.topic.key)
                kept.topic = replace(kept.topic, schema=wanted, version=kept.topic.version + 1)
            return kept.topic

    def drop(self, name: str) -> None:
        with self._changed:
            self._find(name)
            del self._topics[folded(name)]

    def topics(self) -> dict[str, Topic]:
        with self._changed:
            return {kept.topic.name: kept.topic for kept in self._topics.values()}

    def append(self, commit: Commit) -> Position | None:
        with self._changed:
            digest = content(commit.writes) if commit.request else b""
            name = (commit.request.producer, commit.request.id) if commit.request else None
            if name in self._requests:
                position, before = self._requests[name]
                if before != digest:
                    raise RequestReused(f"{name} was used at position {position} with other content")
                return position
            for guard in commit.guards:
                self._check(guard)
            for write in commit.writes:
                if write.topic.id not in {kept.topic.id for kept in self._topics.values()}:
                    raise UnknownTopic(f"the topic {write.topic.name} was dropped")
            self._head += 1
            for write in commit.writes:
                if write.rows.num_rows:
                    self._store(self._find(write.topic.name), write.rows)
            if name is not None:
                self._requests[name] = (self._head, digest)
            self._changed.notify_all()
            return self._head

    def read(
        self,
        topics: Sequence[str],
        *,
        after: Position = 0,
        upto: Position | None = None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Batch]:
        with self._changed:
            found = [self._find(name) for name in topics]
            end = self._head if upto is None else upto
            rows = [
                (position, order, kept.topic, table)
                for order, kept in enumerate(found)
                for position, table in kept.rows
                if after < position <= end
            ]
        for position, _, topic, table in sorted(rows, key=lambda row: row[:2]):
            schema = topic.readable(columns)
            users = schema.names[: len(schema) - len(topic.system_fields)]
            mine = table.select([name for name in table.column_names if not name.startswith("_")])
            renewed = upgrade(mine, topic.schema, users)
            system = [table.column(f.name) for f in topic.system_fields]
            whole = pa.Table.from_arrays([*renewed.select(users).columns, *system], schema=schema)
            for batch in whole.combine_chunks().to_batches():
                yield Batch(topic.name, position, position, batch)

    def head(self) -> Position:
        return self._head

    def wait(self, after: Position, timeout: float) -> Position:
        with self._changed:
            self._changed.wait_for(lambda: self._head > after, timeout)
            return self._head

    def _find(self, name: str) -> _Kept:
        kept = self._topics.get(folded(name))
        if kept is None:
            raise unknown(name, sorted(self.topics()))
        return kept

    def _check(self, guard: Guard) -> None:
        kept = self._find(guard.topic.name)
        key = None if guard.key is None else tuple(value.as_py() for value in guard.key)
        for position, table in kept.rows:
            keys = zip(*(table.column(name).to_pylist() for name in kept.topic.key), strict=True)
            if position > guard.since and (key is None or key in set(keys)):
                raise Conflict(f"{guard.topic.name} has moved to position {position}", position=position)

    def _store(self, kept: _Kept, rows: pa.Table) -> None:
        topic, count = kept.topic, rows.num_rows
        if topic.partitions > 1 and topic.key:
            partitions = [int(p) for p in assign(rows, topic.key, topic.partitions)]
        else:
            partitions = [i % topic.partitions for i in range(count)]
        offsets = []
        for partition in partitions:
            offsets.append(kept.next[partition])
            kept.next[partition] += 1
        stamps = {
            "_position": pa.array([self._head] * count, pa.int64()),
            "_partition": pa.array(partitions, pa.int32()),
            "_offset": pa.array(offsets, pa.int64()),
            "_ingested_at": pa.array([self._clock.now()] * count, pa.int64()).cast(UTC_MICROSECONDS),
        }
        for name, values in stamps.items():
            rows = rows.append_column(name, values)
        kept.rows.append((self._head, rows))
