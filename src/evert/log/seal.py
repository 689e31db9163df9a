"""Sealing: the tail's many small commits become one Parquet segment, in one transaction.

tail: [1][2][3]   [5][6]  [7]         a segment never covers another's positions, so entries are taken
segments:       [4]            ──>    up to the next one: [1-3] [4] [5-7]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from evert.catalog import Catalog, Lease, Transaction
from evert.config import Config
from evert.errors import Conflict
from evert.log import segments, tail
from evert.log.files import Files, let_go
from evert.log.registry import Registry
from evert.log.segments import Segment
from evert.log.tail import Spans, TailEntry, missing_is_damage
from evert.log.topic import Topic


def due(tx: Transaction, config: Config) -> list[int]:
    """The topics whose tail has outgrown one of its bounds."""
    sql = (
        "SELECT topic FROM tail GROUP BY topic"
        " HAVING sum(rows) >= ? OR sum(bytes) >= ? OR count(*) >= ? ORDER BY topic"
    )
    return [topic for (topic,) in tx.all(sql, config.seal_rows, config.seal_bytes, config.seal_entries)]


def seal(
    catalog: Catalog,
    registry: Registry,
    files: Files,
    config: Config,
    topic: Topic,
    lease: Lease,
    *,
    upto: int,
) -> int:
    """Seal the topic's tail up to a position; how many rows moved."""
    moved = 0
    while True:
        with catalog.read() as tx, missing_is_damage(topic):
            first = tx.one("SELECT min(position) FROM tail WHERE topic = ? AND position <= ?", topic.id, upto)
            if first is None or first[0] is None:
                return moved
            ahead = segments.segments(tx, topic, after=first[0], most=1)
            entries = tail.entries(
                tx,
                files.folder,
                topic,
                first[0] - 1,
                min(upto, ahead[0].first - 1) if ahead else upto,
                most_bytes=4 * config.seal_bytes,
                most_rows=config.segment_rows,
            )
            version = entries[0].schema
            entries = entries[: next((i for i, e in enumerate(entries) if e.schema != version), len(entries))]
            written = registry.at_version(tx, topic, version)
        moved += _seal_entries(catalog, files, written, entries, lease)


def _seal_entries(
    catalog: Catalog, files: Files, topic: Topic, entries: Sequence[TailEntry], lease: Lease
) -> int:
    rows = sum(entry.rows for entry in entries)
    table = pa.Table.from_batches([tail.gathered(topic, entries)])
    file = segments.write(files, topic, table, table.schema)
    segment = Segment(
        first=entries[0].position,
        last=entries[-1].position,
        first_at=entries[0].at,
        last_at=entries[-1].at,
        schema=topic.version,
        rows=rows,
        bytes=file.bytes,
        spans=joined(entry.spans for entry in entries),
        stamped=True,
        file=file.file,
        file_checksum=file.checksum,
    )

    def work(tx: Transaction) -> None:
        lease.check(tx)
        files.claim(tx, file.file)
        if tail.delete(tx, topic, segment.first, segment.last) != len(entries):
            raise Conflict(f"the tail of {topic.name} changed while it was sealed", topic=topic.name)
        let_go(tx, {entry.file for entry in entries if entry.file is not None})
        segments.insert(tx, topic, segment)

    try:
        catalog.write(work)
    except BaseException:
        files.discard([file.file])
        raise
    return rows


def joined(pieces: Iterable[Iterable[tuple[int, int, int]]]) -> Spans:
    """The spans that cover a sequence of adjacent spans."""
    covered: dict[int, tuple[int, int]] = {}
    for spans in pieces:
        for partition, first, end in spans:
            covered[partition] = (covered.get(partition, (first, end))[0], end)
    return tuple((partition, first, end) for partition, (first, end) in sorted(covered.items()))
