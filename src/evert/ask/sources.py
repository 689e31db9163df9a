"""Topics and views as what DuckDB scans: Arrow tables, data sets over segments, and streams of batches.

A sealed segment is scanned as the Parquet that it is, so that only the columns and row groups are read that a query
wants. Rows that are stored in another form than they are shown come through the log's reader, batch by batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as pads

from evert.ask.relations import Found, Look, Moved
from evert.ask.terms import name as quoted
from evert.ask.terms import untouched
from evert.errors import Expired
from evert.log import tail
from evert.log.reader import Chain, missing_file
from evert.log.segments import Segment, segments
from evert.log.topic import DELETED, INGESTED_AT, OFFSET, PARTITION, POSITION, UTC_MICROSECONDS, Topic
from evert.views import View
from evert.views import reader as views
from evert.views.definition import Definition

if TYPE_CHECKING:
    from evert.catalog import Transaction
    from evert.database import Database


@dataclass
class Source:
    """What to register with DuckDB, and the query that makes the relation of it."""

    sql: str
    position: int
    objects: dict[str, Any] = field(default_factory=dict)


class Batches:
    """Rows of ranges of positions, read anew by everyone who scans them."""

    def __init__(
        self, db: Database, topic: Topic, ranges: Sequence[tuple[int, int]], schema: pa.Schema
    ) -> None:
        self._db = db
        self._topic = topic
        self._ranges = ranges
        self._schema = schema

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self._schema, self._rows())
        return reader.__arrow_c_stream__(requested_schema)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        mine = [name for name in self._schema.names if name in self._topic.schema.names]
        for after, upto in self._ranges:
            for batch in self._db.log.read([self._topic.name], after=after, upto=upto, columns=mine):
                arrays = [batch.rows.column(name) for name in self._schema.names]
                yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def table(self) -> pa.Table:
        return pa.Table.from_batches(list(self._rows()), self._schema)


def source(db: Database, found: Found, look: Look, *, past: bool) -> Source:
    """A relation at the position of the answer; `past` if the user has asked for that position."""
    if isinstance(found.definition, Definition):
        return _view(db, found, found.definition, look, past=past)
    topic = db.definition(found.definition.name)
    if topic != found.definition:
        raise Moved
    if topic.kind == "table":
        return _table(db, found, topic, look.position)
    return _stream(db, found, topic, look.position, past=past)


def shown(schema: pa.Schema) -> str:
    """The columns of a source, as they are selected from it.

    A condition on a column is left to Arrow, to which NaN is less than nothing and more than nothing. So numbers
    that may be NaN are turned twice: it changes none of them, and keeps conditions on them in DuckDB.
    """
    return ", ".join(
        f"{untouched(quoted(one.name))} AS {quoted(one.name)}"
        if pa.types.is_floating(one.type)
        else quoted(one.name)
        for one in schema
    )


def _view(db: Database, found: Found, view: Definition, look: Look, *, past: bool) -> Source:
    opened = look.opened.get(view.name)
    if opened is not None:
        weighted, position, schema = opened.weighted(), look.position, opened.seen.view.schema
    else:
        then = View(db.reader, view.name).at(look.position)
        weighted, position, schema = then.weighted(), then.position, then.schema
    if schema != view.columns:
        raise Moved
    wanted = [name for name in schema.names if name in found.used] or schema.names[:1]
    rows = views.repeated(
        weighted.select([*wanted, weighted.schema.names[-1]]), pa.schema([schema.field(n) for n in wanted])
    )
    return Source(f"SELECT {shown(rows.schema)} FROM {found.sql}_rows", position, {f"{found.sql}_rows": rows})


def _table(db: Database, found: Found, topic: Topic, upto: int) -> Source:
    """The last change of every key, unless it deletes."""
    wanted = [name for name in topic.schema.names if name in found.used or name in topic.key]
    schema = pa.schema([*(topic.stored.field(n).with_nullable(True) for n in wanted), *_system(topic)])
    rows = Batches(db, topic, [(0, upto)] if upto else [], schema)
    newest = "n"
    while newest in schema.names:
        newest += "_"
    keys = ", ".join(map(quoted, topic.key))
    numbered = (
        f"SELECT *, row_number() OVER (PARTITION BY {keys} ORDER BY {POSITION} DESC, {OFFSET} DESC) AS {newest}"
        f" FROM {found.sql}_rows"
    )
    listed = shown(pa.schema([schema.field(one) for one in wanted]))
    sql = f"SELECT {listed} FROM ({numbered}) AS changes WHERE {newest} = 1 AND NOT {DELETED}"
    return Source(sql, upto, {f"{found.sql}_rows": rows})


def _system(topic: Topic) -> list[pa.Field]:
    return [one for one in topic.system_fields if one.name in (POSITION, OFFSET, DELETED)]


def _stream(db: Database, found: Found, topic: Topic, upto: int, *, past: bool) -> Source:
    wanted = [name for name in topic.schema.names if name in found.used]
    system = [one for one in topic.system_fields if one.name in found.used or one.name == POSITION]
    schema = pa.schema([*(topic.stored.field(n).with_nullable(True) for n in wanted), *system])
    gone: str | None = None
    while True:
        pieces = _pieces(db, topic, schema, upto, past=past)
        try:
            fragments = [(_fragment(db, topic, one, schema), one.last > upto) for one in pieces.direct]
            break
        except FileNotFoundError as error:
            if gone == str(error.filename):
                raise missing_file(topic, upto, gone) from None
            gone = str(error.filename)
    objects: dict[str, Any] = {}
    for label, cut in (("whole", False), ("cut", True)):
        those = [fragment for fragment, is_cut in fragments if is_cut == cut]
        if those:
            objects[f"{found.sql}_{label}"] = pads.FileSystemDataset(those, schema, pads.ParquetFileFormat())
    if pieces.others:
        objects[f"{found.sql}_others"] = Batches(db, topic, pieces.others, schema)
    if pieces.gaps or not objects:
        objects[f"{found.sql}_tail"] = Batches(db, topic, pieces.gaps, schema).table()
    parts = [
        f"SELECT {shown(schema)} FROM {name}"
        + (f" WHERE {POSITION} <= {upto}" if name.endswith("_cut") else "")
        for name in objects
    ]
    return Source(" UNION ALL ".join(parts), upto, objects)


@dataclass(frozen=True)
class Pieces:
    """Segments that are scanned as they are, and ranges of positions to read: of other segments, of the tail."""

    direct: list[Segment]
    others: list[tuple[int, int]]
    gaps: list[tuple[int, int]]


def _pieces(db: Database, topic: Topic, schema: pa.Schema, upto: int, *, past: bool) -> Pieces:
    with db.catalog.read() as tx:
        if past:
            _refuse_gone(tx, topic, upto)
        files = segments(tx, topic, upto=upto)
        written = {one.schema: db.log.registry.at_version(tx, topic, one.schema) for one in files}
        entries = [(at, spans) for at, spans in tail.places(tx, topic) if at <= upto]
        chain = Chain(topic.name)
        chain.begin(tx, topic)
    sealed = [(one.first, one.spans) for one in files]
    for first, spans in sorted([*sealed, *entries]):
        chain.link(spans, first)
    direct = [one for one in files if _direct(topic, written[one.schema], one, schema)]
    others = [(one.first - 1, min(one.last, upto)) for one in files if one not in direct]
    return Pieces(direct, others, _gaps(files, [at for at, _ in entries], upto))


def _refuse_gone(tx: Transaction, topic: Topic, upto: int) -> None:
    (gone,) = tx.one("SELECT gone FROM topics WHERE id = ?", topic.id) or (0,)
    if upto < gone:
        raise Expired(
            f"the rows of {topic.name} up to position {gone} have passed retention; none is left at {upto}",
            hint="ask at a later position",
            topic=topic.name,
            position=upto,
            kept_after=gone,
        )


def _direct(topic: Topic, written: Topic, segment: Segment, schema: pa.Schema) -> bool:
    """Whether the file holds the columns as they are shown, but for such as the whole file has one value of."""
    if OFFSET in schema.names and not segment.stamped:
        return False
    there = written.stored
    return all(
        there.field(one.name).type == one.type
        for one in schema
        if one.name in topic.schema.names and one.name in there.names
    )


def _fragment(db: Database, topic: Topic, segment: Segment, schema: pa.Schema) -> Any:
    same: list[Any] = []
    if not segment.stamped:
        same.append(pads.field(POSITION) == segment.first)
        same.append(pads.field(INGESTED_AT) == pa.scalar(segment.first_at, UTC_MICROSECONDS))
    if topic.partitions == 1:
        same.append(pads.field(PARTITION) == pa.scalar(0, pa.int32()))
    known = None
    for one in same:
        known = one if known is None else known & one
    file = db.log.reader.segments.mapped(topic, segment)
    return pads.ParquetFileFormat().make_fragment(file, partition_expression=known)


def _gaps(files: Sequence[Segment], entries: Sequence[int], upto: int) -> list[tuple[int, int]]:
    """The ranges beside the segments in which the tail has rows."""
    found: list[tuple[int, int]] = []
    start = 0
    for first, last in [*((one.first, one.last) for one in files), (upto + 1, upto + 1)]:
        if any(start < at < first for at in entries):
            found.append((start, first - 1))
        start = max(start, last)
    return found
