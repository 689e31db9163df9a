"""What flows into an epoch: the deltas of topics, views and constants, as Arrow or as a DataFrame.

A small range travels as Arrow in a file that the first stage scans. A large one is read from its Parquet
segments by Spark itself. Both have the same wide rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.catalog import Transaction
from evert.delta.upsert import CHANGE
from evert.epoch import spark as on_spark
from evert.epoch.worker import wide_table
from evert.log import ticks, watermarks
from evert.log.topic import INGESTED_AT, PARTITION, POSITION, WATERMARK
from evert.plan.graph import Leaf
from evert.plan.now import CLOCK_ID

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.database import Database

SMALL = 20_000
"""A range of more events than this is read by Spark."""


def source_schema(leaf: Leaf) -> pa.Schema:
    """The columns of a leaf as a source: numbered, in the types that Spark carries, with what tables add."""
    kinds = [field.type for field in on_spark.carried(leaf.schema)]
    numbered = [pa.field(f"c{i}", kind) for i, kind in enumerate(kinds)]
    return pa.schema([*numbered, *(CHANGE if leaf.has_changes else [])])


def topic_delta(db: Database, leaf: Leaf, after: int, upto: int) -> pa.Table:
    """The events of a topic in `(after, upto]` as a delta."""
    names = leaf.schema.names
    extra = [field.name for field in CHANGE] if leaf.has_changes else []
    users = [name for name in names if name not in (INGESTED_AT, PARTITION, WATERMARK)]
    batches = [b.rows for b in db.log.read([leaf.topic], after=after, upto=upto, columns=users)]
    schema = source_schema(leaf)
    if not batches:
        return weighted(schema.empty_table())
    rows = pa.Table.from_batches(batches)
    if WATERMARK in names:
        marks = marks_of(db, leaf, after, upto).before(rows.column(POSITION).to_numpy())
        rows = rows.append_column(WATERMARK, marks)
    return weighted(renamed(rows.select([*names, *extra]), schema))


def marks_of(db: Database, leaf: Leaf, after: int, upto: int) -> watermarks.History:
    """The watermarks of a stream that matter to a range of its events."""
    with db.catalog.read() as tx:
        return watermarks.history(tx, int(leaf.id[1:]), after, upto)


def moment(tx: Transaction, leaf: Leaf, upto: int) -> int | None:
    """What a clock said at a position, in microseconds since 1970."""
    if leaf.id == CLOCK_ID:
        tick = ticks.last(tx, upto)
        return None if tick is None else tick.at
    return watermarks.watermark(tx, int(leaf.id[1:]), upto)


def weighted(rows: pa.Table, weight: int = 1) -> pa.Table:
    return rows.append_column("__w", pa.repeat(pa.scalar(weight, pa.int64()), rows.num_rows))


def renamed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns by their place, in the names and types of the schema."""
    columns = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(rows.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def write_scan(path: Path, deltas: Mapping[str, pa.Table], schema: pa.Schema) -> None:
    """Leave wide rows for the scan of the first stage."""
    table = wide_table({name: rows for name, rows in deltas.items() if rows.num_rows}, schema)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)


def wide_frame(spark: SparkSession, parts: Iterable[tuple[str, DataFrame]], schema: pa.Schema) -> DataFrame:
    """Wide rows of DataFrames, each for one source."""
    wide: DataFrame | None = None
    kinds = on_spark.struct_type(schema)
    for name, frame in parts:
        part = frame.select(*_wide_columns(name, frame, kinds))
        wide = part if wide is None else wide.unionAll(part)
    return spark.createDataFrame([], kinds) if wide is None else wide


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return spark.createDataFrame(rows, on_spark.struct_type(rows.schema))


def _wide_columns(name: str, frame: DataFrame, kinds: Any) -> Iterable[Any]:
    from pyspark.sql import functions as f

    for field in kinds:
        if field.name == name:
            columns = [f.col(on_spark.quoted(c)).alias(c) for c in frame.columns]
            yield f.struct(*columns).cast(field.dataType).alias(name)
        else:
            yield f.lit(None).cast(field.dataType).alias(field.name)


def topic_frame(spark: SparkSession, db: Database, leaf: Leaf, after: int, upto: int) -> DataFrame:
    """The events of a topic in `(after, upto]` as Spark reads them."""
    from pyspark.sql import functions as f

    frame = on_spark.read_topic(spark, db, leaf.topic, after=after, upto=upto)
    if WATERMARK in leaf.schema.names:
        frame = on_spark.marked(frame, marks_of(db, leaf, after, upto))
    columns = [f.col(on_spark.quoted(name)).alias(f"c{i}") for i, name in enumerate(leaf.schema.names)]
    extra = [f.col(field.name) for field in CHANGE] if leaf.has_changes else []
    return frame.select(*columns, *extra, f.lit(1).cast("bigint").alias("__w"))
