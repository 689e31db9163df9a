"""The tail: appends that are not yet in a segment, each one an Arrow blob.

A small blob lies in the catalog, in the row that its transaction inserts; a larger one in a file beside it
(`spill`), and the row says where.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evert.catalog import Transaction
from evert.errors import Corrupt
from evert.log import spill
from evert.log.spill import Place
from evert.log.topic import DELETED, INGESTED_AT, OFFSET, PARTITION, POSITION, UTC_MICROSECONDS, Topic

Spans = tuple[tuple[int, int, int], ...]
"""For each partition touched: its number, the first offset, and the one after the last."""

_COLUMNS = "position, at, schema, rows, bytes, spans, checksum, file, start, data"


@dataclass(frozen=True)
class TailEntry:
    """One commit's rows of one topic."""

    position: int
    at: int
    schema: int
    rows: int
    spans: Spans
    checksum: int
    data: bytes
    file: str | None = None

    def verify(self, topic: Topic) -> None:
        """Refuse to serve what is not what was written."""
        if _checksum(self, topic.id, zlib.crc32(self.data)) != self.checksum:
            raise Corrupt(
                f"the tail of {topic.name} is damaged at position {self.position}",
                hint="restore a backup; the rows before and after that position can still be read",
                topic=topic.name,
                position=self.position,
                offset=self.spans[0][1] if self.spans else None,
            )


def encode(table: pa.Table) -> bytes:
    """The rows as one Arrow record batch message, without the schema."""
    data: bytes = one_batch(table).serialize().to_pybytes()
    return data


def decode(data: bytes, schema: pa.Schema) -> pa.RecordBatch:
    return pa.ipc.read_record_batch(pa.py_buffer(data), schema)


def insert(
    tx: Transaction,
    topic: Topic,
    position: int,
    at: int,
    rows: int,
    spans: Spans,
    data: bytes,
    place: Place | None,
    content: int,
) -> None:
    """Insert an entry; `content` is the CRC-32 of its data."""
    entry = TailEntry(position, at, topic.version, rows, spans, 0, data)
    tx.run(
        "INSERT INTO tail (topic, position, at, schema, rows, bytes, spans, checksum, file, start, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        topic.id,
        position,
        at,
        topic.version,
        rows,
        len(data),
        json.dumps(spans, separators=(",", ":")),
        _checksum(entry, topic.id, content),
        place.file if place else None,
        place.start if place else None,
        None if place else data,
    )


def entries(
    tx: Transaction, folder: Path, topic: Topic, after: int, upto: int, *, most_bytes: int, most_rows: int
) -> list[TailEntry]:
    """The entries in `(after, upto]`, from the first on, until the bound is passed.

    `FileNotFoundError` if a file of theirs is gone: they have been sealed meanwhile, look again.
    """
    found: list[TailEntry] = []
    size = rows = 0
    sql = f"SELECT {_COLUMNS} FROM tail WHERE topic = ? AND position > ? AND position <= ? ORDER BY position"
    for row in tx.each(sql, topic.id, after, upto):
        entry = _entry(folder, topic, row)
        found.append(entry)
        size += len(entry.data)
        rows += entry.rows
        if size >= most_bytes or rows >= most_rows:
            break
    return found


@contextmanager
def missing_is_damage(topic: Topic) -> Iterator[None]:
    """For those who alone may remove the files of entries: one that is missing has not just been sealed."""
    try:
        yield
    except FileNotFoundError as error:
        name = Path(str(error.filename)).name
        raise Corrupt(
            f"the file {name} of the tail of {topic.name} is missing",
            hint="restore the file from a backup",
            topic=topic.name,
            file=name,
        ) from error


def places(tx: Transaction, topic: Topic) -> list[tuple[int, Spans]]:
    """The positions and spans of a topic's entries, without their rows."""
    sql = "SELECT position, spans FROM tail WHERE topic = ? ORDER BY position"
    return [(position, _spans(topic, position, spans)) for position, spans in tx.all(sql, topic.id)]


def delete(tx: Transaction, topic: Topic, first: int, last: int) -> int:
    """Delete the entries from a position to another; how many there were."""
    sql = "DELETE FROM tail WHERE topic = ? AND position BETWEEN ? AND ?"
    return tx.run(sql, topic.id, first, last)


def gathered(topic: Topic, entries: Sequence[TailEntry]) -> pa.RecordBatch:
    """The rows of entries of one schema version (which `topic` has), verified, as a stamped segment stores them."""
    batches, offsets = [], []
    for entry in entries:
        entry.verify(topic)
        batch = decode(entry.data, topic.stored)
        batches.append(batch)
        offsets.append(offsets_of(batch, topic, entry.spans))
    rows = one_batch(pa.Table.from_batches(batches))
    counts = np.array([entry.rows for entry in entries])
    stamps = [
        pa.array(np.repeat([entry.position for entry in entries], counts)),
        pa.array(np.concatenate(offsets)),
        pa.array(np.repeat([entry.at for entry in entries], counts)).cast(UTC_MICROSECONDS),
    ]
    return pa.RecordBatch.from_arrays([*rows.columns, *stamps], schema=stamped_schema(topic))


def stamp(
    batch: pa.RecordBatch, topic: Topic, position: int | None = None, at: int = 0, spans: Spans = ()
) -> list[pa.Array]:
    """The system columns of stamped rows, or of the rows of one commit, whose stamps the catalog has."""
    rows = batch.num_rows
    single = topic.partitions == 1
    partitions = pa.array(np.zeros(rows, np.int32)) if single else batch.column(PARTITION)
    if position is None:
        positions, offsets, times = (batch.column(name) for name in (POSITION, OFFSET, INGESTED_AT))
    else:
        positions = pa.array(np.full(rows, position, np.int64))
        offsets = pa.array(offsets_of(batch, topic, spans))
        times = pa.array(np.full(rows, at, np.int64)).cast(UTC_MICROSECONDS)
    deleted = [batch.column(DELETED)] if topic.kind == "table" else []
    return [positions, partitions, offsets, times, *deleted]


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """The table in one piece."""
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        return batches[0]
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], table.schema)


def offsets_of(batch: pa.RecordBatch, topic: Topic, spans: Spans) -> np.ndarray:
    """The offsets of a commit's rows."""
    if topic.partitions == 1 or len(spans) == 1:
        return np.arange(spans[0][1], spans[0][1] + batch.num_rows, dtype=np.int64)
    return count_offsets(batch.column(PARTITION), spans)


def count_offsets(partitions: pa.Array, spans: Spans) -> np.ndarray:
    """Number the rows of each partition from the first offset of its span."""
    numbers = partitions.to_numpy(zero_copy_only=False)
    offsets = np.empty(len(numbers), np.int64)
    for partition, first, _ in spans:
        mine = np.flatnonzero(numbers == partition)
        offsets[mine] = np.arange(first, first + len(mine))
    return offsets


def stamped_schema(topic: Topic) -> pa.Schema:
    """What a segment made from many commits stores: `topic.stored`, and where each row belongs."""
    extra = [(POSITION, pa.int64()), (OFFSET, pa.int64()), (INGESTED_AT, UTC_MICROSECONDS)]
    return pa.schema(list(topic.stored) + [pa.field(name, kind, nullable=False) for name, kind in extra])


def _entry(folder: Path, topic: Topic, row: tuple[Any, ...]) -> TailEntry:
    position, at, schema, rows, size, spans, checksum, file, start, data = row
    if file is not None:
        data = spill.read(folder, file, start, size)
    return TailEntry(position, at, schema, rows, _spans(topic, position, spans), checksum, data, file)


def _spans(topic: Topic, position: int, text: str) -> Spans:
    try:
        return tuple((int(p), int(first), int(end)) for p, first, end in json.loads(text))
    except (ValueError, TypeError) as error:
        raise Corrupt(
            f"the tail of {topic.name} is damaged at position {position}", topic=topic.name, position=position
        ) from error


def _checksum(entry: TailEntry, topic: int, content: int) -> int:
    place = repr((topic, entry.position, entry.at, entry.schema, entry.rows, entry.spans))
    return zlib.crc32(place.encode(), content)
