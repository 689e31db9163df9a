"""Large ranges of the log, read by the workers themselves from the segments, and only the columns that count.

The driver names the row groups; what the tail has beside the segments travels as Arrow, as small ranges do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from evert.epoch import inputs
from evert.epoch import spark as on_spark
from evert.epoch.flow import Flow
from evert.epoch.slices import Slice
from evert.log.segments import Segment, segments, within
from evert.log.topic import DELETED, OFFSET, POSITION, WATERMARK, Topic
from evert.plan.graph import Leaf

if TYPE_CHECKING:
    from evert.database import Database

REPEATING = 8
"""Text that takes fewer bytes a row than this in its file is a dictionary there, and stays one."""


def slices(
    db: Database, flow: Flow, topics: Mapping[str, tuple[Leaf, int, int]]
) -> tuple[list[Slice], dict[str, pa.Table]] | None:
    """The row groups of these ranges, and what is not in segments; None if there are some that Spark must read."""
    if not topics or not _is_inline(flow, topics):
        return None
    found: list[Slice] = []
    rest: dict[str, pa.Table] = {}
    for name, (leaf, after, upto) in topics.items():
        topic = db.definition(leaf.topic)
        on_spark.seal_long_tail(db, topic, upto)
        with db.catalog.read() as tx:
            there = segments(tx, topic, after=after, upto=upto)
            gaps = on_spark.gaps(tx, topic, there, after, upto)
        if not all(_is_plain(topic, segment, leaf) for segment in there):
            return None
        columns = _columns(flow, name, leaf)
        marks = inputs.marks_of(db, leaf, after, upto) if WATERMARK in columns else None
        try:
            groups = [g for segment in there for g in _groups(db, name, leaf, segment, columns, after, upto)]
        except FileNotFoundError:  # compaction was faster: what there is now is looked up again
            return None
        # They are put together by the tasks that read them, so a column is the same in all.
        repeating = tuple(c for c in columns if c is not None and all(c in g.repeating for g in groups))
        found += [replace(group, marks=marks, repeating=repeating) for group in groups]
        tail = [inputs.topic_delta(db, leaf, *gap) for gap in gaps]
        if tail:
            rest[name] = pa.concat_tables(tail)
    return found, rest


def _is_inline(flow: Flow, sources: Collection[str]) -> bool:
    """Whether workers do all the work on the rows of these leaves."""
    steps = [step for node in flow.nodes for step in node.steps if step.source in sources]
    return all(step.chain.inline is not None for step in steps)


def _is_plain(topic: Topic, segment: Segment, leaf: Leaf) -> bool:
    """Whether a segment's rows can be taken as they are stored."""
    counted = segment.stamped or topic.partitions == 1 or leaf.kind == "stream"
    return counted and segment.schema == topic.version


def _columns(flow: Flow, name: str, leaf: Leaf) -> tuple[str | None, ...]:
    """The stored columns of a leaf by their places, without those that no chain reads."""
    extra = [POSITION, OFFSET, DELETED] if leaf.has_changes else []
    stored = [*leaf.schema.names, *extra]
    used: set[int] = set()
    for node in flow.nodes:
        for step in node.steps:
            if step.source == name and step.chain.inline is not None:
                work = step.chain.inline
                read = work.reads() if work.steps else step.chain.reads
                used |= set(range(len(stored))) if read is None else read
    return tuple(column if place in used else None for place, column in enumerate(stored))


def _groups(
    db: Database,
    name: str,
    leaf: Leaf,
    segment: Segment,
    columns: tuple[str | None, ...],
    after: int,
    upto: int,
) -> Iterator[Slice]:
    schema = inputs.source_schema(leaf)
    offset = segment.spans[0][1] if segment.spans else 0
    metadata = pq.read_metadata(db.log.files.path(segment.file))
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if not segment.stamped or within(metadata.row_group(group), after, upto):
            yield Slice(
                name,
                schema,
                segment.file,
                group,
                rows,
                columns,
                segment.stamped,
                segment.first,
                segment.first_at,
                offset,
                after,
                upto,
                repeating=_repeating(metadata.row_group(group), columns),
            )
        offset += rows


def _repeating(group: pq.RowGroupMetaData, columns: Collection[str | None]) -> tuple[str, ...]:
    """The columns of text of which the file has few values, and for each row not much more than a number."""
    chunks = [group.column(place) for place in range(group.num_columns)]
    return tuple(
        chunk.path_in_schema
        for chunk in chunks
        if chunk.path_in_schema in columns
        and chunk.physical_type == "BYTE_ARRAY"
        and chunk.total_uncompressed_size < REPEATING * group.num_rows
    )
