"""Bases: what views rest on, when retention has removed the events themselves.

A base holds the events of a stream in a range of positions as a multiset of the columns that views use, each
different row once with its weight. Views that counted those events are proved, rebuilt and recomputed from it.

    events 1 .. 900 of clicks(url, user, at),          base (0, 900] of clicks(url)
    of which the views use url                   ──>   /home 610 times, /cart 290 times
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from evert.catalog import Catalog, Transaction
from evert.disk import disk_errors
from evert.errors import Corrupt
from evert.log import holds, retention, watermarks
from evert.log.embedded import EmbeddedLog
from evert.log.files import Files, sync
from evert.log.topic import INGESTED_AT, POSITION, UTC_MICROSECONDS, WATERMARK, Topic
from evert.log.watermarks import History
from evert.trace import WEIGHT, consolidate
from evert.views import definition as definitions

ROOM = "bases"


@dataclass(frozen=True)
class Base:
    """The events of a stream in `(after, upto]`, as far as views use them."""

    after: int
    upto: int
    columns: tuple[str, ...]
    rows: int
    bytes: int
    checksum: int
    file: str


def fold(catalog: Catalog, log: EmbeddedLog) -> int:
    """Make bases of what retention wants to remove and views count on; how many were made."""
    made = 0
    for topic in log.topics().values():
        if topic.kind == "stream" and topic.options.views == "keep":
            made += _fold(catalog, log, topic)
    return made


def _fold(catalog: Catalog, log: EmbeddedLog, topic: Topic) -> bool:
    with catalog.read() as tx:
        target = retention.wanted(tx, topic)
        held = holds.of_topic(tx, topic.id)
        if target is None or not held:
            return False
        after = min(hold.upto for hold in held)
        upto = min([target, *(hold.seen for hold in held if _runs(tx, hold.holder))])
        columns = _used(tx, topic, [hold.holder for hold in held])
        marks = watermarks.history(tx, topic.id, after, upto) if WATERMARK in columns else None
    if upto <= after:
        return False
    file = log.files.announce(ROOM)
    rows = _gathered(log, topic, columns, after, upto, marks)
    size, checksum = _write(log.files, file, rows)

    def work(tx: Transaction) -> None:
        log.files.claim(tx, file)
        tx.run(
            "INSERT INTO bases (topic, after, upto, columns, rows, bytes, checksum, file)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            topic.id,
            after,
            upto,
            json.dumps(columns),
            rows.num_rows,
            size,
            checksum,
            file,
        )
        for hold in held:
            holds.can_go(tx, topic.id, hold.holder, upto)

    catalog.write(work)
    return True


def of_topic(tx: Transaction, topic: int, since: int) -> list[Base]:
    """The bases of a topic for someone who counts its events after `since`."""
    sql = (
        "SELECT after, upto, columns, rows, bytes, checksum, file FROM bases WHERE topic = ? AND after >= ?"
        " ORDER BY after"
    )
    return [Base(row[0], row[1], tuple(json.loads(row[2])), *row[3:]) for row in tx.all(sql, topic, since)]


def read(files: Files, base: Base, columns: pa.Schema) -> pa.Table:
    """A base's rows with these columns, and the weight last; columns that no view used are NULL."""
    path = files.path(base.file)
    content = pa.py_buffer(path.read_bytes())
    if content.size != base.bytes or zlib.crc32(content) != base.checksum:
        raise Corrupt(
            f"the base {base.file} does not match its checksum", hint="restore a backup", file=base.file
        )
    found = pq.read_table(pa.BufferReader(content))
    arrays = [
        found.column(f"c{base.columns.index(field.name)}").cast(field.type)
        if field.name in base.columns
        else pa.nulls(found.num_rows, field.type)
        for field in columns
    ]
    return pa.table([*arrays, found.column(WEIGHT)], names=[*columns.names, WEIGHT])


def _gathered(
    log: EmbeddedLog, topic: Topic, columns: Sequence[str], after: int, upto: int, marks: History | None
) -> pa.Table:
    """The events of a range as a multiset, batch by batch."""
    names = [f"c{i}" for i in range(len(columns))]
    readable = topic.readable(None).append(pa.field(WATERMARK, UTC_MICROSECONDS))
    kinds = [readable.field(name).type for name in columns]
    users = [name for name in columns if name not in (INGESTED_AT, WATERMARK)]
    schema = pa.schema([*zip(names, kinds, strict=True), (WEIGHT, pa.int64())])
    held: list[pa.Table] = [schema.empty_table()]
    for batch in log.read([topic.name], after=after, upto=upto, columns=users):
        rows = pa.Table.from_batches([batch.rows])
        if marks is not None:
            rows = rows.append_column(WATERMARK, marks.before(rows.column(POSITION).to_numpy()))
        rows = rows.select(list(columns)).rename_columns(names)
        weights = pa.repeat(pa.scalar(1, pa.int64()), batch.rows.num_rows)
        held.append(rows.append_column(WEIGHT, weights).cast(schema))
        if sum(table.num_rows for table in held[1:]) > max(1_000_000, held[0].num_rows):
            held = [consolidate(pa.concat_tables(held)).select(schema.names)]
    return consolidate(pa.concat_tables(held)).select(schema.names)


def _write(files: Files, file: str, rows: pa.Table) -> tuple[int, int]:
    path = files.path(file)
    with disk_errors(path):
        pq.write_table(rows, path, compression="zstd")
        sync(path)
        content = path.read_bytes()
    return len(content), zlib.crc32(content)


def _runs(tx: Transaction, view: int) -> bool:
    """Whether a view goes on reading; one that has stopped does not hold retention back."""
    found = definitions.by_id(tx, view)
    return found is not None and found.state not in ("stopped", "absent")


def _used(tx: Transaction, topic: Topic, views: Sequence[int]) -> list[str]:
    """The columns of a topic that these views use, in the topic's order."""
    used: set[str] = set()
    for view in views:
        found = definitions.by_id(tx, view)
        for read in found.reads if found is not None else ():
            if read.kind != "view" and read.id == topic.id:
                used |= set(topic.schema.names if read.columns is None else read.columns)
    return [name for name in (*topic.schema.names, INGESTED_AT, WATERMARK) if name in used]
