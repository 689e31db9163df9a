"""Segments: immutable Parquet files, one topic each, in the order of positions.

A segment made from the tail is *stamped*: it has `_position`, `_offset` and `_ingested_at` as columns. A
segment written by one large append is not, because its position is known only at its commit: the catalog
has it. A position never spans two segments.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evert.catalog import Transaction
from evert.disk import disk_errors
from evert.errors import Corrupt, EvertError, Fenced
from evert.log.files import Files, sync
from evert.log.tail import Spans
from evert.log.topic import INGESTED_AT, OFFSET, POSITION, Topic

ROW_GROUP, SMALL_GROUP = 131_072, 16_384
_COUNTERS = (POSITION, OFFSET, INGESTED_AT)
_COLUMNS = (
    "id, first, last, first_at, last_at, schema, rows, bytes, spans, stamped, file, file_checksum, checksum"
)


@dataclass(frozen=True)
class Segment:
    """A committed segment."""

    first: int
    last: int
    first_at: int
    last_at: int
    schema: int
    rows: int
    bytes: int
    spans: Spans
    stamped: bool
    file: str
    file_checksum: int
    id: int = 0


@dataclass(frozen=True)
class Written:
    """A file that is complete and synced, and not yet committed."""

    file: str
    rows: int
    bytes: int
    checksum: int


def write(files: Files, topic: Topic, table: pa.Table, schema: pa.Schema) -> Written:
    """Announce, write and sync a segment. On failure nothing of it stays."""
    file = files.announce(f"log/{topic.id}")
    path = files.path(file)
    try:
        with disk_errors(path):
            with pq.ParquetWriter(path, schema, **_writing(schema)) as writer:
                writer.write_table(table, row_group_size=_row_group(table.num_rows))
            sync(path)
            return Written(file, table.num_rows, path.stat().st_size, checksum_of(path))
    except FileNotFoundError as error:
        raise Fenced(f"{file} was removed while it was written", hint="append again") from error
    except BaseException:
        with suppress(EvertError):
            files.discard([file])
        raise


def _row_group(rows: int) -> int:
    """The rows of a group, so that all are alike, and that a file of some size has work for more than one reader.

    >>> [_row_group(rows) for rows in (0, 1_000, 50_000, 131_072, 460_000)]
    [1, 1000, 25000, 65536, 115000]
    """
    groups = max(-(-rows // ROW_GROUP), min(2, rows // SMALL_GROUP), 1)
    return max(1, -(-rows // groups))


def insert(tx: Transaction, topic: Topic, segment: Segment) -> None:
    tx.run(
        "INSERT INTO segments (topic, first, last, first_at, last_at, schema, rows, bytes, spans, stamped, file,"
        " file_checksum, checksum) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        topic.id,
        segment.first,
        segment.last,
        segment.first_at,
        segment.last_at,
        segment.schema,
        segment.rows,
        segment.bytes,
        json.dumps(segment.spans, separators=(",", ":")),
        int(segment.stamped),
        segment.file,
        segment.file_checksum,
        _row_checksum(topic.id, segment),
    )


def segments(
    tx: Transaction, topic: Topic, *, after: int = 0, upto: int | None = None, most: int = -1
) -> list[Segment]:
    """The segments that have a position in `(after, upto]`, in order."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM segments WHERE topic = ? AND last > ? AND first <= ? ORDER BY last LIMIT ?",
        topic.id,
        after,
        2**62 if upto is None else upto,
        most,
    )
    return [_segment(topic, row) for row in rows]


class Reader:
    """Reads segments, each verified against its checksum the first time it is opened in this process."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._verified: set[str] = set()

    def open(self, topic: Topic, segment: Segment) -> pq.ParquetFile:
        path = self._verify(topic, segment)
        try:
            return pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
        except pa.ArrowException as error:
            raise damaged(topic, segment, str(error)) from error

    def mapped(self, topic: Topic, segment: Segment) -> pa.Buffer:
        """The file in memory, which stays readable when its name is gone."""
        with pa.memory_map(str(self._verify(topic, segment))) as source:
            return source.read_buffer()

    def _verify(self, topic: Topic, segment: Segment) -> Path:
        path = self._files.path(segment.file)
        if segment.file not in self._verified:
            if path.stat().st_size != segment.bytes or checksum_of(path) != segment.file_checksum:
                raise damaged(topic, segment, "it does not match its checksum")
            self._verified.add(segment.file)
        return path


def tables(
    topic: Topic,
    segment: Segment,
    file: pq.ParquetFile,
    columns: Sequence[str],
    *,
    after: int = 0,
    upto: int | None = None,
) -> Iterator[pa.Table]:
    """The row groups of an open segment, those outside the range left out as far as statistics tell."""
    for group in range(file.num_row_groups):
        if not segment.stamped or within(file.metadata.row_group(group), after, upto):
            try:
                yield file.read_row_group(group, columns=list(columns))
            except (pa.ArrowException, OSError) as error:
                raise damaged(topic, segment, str(error)) from error


def damaged(topic: Topic, segment: Segment, why: str) -> Corrupt:
    return Corrupt(
        f"the segment {segment.file} of {topic.name} is damaged: {why}",
        hint="restore the file from a backup; rows before and after it can still be read",
        topic=topic.name,
        file=segment.file,
        position=segment.first,
        offset=segment.spans[0][1] if segment.spans else None,
    )


def checksum_of(path: Path) -> int:
    handle = os.open(path, os.O_RDONLY)
    try:
        if os.fstat(handle).st_size == 0:
            return 0
        with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
            return zlib.crc32(content)
    finally:
        os.close(handle)


def within(meta: Any, after: int, upto: int | None) -> bool:
    """Whether a stamped row group may have a position in the range, by its statistics."""
    for index in range(meta.num_columns):
        column = meta.column(index)
        if column.path_in_schema == POSITION and column.is_stats_set:
            low, high = column.statistics.min, column.statistics.max
            return bool(high > after and (upto is None or low <= upto))
    return True


@lru_cache(maxsize=256)
def _writing(schema: pa.Schema) -> dict[str, Any]:
    """Dictionaries for everything but the counters, which pack into next to nothing as differences."""
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    layout = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    leaves = [layout.column(i).path for i in range(len(layout))]
    counters = [name for name in _COUNTERS if name in schema.names]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [leaf for leaf in leaves if leaf not in counters],
        "column_encoding": dict.fromkeys(counters, "DELTA_BINARY_PACKED") or None,
        "write_page_checksum": True,
        "version": "2.6",
    }


def _segment(topic: Topic, row: tuple[Any, ...]) -> Segment:
    number, first, last, first_at, last_at, schema, rows, size, spans, stamped, file, content, checksum = row
    try:
        parsed = tuple((int(p), int(a), int(b)) for p, a, b in json.loads(spans))
    except (ValueError, TypeError):
        parsed = ()
    segment = Segment(
        first, last, first_at, last_at, schema, rows, size, parsed, bool(stamped), file, content, number
    )
    if _row_checksum(topic.id, segment) != checksum:
        raise damaged(topic, segment, "its entry in the catalog does not match its checksum")
    return segment


def _row_checksum(topic: int, s: Segment) -> int:
    place = (topic, s.first, s.last, s.first_at, s.last_at, s.schema, s.rows, s.bytes, s.spans, s.stamped)
    return zlib.crc32(repr((*place, s.file, s.file_checksum)).encode())
