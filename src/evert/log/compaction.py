"""Compaction of tables: the latest row of each key stays, and what it replaced goes.

    position  1    2    3    4     5            2    4     5
    key       a    b    a    a     c     ──>    b    a     c
    value     7    8    9    del   1            8    del   1

A delete stays for `tombstones` so that readers see it, and with `history` every version stays that was the
latest at some time within it. Positions and offsets do not change. Streams are never compacted: each of
their rows is a fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.catalog import Catalog, Lease, Transaction
from evert.config import Config
from evert.errors import Conflict, Refused
from evert.log import segments, tail
from evert.log.files import Files, to_garbage
from evert.log.reader import LogReader
from evert.log.seal import joined
from evert.log.segments import Segment
from evert.log.tail import Spans
from evert.log.topic import DELETED, INGESTED_AT, OFFSET, PARTITION, POSITION, Topic

_ROW = "__row"


def due(tx: Transaction, topic: Topic) -> bool:
    """Whether as many rows have come since the last compaction as it left, so that its cost is spread."""
    if topic.kind != "table":
        return False
    found = tx.one("SELECT compacted, compacted_rows FROM topics WHERE id = ?", topic.id)
    assert found is not None
    (rows,) = tx.one(
        "SELECT coalesce(sum(rows), 0) FROM segments WHERE topic = ? AND first > ?", topic.id, found[0]
    ) or (0,)
    return bool(rows > max(2 * found[1], 100_000))


def compact(
    catalog: Catalog, reader: LogReader, files: Files, config: Config, topic: Topic, lease: Lease
) -> int:
    """Compact the topic's sealed rows; how many went. The tail is to be sealed before."""
    if topic.kind != "table":
        raise Refused(
            f"{topic.name} is a stream: each of its rows is a fact, and none replaces another",
            hint="bound it with retain= or retain_bytes=, or make it a table",
            topic=topic.name,
        )
    with catalog.read() as tx:
        old = segments.segments(tx, topic)
        (barrier,) = tx.one("SELECT min(position) FROM tail WHERE topic = ?", topic.id) or (None,)
        now = tx.now
    if barrier is not None:
        old = [segment for segment in old if segment.last < barrier]
    if not old:
        return 0
    upto = old[-1].last
    keep, lost_delete = _survivors(reader, topic, upto, now)
    removed = int(len(keep) - keep.sum())
    if not removed:
        catalog.write(lambda tx: _mark(tx, topic, upto, len(keep), 0))
        return 0
    new = _rewrite(reader, files, config, topic, upto, keep, old)

    def work(tx: Transaction) -> None:
        lease.check(tx)
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
        _mark(tx, topic, upto, int(keep.sum()), lost_delete)

    try:
        catalog.write(work)
    except BaseException:
        files.discard(segment.file for segment in new)
        raise
    files.sweep()
    return removed


def _mark(tx: Transaction, topic: Topic, upto: int, rows: int, lost_delete: int) -> None:
    sql = (
        "UPDATE topics SET compacted = ?, compacted_rows = ?,"
        " deletes_gone = CASE WHEN deletes_gone > ? THEN deletes_gone ELSE ? END WHERE id = ?"
    )
    tx.run(sql, upto, rows, lost_delete, lost_delete, topic.id)


def _survivors(reader: LogReader, topic: Topic, upto: int, now: int) -> tuple[np.ndarray, int]:
    """Which rows stay, in the log's order, and the position of the last delete that does not."""
    wanted = pa.schema([*(topic.stored.field(k) for k in topic.key), *topic.system_fields])
    batches = [b.rows.select(wanted.names) for b in reader.read([topic.name], 0, upto, topic.key)]
    table = pa.Table.from_batches(batches, wanted)
    count = table.num_rows
    table = table.append_column(_ROW, pa.array(np.arange(count)))
    last = table.group_by(list(topic.key)).aggregate([(_ROW, "max")]).column(f"{_ROW}_max").to_numpy()
    keep = np.zeros(count, bool)
    keep[last] = True
    at = table.column(INGESTED_AT).cast(pa.int64()).to_numpy()
    deleted = table.column(DELETED).to_numpy()
    keep[keep & deleted & (at < now - topic.options.tombstones)] = False
    if topic.options.history is not None:
        keep |= _replaced_after(table, topic, now - topic.options.history)
    dropped = table.column(POSITION).to_numpy()[~keep & deleted]
    return keep, int(dropped.max()) if len(dropped) else 0


def _replaced_after(table: pa.Table, topic: Topic, horizon: int) -> np.ndarray:
    """The rows that were still the latest of their key at the horizon or became so after it."""
    order = pc.sort_indices(
        table, sort_keys=[*((name, "ascending") for name in topic.key), (_ROW, "ascending")]
    ).to_numpy()
    at = table.column(INGESTED_AT).cast(pa.int64()).to_numpy()[order]
    follows = np.zeros(len(order), bool)
    if len(order) > 1:
        follows[:-1] = True
        for name in topic.key:
            column = table.column(name).combine_chunks().take(pa.array(order))
            same = pc.equal(column[:-1], column[1:])
            follows[:-1] &= same.to_numpy(zero_copy_only=False)
    replaced_at = np.full(len(order), np.iinfo(np.int64).max)
    replaced_at[:-1] = np.where(follows[:-1], at[1:], replaced_at[:-1])
    kept = np.zeros(len(order), bool)
    kept[order] = replaced_at > horizon
    latest_delete = ~follows & table.column(DELETED).to_numpy()[order] & (at <= horizon)
    kept[order[latest_delete]] = False
    return kept


def _rewrite(
    reader: LogReader,
    files: Files,
    config: Config,
    topic: Topic,
    upto: int,
    keep: np.ndarray,
    old: list[Segment],
) -> list[Segment]:
    """New segments with the rows that stay. Together their spans cover the old ones': no offset seems lost."""
    schema = tail.stamped_schema(topic)
    covered = {partition: [first, end] for partition, first, end in joined(segment.spans for segment in old)}
    made: list[Segment] = []
    try:
        for table in _chunks(reader, topic, upto, keep, config.segment_rows):
            written = segments.write(files, topic, [table.select(schema.names).cast(schema)], schema)
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
    for batch in reader.read([topic.name], 0, upto, None):
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
