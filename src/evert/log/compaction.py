"""Compaction of tables: the latest row of each key stays, and what it replaced goes.

    position  1    2    3    4     5            2    4     5
    key       a    b    a    a     c     ──>    b    a     c
    value     7    8    9    del   1            8    del   1

A delete stays for `tombstones` so that readers see it, and with `history` every version stays that was the
latest at some time within it. As long as a view reads a table's versions, all of them stay: what it shows of
them could not be proved, nor built again, if they went. Positions and offsets do not change. Streams are never
compacted: each of their rows is a fact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from evert.catalog import Catalog, Lease, Transaction
from evert.config import Config
from evert.errors import Conflict, Refused
from evert.log import holds, segments, tail
from evert.log.files import Files, to_garbage
from evert.log.reader import LogReader
from evert.log.seal import joined
from evert.log.segments import Segment
from evert.log.tail import Spans
from evert.log.topic import DELETED, INGESTED_AT, OFFSET, PARTITION, POSITION, Topic
from evert.trace.arrays import one_chunk
from evert.trace.grouping import grouped
from evert.trace.keys import hash_rows

PART_BYTES = 64 << 20
"""The keys of so many bytes are compared with each other at a time."""

HASH_BITS = 64
"""Tests narrow the hash, so that different keys share one."""


def due(tx: Transaction, topic: Topic) -> bool:
    """Whether as many rows have come since the last compaction as it left, so that its cost is spread."""
    if topic.kind != "table":
        return False
    found = tx.one("SELECT compacted, compacted_rows FROM topics WHERE id = ?", topic.id)
    if found is None:
        return False
    (rows,) = tx.one(
        "SELECT coalesce(sum(rows), 0) FROM segments WHERE topic = ? AND first > ?", topic.id, found[0]
    ) or (0,)
    return bool(rows > max(2 * found[1], 100_000))


def compact(
    catalog: Catalog,
    reader: LogReader,
    files: Files,
    config: Config,
    name: str,
    lease: Lease,
    renew: Callable[[], None],
) -> int:
    """Compact a table's sealed rows; how many went. The tail is to be sealed before.

    `renew` is called now and then, because it may take longer than the lease lasts.
    """
    with catalog.read() as tx:
        topic = reader.topic(name, tx)
        old = segments.segments(tx, topic)
        (barrier,) = tx.one("SELECT min(position) FROM tail WHERE topic = ?", topic.id) or (None,)
        seen = holds.seen_upto(tx, topic.id)
        versions = holds.of_versions(tx, topic.id)
        now = tx.now
    if topic.kind != "table":
        raise Refused(
            f"{topic.name} is a stream: each of its rows is a fact, and none replaces another",
            hint="bound it with a retention by age or size, or make it a table",
            topic=topic.name,
        )
    if barrier is not None:
        old = [segment for segment in old if segment.last < barrier]
    if not old:
        return 0
    if versions:
        everything = np.ones(sum(segment.rows for segment in old), np.bool_)
        return _nothing_to_do(catalog, topic, old[-1].last, Verdict(everything, 0, 0), lease)
    verdict = _judge(reader, topic, old[-1].last, now, seen, renew)
    if verdict.keep.all():
        return _nothing_to_do(catalog, topic, old[-1].last, verdict, lease)
    new = _rewrite(reader, files, config, topic, verdict.keep, old, renew)

    def work(tx: Transaction) -> None:
        lease.check(tx)
        if reader.topic(name, tx) != topic or holds.of_versions(tx, topic.id):
            raise Conflict(f"{topic.name} was changed while it was compacted", topic=topic.name)
        for segment in old:
            if not tx.run("DELETE FROM segments WHERE id = ? AND file = ?", segment.id, segment.file):
                raise Conflict(
                    f"the segments of {topic.name} changed while it was compacted", topic=topic.name
                )
            to_garbage(tx, segment.file)
        for segment in new:
            files.claim(tx, segment.file)
            segments.insert(tx, topic, segment)
        if not new:
            for partition, _, end in joined(segment.spans for segment in old):
                sql = 'UPDATE offsets SET first = ? WHERE topic = ? AND "partition" = ?'
                tx.run(sql, end, topic.id, partition)
        _mark(tx, topic, old[-1].last, verdict)

    try:
        catalog.write(work)
    except BaseException:
        files.discard(segment.file for segment in new)
        raise
    files.sweep()
    return int((~verdict.keep).sum())


def _nothing_to_do(catalog: Catalog, topic: Topic, upto: int, verdict: Verdict, lease: Lease) -> int:
    def work(tx: Transaction) -> None:
        lease.check(tx)
        _mark(tx, topic, upto, verdict)

    catalog.write(work)
    return 0


@dataclass(frozen=True)
class Verdict:
    """Which rows stay, in the log's order; the last position at which something that goes was replaced, and
    the last delete that goes though it is the latest of its key.
    """

    keep: np.ndarray
    replaced: int
    lost_delete: int


def _mark(tx: Transaction, topic: Topic, upto: int, verdict: Verdict) -> None:
    sql = (
        "UPDATE topics SET compacted = ?, compacted_rows = ?,"
        " replaced = CASE WHEN replaced > ? THEN replaced ELSE ? END,"
        " deletes_gone = CASE WHEN deletes_gone > ? THEN deletes_gone ELSE ? END WHERE id = ?"
    )
    replaced, lost = verdict.replaced, verdict.lost_delete
    tx.run(sql, upto, int(verdict.keep.sum()), replaced, replaced, lost, lost, topic.id)


def _judge(
    reader: LogReader, topic: Topic, upto: int, now: int, seen: int | None, renew: Callable[[], None]
) -> Verdict:
    """Look at the keys of all rows, and decide which stay; a delete that a holder has not seen does."""
    keys = _Keys(pa.schema([topic.stored.field(name) for name in topic.key]))
    commits = _Commits()
    marks = [np.zeros(0, np.bool_)]
    for batch in reader.rows_of(topic, 0, upto, topic.key):
        rows = batch.rows
        keys.add(rows.select(topic.key))
        commits.add(*(rows.column(name).cast(pa.int64()).to_numpy() for name in (POSITION, INGESTED_AT)))
        marks.append(rows.column(DELETED).to_numpy(zero_copy_only=False))
        renew()
    deleted = np.concatenate(marks)
    successor = keys.successors()
    latest = successor < 0
    old = commits.each(commits.at < now - topic.options.tombstones)
    if seen is not None:
        old &= commits.each(commits.positions <= seen)
    keep = latest & ~(deleted & old)
    if topic.options.history is not None:
        within = commits.at > now - topic.options.history
        replaced = np.flatnonzero(~latest)
        keep[replaced] |= within[commits.of(successor[replaced])]
        keep |= latest & deleted & commits.each(within)
    gone = np.flatnonzero(~keep & ~latest)
    lost = np.flatnonzero(~keep & latest)
    return Verdict(keep, commits.last(successor[gone]), commits.last(lost))


class _Commits:
    """Which positions and times rows have, in the log's order: those of one commit share them."""

    def __init__(self) -> None:
        self._rows = 0
        self._starts: list[np.ndarray] = []
        self._positions: list[np.ndarray] = []
        self._at: list[np.ndarray] = []

    def add(self, positions: np.ndarray, at: np.ndarray) -> None:
        """The next rows; a commit that goes on from the rows before is there twice."""
        if len(positions):
            begins = np.flatnonzero(np.concatenate([[True], positions[1:] != positions[:-1]]))
            self._starts.append(begins + self._rows)
            self._positions.append(positions[begins])
            self._at.append(at[begins])
            self._rows += len(positions)

    @cached_property
    def starts(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *self._starts])

    @cached_property
    def positions(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *self._positions])

    @cached_property
    def at(self) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *self._at])

    def each(self, marks: np.ndarray) -> np.ndarray:
        """The mark of each row, from those of the commits."""
        return np.repeat(marks, np.diff(self.starts, append=self._rows))

    def of(self, rows: np.ndarray) -> np.ndarray:
        """The commits of rows."""
        return np.searchsorted(self.starts, rows, "right") - 1

    def last(self, rows: np.ndarray) -> int:
        """The last position of these rows; 0 if there are none."""
        return int(self.positions[self.of(rows.max())]) if len(rows) else 0


class _Keys:
    """The keys of all rows, in the log's order; what is looked at together has equal hashes, and is bounded."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._upper = [np.zeros(0, np.uint16)]
        """The first bits of the hashes: which part a row is in, however many there will be."""

    def add(self, keys: pa.RecordBatch) -> None:
        self._batches.append(keys)
        hashes = hash_rows(keys.columns, keys.num_rows, HASH_BITS)
        self._upper.append((hashes >> np.uint64(48)).astype(np.uint16))

    def successors(self) -> np.ndarray:
        """For each row the number of the next row of its key, -1 for the latest."""
        table = pa.Table.from_batches(self._batches, self._schema)
        upper = np.concatenate(self._upper)
        parts = min(1 + table.nbytes // PART_BYTES, 1 << 16)
        bounds = np.arange(parts + 1) * (1 << 16) // parts
        successor = np.full(len(upper), -1, np.int32 if len(upper) < 1 << 31 else np.int64)
        for low, high in pairwise(bounds):
            here = (upper >= low) & (upper < high)
            rows = np.flatnonzero(here)
            if not len(rows):
                continue
            keys = [one_chunk(column) for column in table.filter(pa.array(here)).columns]
            hashes = hash_rows(keys, len(rows), HASH_BITS)
            order, starts = grouped(hashes, keys, exact=False, whole_rows=True, stable=True, bits=HASH_BITS)
            followed = np.ones(len(rows), np.bool_)
            followed[starts[1:] - 1] = followed[-1] = False
            before = np.flatnonzero(followed)
            successor[rows[order[before]]] = rows[order[before + 1]]
        return successor


def _rewrite(
    reader: LogReader,
    files: Files,
    config: Config,
    topic: Topic,
    keep: np.ndarray,
    old: list[Segment],
    renew: Callable[[], None],
) -> list[Segment]:
    """New segments with the rows that stay. Together their spans cover the old ones': no offset seems lost."""
    schema = tail.stamped_schema(topic)
    covered = {partition: [first, end] for partition, first, end in joined(segment.spans for segment in old)}
    made: list[Segment] = []
    try:
        for table in _chunks(reader, topic, old[-1].last, keep, config.segment_rows):
            renew()
            written = segments.write(files, topic, table.select(schema.names).cast(schema), schema)
            positions = table.column(POSITION).to_numpy()
            times = table.column(INGESTED_AT).cast(pa.int64()).to_numpy()
            made.append(
                Segment(
                    first=int(positions[0]),
                    last=int(positions[-1]),
                    first_at=int(times[0]),
                    last_at=int(times[-1]),
                    schema=topic.version,
                    rows=written.rows,
                    bytes=written.bytes,
                    spans=_take_spans(covered, table),
                    stamped=True,
                    file=written.file,
                    file_checksum=written.checksum,
                )
            )
    except BaseException:
        files.discard(segment.file for segment in made)
        raise
    if made:
        rest = ((partition, first, end) for partition, (first, end) in covered.items() if first < end)
        made[-1] = replace(made[-1], spans=joined([made[-1].spans, rest]))
    return made


def _take_spans(covered: dict[int, list[int]], table: pa.Table) -> Spans:
    """The offsets up to the last row of each partition in the table, taken out of what is still to cover."""
    partitions = table.column(PARTITION).to_numpy()
    offsets = table.column(OFFSET).to_numpy()
    spans = []
    for partition, bounds in covered.items():
        mine = offsets[partitions == partition]
        if len(mine):
            end = int(mine[-1]) + 1
            spans.append((partition, bounds[0], end))
            bounds[0] = end
    return tuple(spans)


def _chunks(reader: LogReader, topic: Topic, upto: int, keep: np.ndarray, most: int) -> Iterator[pa.Table]:
    """The rows that stay, in pieces that end between two positions."""
    done, held = 0, []
    for batch in reader.rows_of(topic, 0, upto, None):
        mask = keep[done : done + batch.rows.num_rows]
        done += batch.rows.num_rows
        held.append(pa.Table.from_batches([batch.rows]).filter(pa.array(mask)))
        if sum(table.num_rows for table in held) > most:
            table = pa.concat_tables(held).combine_chunks()
            positions = table.column(POSITION).to_numpy()
            cut = int(np.searchsorted(positions, positions[-1]))
            if cut:
                yield table.slice(0, cut)
                table = table.slice(cut)
            held = [table]
    rest = pa.concat_tables(held).combine_chunks() if held else None
    if rest is not None and rest.num_rows:
        yield rest
