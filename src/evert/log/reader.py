"""Reading ranges of the log: tail and segments look the same, and what is damaged or gone is an error.

Each step takes a short transaction to find what comes next after the rows given so far: the tail entries
before the next segment, or that segment. So a read never holds a transaction between two batches, and
sealing, compaction and retention may go on beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evert.catalog import Catalog, Transaction
from evert.errors import Corrupt, Expired
from evert.log import segments, tail
from evert.log.files import Files
from evert.log.protocol import Batch, Position
from evert.log.registry import Registry
from evert.log.segments import Segment
from evert.log.tail import Spans, TailEntry, one_batch
from evert.log.topic import INGESTED_AT, OFFSET, POSITION, Topic
from evert.schema.schema import upgrade

Cut = Literal["exact", "later", "open"]

BATCH_ROWS = 131_072
BATCH_BYTES = 16 << 20


@dataclass(frozen=True)
class Step:
    """What comes next in one topic: some entries of the tail, or a segment, or nothing."""

    entries: tuple[TailEntry, ...] = ()
    segment: Segment | None = None


@dataclass(frozen=True)
class Removed:
    """Up to which position retention has removed rows, and compaction deletes."""

    rows: Position
    deletes: Position


class LogReader:
    """Reads the log of one catalog."""

    def __init__(self, catalog: Catalog, registry: Registry, files: Files) -> None:
        self._catalog = catalog
        self._registry = registry
        self._files = files
        self.segments = segments.Reader(files)

    def head(self) -> Position:
        return self.state()[1]

    def state(self) -> tuple[int, Position]:
        """The catalog's version and the head that goes with it."""
        with self._catalog.read() as tx:
            row = tx.one("SELECT version, head FROM state")
        assert row is not None
        return row[0], row[1]

    def topic(self, name: str, tx: Transaction | None = None) -> Topic:
        if tx is not None:
            return self._registry.find(tx, name)
        with self._catalog.read() as snapshot:
            return self._registry.find(snapshot, name)

    def current(self, topic: Topic, tx: Transaction) -> Topic:
        """The same topic as it is defined now."""
        return self._registry.current(tx, topic)

    def read(
        self, names: Sequence[str], after: Position, upto: Position | None, columns: Sequence[str] | None
    ) -> Iterator[Batch]:
        """The rows of the topics in `(after, upto]`; see `Log.read`."""
        with self._catalog.read() as tx:
            topics = list({(topic := self._registry.find(tx, name)).id: topic for name in names}.values())
            end = head_of(tx) if upto is None else upto
        for topic in topics:
            topic.readable(columns)
        cut: Cut = "later" if upto is None and len(topics) == 1 else "exact"
        streams = [self.rows_of(topic, after, end, columns, cut) for topic in topics]
        return streams[0] if len(streams) == 1 else merge(streams)

    def rows_of(
        self,
        topic: Topic,
        after: Position,
        upto: Position,
        columns: Sequence[str] | None,
        cut: Cut = "open",
    ) -> Iterator[Batch]:
        """The rows of one topic in `(after, upto]`.

        Compaction may have replaced a row before `upto` by one after it. An `exact` cut cannot be had then; one
        that may be made `later` moves to the head; an `open` one will be read on from by the caller.
        """
        chain = Chain(topic.name)
        cursor = after
        missing: str | None = None
        removed: Removed | None = None
        while cursor < upto:
            step = Step()
            try:
                with self._catalog.read() as tx:
                    topic = self._registry.current(tx, topic)
                    removed = refuse_lost(tx, topic, cursor, removed)
                    upto = cut_at(tx, topic, upto, cut)
                    if cursor == 0:
                        chain.begin(tx, topic)
                    step = self._next(tx, topic, cursor, upto)
                file = self.segments.open(topic, step.segment) if step.segment else None
            except FileNotFoundError as error:
                gone = step.segment.file if step.segment else str(error.filename)
                if missing == gone:
                    raise missing_file(topic, cursor, gone) from None
                missing = gone
                continue
            if step.segment:
                chain.link(step.segment.spans, step.segment.first)
                yield from self._segment(topic, step.segment, file, cursor, upto, columns)
                cursor = step.segment.last
            elif step.entries:
                for entry in step.entries:
                    chain.link(entry.spans, entry.position)
                yield from self._entries(topic, step.entries, columns)
                cursor = step.entries[-1].position
            else:
                return

    def rows_in(
        self, tx: Transaction, topic: Topic, after: Position, columns: Sequence[str]
    ) -> Iterator[Batch]:
        """All rows after a position, as this transaction sees them; for checks that are part of a commit."""
        cursor = after
        while True:
            step = self._next(tx, topic, cursor, 2**62)
            if step.segment:
                file = self.segments.open(topic, step.segment)
                yield from self._segment(topic, step.segment, file, cursor, 2**62, columns)
                cursor = step.segment.last
            elif step.entries:
                yield from self._entries(topic, step.entries, columns)
                cursor = step.entries[-1].position
            else:
                return

    def _next(self, tx: Transaction, topic: Topic, cursor: Position, upto: Position) -> Step:
        ahead = [s for s in segments.segments(tx, topic, after=cursor, most=1) if s.first <= upto]
        end = ahead[0].first - 1 if ahead else upto
        found = tail.entries(
            tx, self._files.folder, topic, cursor, end, most_bytes=BATCH_BYTES, most_rows=BATCH_ROWS
        )
        for version in {entry.schema for entry in found} | {segment.schema for segment in ahead}:
            self._registry.at_version(tx, topic, version)
        if found:
            return Step(entries=tuple(found))
        return Step(segment=ahead[0] if ahead else None)

    def _older(self, topic: Topic, version: int) -> Topic:
        if version == topic.version:
            return topic
        with self._catalog.read() as tx:
            return self._registry.at_version(tx, topic, version)

    def _entries(
        self, topic: Topic, entries: Sequence[TailEntry], columns: Sequence[str] | None
    ) -> Iterator[Batch]:
        start = 0
        while start < len(entries):
            version = entries[start].schema
            end = start
            while end < len(entries) and entries[end].schema == version:
                end += 1
            yield self._decoded(topic, entries[start:end], columns)
            start = end

    def _decoded(self, topic: Topic, entries: Sequence[TailEntry], columns: Sequence[str] | None) -> Batch:
        written = self._older(topic, entries[0].schema)
        rows = tail.gathered(written, entries)
        stamps = tail.stamp(rows, topic)
        result = finish(topic, written, rows, stamps, columns)
        return Batch(topic.name, entries[0].position, entries[-1].position, result)

    def _segment(
        self,
        topic: Topic,
        segment: Segment,
        file: pq.ParquetFile | None,
        after: Position,
        upto: Position,
        columns: Sequence[str] | None,
    ) -> Iterator[Batch]:
        assert file is not None
        written = self._older(topic, segment.schema)
        wanted = stored_columns(written, columns)
        if segment.stamped:
            wanted = [*wanted, POSITION, OFFSET, INGESTED_AT]
        spans = segment.spans
        for table in segments.tables(topic, segment, file, wanted, after=after, upto=upto):
            rows = one_batch(table)
            if segment.stamped:
                positions = rows.column(POSITION).to_numpy()
                low, high = np.searchsorted(positions, [after, upto], side="right")
                rows, positions = rows.slice(low, high - low), positions[low:high]
                if not len(positions):
                    continue
                stamps = tail.stamp(rows, topic)
                first, last = int(positions[0]), int(positions[-1])
            else:
                first = last = segment.first
                stamps = tail.stamp(rows, topic, first, segment.first_at, spans)
                spans = _advanced(spans, stamps[1])
            yield Batch(topic.name, first, last, finish(topic, written, rows, stamps, columns))


def missing_file(topic: Topic, cursor: Position, path: str) -> Corrupt:
    name = Path(path).name
    return Corrupt(
        f"the file {name} of {topic.name} is missing; it holds the rows after position {cursor}",
        hint="restore the file from a backup",
        topic=topic.name,
        file=name,
        position=cursor,
    )


def stored_columns(written: Topic, columns: Sequence[str] | None) -> list[str]:
    """Which stored columns a reader of some columns needs; those that came later are not there yet."""
    names = written.stored.names
    if columns is None:
        return list(names)
    chosen = {written.schema.names[i] for i, n in enumerate(written.schema.names) if _named(n, columns)}
    return [
        name
        for name in names
        if name in chosen or (name.startswith("_") and name not in written.schema.names)
    ]


def _named(name: str, columns: Sequence[str]) -> bool:
    return any(name == column or name.casefold() == column.casefold() for column in columns)


def finish(
    topic: Topic, written: Topic, rows: pa.RecordBatch, stamps: list[pa.Array], columns: Sequence[str] | None
) -> pa.RecordBatch:
    """The user's columns under the topic's present schema, and the system columns behind them."""
    schema = topic.readable(columns)
    users = schema.names[: len(schema) - len(stamps)]
    if written.version == topic.version:
        arrays = [rows.column(name) for name in users]
    else:
        mine = [name for name in rows.schema.names if name in written.schema.names]
        renewed = one_batch(upgrade(pa.Table.from_batches([rows.select(mine)]), topic.schema, users))
        arrays = [renewed.column(name) for name in users]
    return pa.RecordBatch.from_arrays(arrays + stamps, schema=schema)


def _advanced(spans: Spans, partitions: pa.Array) -> Spans:
    """The spans of the rows that follow these."""
    if len(spans) == 1:
        return tuple((p, first + len(partitions), end) for p, first, end in spans)
    seen = np.bincount(partitions.to_numpy(zero_copy_only=False), minlength=max(p for p, _, _ in spans) + 1)
    return tuple((p, first + int(seen[p]), end) for p, first, end in spans)


def refuse_lost(tx: Transaction, topic: Topic, after: Position, since: Removed | None = None) -> Removed:
    """`Expired` if rows after this position have been removed, so that a reader never skips them unseen.

    A reader that began at the start of what was kept is concerned only by what was removed `since` then.
    """
    row = tx.one(
        "SELECT gone, deletes_gone FROM topics WHERE id = ? AND created = ?", topic.id, topic.created
    )
    if row is None:
        raise Expired(f"the topic {topic.name} was dropped while it was read", topic=topic.name)
    removed = Removed(*row)
    known = since or (removed if after in (0, removed.rows) else Removed(0, 0))
    if after < removed.rows != known.rows:
        raise Expired(
            f"the rows of {topic.name} up to position {removed.rows} have passed retention;"
            f" the reader is at {after}",
            hint="start again from the first row that is kept (position 0), or from the end",
            topic=topic.name,
            position=after,
            kept_after=removed.rows,
        )
    if after < removed.deletes != known.deletes:
        raise Expired(
            f"deletes in {topic.name} up to position {removed.deletes} are no longer kept;"
            f" the reader is at {after}",
            hint="start again from the first row that is kept (position 0)",
            topic=topic.name,
            position=after,
            kept_after=removed.deletes,
        )
    return known


def cut_at(tx: Transaction, topic: Topic, upto: Position, cut: Cut) -> Position:
    """Where a read ends whose end may lie before a row that has replaced one it should give."""
    (replaced,) = tx.one("SELECT replaced FROM topics WHERE id = ?", topic.id) or (0,)
    if replaced <= upto or cut == "open":
        return upto
    if cut == "later":
        return head_of(tx)
    raise Expired(
        f"compaction has replaced rows of {topic.name} up to position {replaced}; it cannot be read as of {upto}",
        hint="read it up to the head, or keep versions with the option history",
        topic=topic.name,
        position=upto,
        kept_after=replaced,
    )


def head_of(tx: Transaction) -> Position:
    (head,) = tx.one("SELECT head FROM state") or (0,)
    return int(head)


def merge(streams: list[Iterator[Batch]]) -> Iterator[Batch]:
    """Batches of several topics in one order of positions; a tie goes to the topic named first."""
    heads: list[Batch | None] = [next(stream, None) for stream in streams]
    while True:
        order = sorted((batch.first, i) for i, batch in enumerate(heads) if batch is not None)
        if not order:
            return
        mine = order[0][1]
        batch = heads[mine]
        assert batch is not None
        limit = batch.last
        if len(order) > 1:
            first, other = order[1]
            limit = first if mine < other else first - 1
        if batch.last <= limit:
            yield batch
            heads[mine] = next(streams[mine], None)
            continue
        positions = batch.rows.column(POSITION).to_numpy()
        cut = int(np.searchsorted(positions, limit, side="right"))
        yield Batch(batch.topic, batch.first, int(positions[cut - 1]), batch.rows.slice(0, cut))
        heads[mine] = Batch(batch.topic, int(positions[cut]), batch.last, batch.rows.slice(cut))


class Chain:
    """Offsets have no gaps: what is missing between two pieces of the log is noticed.

    A piece may begin before the end of the one before it: sealing has put rows that were read already and
    rows that were not into one segment.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._next: dict[int, int] = {}

    def begin(self, tx: Transaction, topic: Topic) -> None:
        sql = 'SELECT "partition", first FROM offsets WHERE topic = ?'
        self._next = dict(tx.all(sql, topic.id))

    def link(self, spans: Spans, position: Position) -> None:
        for partition, first, end in spans:
            expected = self._next.get(partition, first)
            if first > expected:
                raise Corrupt(
                    f"offsets {expected} to {first - 1} of partition {partition} of {self._topic} are missing",
                    hint="restore a backup; what follows can be read from a later position",
                    topic=self._topic,
                    position=position,
                    offset=expected,
                )
            self._next[partition] = max(end, expected)
