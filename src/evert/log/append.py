"""Appending: check, encode, and one transaction that gives everything its position.

rows ──> correct times ──> late? ──> partition ──> tail blob, or segment file ──┐
                                                                                ├─ one transaction: request known?
guards, request id, acknowledgements, marks of sources, clocks of devices ──────┘  guards hold? room? position,
                                                                                   offsets, rows: all or nothing
"""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from evert.catalog import Catalog, Transaction
from evert.config import Config
from evert.errors import Full, UnknownTopic
from evert.log import flow, requests, segments, tail
from evert.log.corrections import Correction
from evert.log.files import Files, Revoked
from evert.log.guards import check_guard, settle
from evert.log.protocol import Commit, Guard, Position, Write
from evert.log.reader import LogReader
from evert.log.segments import Segment, Written
from evert.log.spill import Place, Spill
from evert.log.stragglers import Arrival, Moved
from evert.log.tail import Spans
from evert.log.topic import LATE, PARTITION, Options, Topic
from evert.schema.partition import assign
from evert.schema.schema import upgrade

_ADVANCE = "UPDATE state SET head = head + 1, at = CASE WHEN at > ? THEN at ELSE ? END RETURNING head, at"


@dataclass(frozen=True)
class Prepared:
    """One topic's rows, encoded: in `data`, spilled to a `place`, or in the file `written`."""

    topic: Topic
    rows: int
    counts: tuple[tuple[int, int], ...]
    data: bytes = b""
    content: int = 0
    place: Place | None = None
    written: Written | None = None


class Appender:
    """Commits to the log of one catalog."""

    def __init__(
        self,
        catalog: Catalog,
        files: Files,
        spill: Spill,
        reader: LogReader,
        config: Config,
    ) -> None:
        self._catalog = catalog
        self._spill = spill
        self._files = files
        self._reader = reader
        self._config = config

    def append(self, commit: Commit) -> Position | None:
        digest = requests.content(commit.writes) if commit.request else b""
        if commit.request and (first := self._seen(commit, digest)) is not None:
            return first
        revoked = False
        while True:
            try:
                return self._attempt(commit, digest)
            except Moved:
                commit = self._renewed(commit)
            except Revoked:
                if revoked:
                    raise
                revoked = True
                self._spill.forget()

    def _renewed(self, commit: Commit) -> Commit:
        """The commit under the present options of its topics."""
        with self._catalog.read() as tx:
            return replace(commit, writes=tuple(self._renew(tx, write) for write in commit.writes))

    def _renew(self, tx: Transaction, write: Write) -> Write:
        """A write under the present options. Where other columns have the times of clocks, it needs these too."""
        topic = replace(write.topic, options=Options.load(self._current(tx, write.topic)))
        if topic.options.times == write.topic.options.times or not (topic.own or write.topic.own):
            return replace(write, topic=topic)
        topic = self._reader.current(topic, tx)
        wanted = topic.schema if write.accepts else topic.given
        return replace(write, topic=topic, rows=upgrade(write.rows, wanted))

    def _attempt(self, commit: Commit, digest: bytes) -> Position | None:
        writes, corrections = self._corrected(commit.writes)
        writes, arrivals = self._parted(writes)
        prepared = [self._prepare(write) for write in writes if write.rows.num_rows]
        try:
            return self._commit(commit, prepared, arrivals, corrections, digest)
        finally:
            self._files.discard(part.written.file for part in prepared if part.written)

    def _seen(self, commit: Commit, digest: bytes) -> Position | None:
        assert commit.request
        with self._catalog.read() as tx:
            for write in commit.writes:
                self._current(tx, write.topic)
            return requests.seen(tx, commit.request, digest)

    def _corrected(self, writes: Sequence[Write]) -> tuple[Sequence[Write], list[Correction]]:
        """The writes with the times of devices corrected; rows that were set aside once have been so already."""
        own = [write for write in writes if write.topic.own and not write.accepts]
        if not own:
            return writes, []
        with self._catalog.read() as tx:
            found = {write.topic.id: Correction.look(tx, write.topic, write.rows) for write in own}
        corrected = [
            replace(write, rows=found[write.topic.id].corrected) if write.topic.id in found else write
            for write in writes
        ]
        return corrected, list(found.values())

    def _parted(self, writes: Sequence[Write]) -> tuple[list[Write], list[Arrival]]:
        """The writes with stragglers set aside, and what there is to know of the time of events."""
        timed = [
            write
            for write in writes
            if write.topic.kind == "stream" and write.topic.options.event_time and write.rows.num_rows
        ]
        if not timed:
            return list(writes), []
        with self._catalog.read() as tx:
            arrivals = [Arrival.look(tx, write.topic, write.rows, write.accepts) for write in timed]
        known = {arrival.topic.id: arrival for arrival in arrivals}
        found: dict[int, Write] = {}
        for write in writes:
            arrival = known.get(write.topic.id)
            parts = [write if arrival is None else replace(write, rows=arrival.on_time)]
            if arrival is not None and (aside := arrival.set_aside) is not None:
                late = self._reader.topic(write.topic.name + LATE)
                parts.append(Write(late, upgrade(aside, late.schema)))
            for part in parts:
                there = found.get(part.topic.id)
                rows = part.rows if there is None else pa.concat_tables([there.rows, part.rows])
                found[part.topic.id] = replace(part, rows=rows)
        return list(found.values()), arrivals

    def _prepare(self, write: Write) -> Prepared:
        topic, rows = write.topic, write.rows
        if topic.partitions == 1:
            counts: tuple[tuple[int, int], ...] = ((0, rows.num_rows),)
        else:
            partitions = _partitions(topic, rows)
            rows = rows.append_column(topic.stored.field(PARTITION), pa.array(partitions))
            per = np.bincount(partitions, minlength=topic.partitions)
            counts = tuple((int(p), int(per[p])) for p in np.flatnonzero(per))
        if rows.num_rows <= self._config.direct_rows:
            data = tail.encode(rows)
            if len(data) <= self._config.direct_bytes:
                place = self._spill.write(data) if len(data) > self._config.spill_bytes else None
                return Prepared(topic, rows.num_rows, counts, data, zlib.crc32(data), place)
        written = segments.write(self._files, topic, rows, topic.stored)
        return Prepared(topic, rows.num_rows, counts, written=written)

    def _commit(
        self,
        commit: Commit,
        prepared: list[Prepared],
        arrivals: list[Arrival],
        corrections: list[Correction],
        digest: bytes,
    ) -> Position | None:
        deadline: float | None = None
        while True:
            guards = settle(commit.guards, self._reader)
            work = partial(self._write, commit, guards, prepared, arrivals, corrections, digest)
            try:
                return self._catalog.write(work)
            except flow.Wait as wait:
                deadline = deadline or time.monotonic() + wait.timeout
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Full(
                        f"the consumers of {wait.topic} are {wait.behind} rows behind, it takes {wait.capacity}",
                        hint=f"see who is slow with `evert lag {wait.topic}`",
                        topic=wait.topic,
                    ) from None
                self._catalog.wait(self._catalog.version(), min(left, 0.1))

    def _write(
        self,
        commit: Commit,
        guards: tuple[Guard, ...],
        prepared: list[Prepared],
        arrivals: list[Arrival],
        corrections: list[Correction],
        digest: bytes,
        tx: Transaction,
    ) -> Position | None:
        if commit.request and (first := requests.seen(tx, commit.request, digest)) is not None:
            return first
        for guard in guards:
            check_guard(tx, self._reader, guard)
        if any(self._is_old(tx, arrival.topic) for arrival in arrivals):
            raise Moved
        arrivals = [arrival.again(tx) for arrival in arrivals]
        admitted = [self._admitted(tx, part) for part in prepared]
        if not all(admitted) and any(write.accepts for write in commit.writes):
            raise Full("the topic takes no rows now, so stragglers are not let in", hint="try again later")
        if not all(admitted):
            flow.drop(tx, [(part.topic, part.rows) for part in prepared])
            if not commit.also:
                return None
            prepared, arrivals, corrections = [], [], []
        row = tx.one(_ADVANCE, tx.now, tx.now)
        assert row is not None
        position, at = row
        for part in prepared:
            self._store(tx, part, position, at)
        for arrival in arrivals:
            arrival.record(tx, position, at)
        for correction in corrections:
            correction.record(tx)
        if commit.request:
            requests.remember(tx, commit.request, digest, position, at)
        for also in commit.also:
            also(tx, position)
        return int(position)

    def _admitted(self, tx: Transaction, part: Prepared) -> bool:
        """Whether the topic still is what the rows were checked against, and has room for them."""
        if self._is_old(tx, part.topic):
            raise Moved
        options = self._current(tx, part.topic)
        size = part.written.bytes if part.written else len(part.data)
        return flow.admit(tx, part.topic, options, part.rows, size)

    def _is_old(self, tx: Transaction, topic: Topic) -> bool:
        """Whether the topic has another notion of time by now."""
        options = self._current(tx, topic)
        return options != topic.options.text and Options.load(options).time != topic.options.time

    @staticmethod
    def _current(tx: Transaction, topic: Topic) -> str:
        """The present options of a topic, if it still is the one that the rows were checked against."""
        row = tx.one("SELECT options FROM topics WHERE id = ? AND created = ?", topic.id, topic.created)
        if row is None:
            raise UnknownTopic(f"the topic {topic.name} was dropped", topic=topic.name)
        return str(row[0])

    def _store(self, tx: Transaction, part: Prepared, position: int, at: int) -> None:
        topic = part.topic
        spans = _advance(tx, topic, part.counts)
        if part.written is None:
            if part.place:
                self._files.renew(tx, part.place.file)
            data, place, content = part.data, part.place, part.content
            tail.insert(tx, topic, position, at, part.rows, spans, data, place, content)
            return
        self._files.claim(tx, part.written.file)
        segment = Segment(
            first=position,
            last=position,
            first_at=at,
            last_at=at,
            schema=topic.version,
            rows=part.rows,
            bytes=part.written.bytes,
            spans=spans,
            stamped=False,
            file=part.written.file,
            file_checksum=part.written.checksum,
        )
        segments.insert(tx, topic, segment)


def _partitions(topic: Topic, rows: pa.Table) -> np.ndarray:
    """By the hash of the key; rows without a key go round."""
    if topic.key:
        return assign(rows, topic.key, topic.partitions)
    start = random.randrange(topic.partitions)
    return ((np.arange(rows.num_rows) + start) % topic.partitions).astype(np.int32)


def _advance(tx: Transaction, topic: Topic, counts: tuple[tuple[int, int], ...]) -> Spans:
    """Give the rows their offsets."""
    spans = []
    for partition, rows in counts:
        row = tx.one(
            'UPDATE offsets SET next = next + ? WHERE topic = ? AND "partition" = ? RETURNING next',
            rows,
            topic.id,
            partition,
        )
        assert row is not None
        spans.append((partition, row[0] - rows, row[0]))
    return tuple(spans)
