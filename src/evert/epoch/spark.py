"""Spark: the session, and topics of the log as DataFrames."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.config import Config
from evert.delta.versions import VALID_FROM, VALID_TO, VERSION
from evert.epoch.java import find_java
from evert.errors import NotFound
from evert.log.segments import Segment, segments
from evert.log.tail import stamped_schema
from evert.log.topic import DELETED, INGESTED_AT, OFFSET, PARTITION, POSITION, WATERMARK, Topic
from evert.log.watermarks import History
from evert.plan.catalyst import Catalyst

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.catalog import Transaction
    from evert.database import Database

TAIL_ROWS = 20_000
"""A longer tail is sealed before Spark reads it; a shorter one travels as Arrow."""

_LOCAL = {"spark.driver.host": "127.0.0.1"}
_SETTINGS = {
    "spark.driver.memory": "2g",
    # What an epoch leaves behind in the JVM is garbage soon. A collector that does not work beside the tasks takes
    # no core from them, and a small room for what is new keeps the heap small.
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -XX:MaxNewSize=256m",
    "spark.buffer.pageSize": "4m",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.timeType.enabled": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.ui.enabled": "false",
    # Arrow's own allocator asks for huge pages, which a kernel may have to make room for first. And what a worker
    # has used once, it will need again: to give it back and take it anew costs more than the work it is for.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.NUMPY_MADVISE_HUGEPAGE": "0",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(64 << 20),
    "spark.ui.showConsoleProgress": "false",
}


def session(master: str = Config.spark_master, **settings: str) -> SparkSession:
    """A session of the process's Spark, which is started if there is none: quiet, and in UTC.

    A Spark that the program has started itself is used as it is, through a session beside the program's own.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise NotFound("views need PySpark", hint="pip install 'evert[spark]'") from error
    there = Catalyst.running()
    if there is not None:
        own = beside(there)
        for name, value in settings.items():
            own.conf.set(name, value)
        return own
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("evert").master(master)
    here = _LOCAL if master.startswith("local") else {}
    for name, value in {**_SETTINGS, **here, **settings}.items():
        builder = builder.config(name, value)
    with _quiet_start():
        return builder.getOrCreate()


def beside(spark: SparkSession) -> SparkSession:
    """A session with tables of its own in the same Spark, and the settings that views are computed with."""
    own = spark.newSession()
    for name, value in _SETTINGS.items():
        if name.startswith("spark.sql."):
            own.conf.set(name, value)
    return own


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Give the JVM a file as its standard error, so that its chatter stays off the user's terminal.

    What goes wrong in a query comes back as an exception; what goes wrong at the start is shown.
    """
    sys.stderr.flush()
    with tempfile.TemporaryFile() as chatter:
        terminal = os.dup(2)
        os.dup2(chatter.fileno(), 2)
        try:
            yield
        except Exception as error:
            chatter.seek(0)
            error.add_note(chatter.read().decode(errors="replace"))
            raise
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def struct_type(schema: pa.Schema) -> Any:
    """An Arrow schema as Spark's."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def carried(schema: pa.Schema) -> pa.Schema:
    """The same columns in the Arrow types that Spark itself uses for them, all nullable."""
    from pyspark.sql.pandas.types import to_arrow_schema

    carried = to_arrow_schema(struct_type(schema), timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in carried])


def execute(
    spark: SparkSession, plan: Any, prepared: Callable[[Any], Any], properties: dict[str, str], *, column: int
) -> list[str]:
    """Run a physical plan once more, with local properties for its tasks; one column of its rows, as text."""
    for name, value in properties.items():
        spark.sparkContext.setLocalProperty(name, value)
    try:
        return Catalyst.executed(plan, prepared, column=column)
    except Catalyst.job_errors() as error:
        raise failure(error) from error


class JobFailed(Exception):
    """A Spark job failed; the message is the innermost reason."""


class Damaged(JobFailed):
    """A job found a run that is not what was written."""


def failure(error: Any) -> JobFailed:
    """What went wrong, in one sentence."""
    text = Catalyst.reason(error)
    found = re.search(r"^(?:[\w.]*\.)?(DataError|Corrupt): (.*)$", text, re.MULTILINE)
    if found is None:
        return JobFailed(text)
    return (Damaged if found.group(1) == "Corrupt" else JobFailed)(found.group(2))


def read_topic(
    spark: SparkSession, db: Database, name: str, *, after: int = 0, upto: int | None = None
) -> DataFrame:
    """The rows of a topic in `(after, upto]`, with the system columns; segments are read by Spark itself."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    topic = db.definition(name)
    end = db.position if upto is None else upto
    seal_long_tail(db, topic, end)
    with db.catalog.read() as tx:
        files = segments(tx, topic, after=after, upto=end)
        versions = {s.schema: db.log.registry.at_version(tx, topic, s.schema) for s in files}
        missing = gaps(tx, topic, files, after, end)
    parts = []
    ordered = sorted(files, key=lambda s: (s.schema, s.stamped))
    for (version, stamped), group in groupby(ordered, key=lambda s: (s.schema, s.stamped)):
        parts.append(_from_segments(spark, db, topic, versions[version], list(group), stamped))
    schema = from_arrow_schema(topic.readable(None), prefer_timestamp_ntz=True)
    tail = _tail(db, topic, missing)
    if tail.num_rows or not parts:
        parts.append(spark.createDataFrame(tail if tail.num_rows else [], schema))
    frame = parts[0]
    for part in parts[1:]:
        frame = frame.unionByName(part)
    return frame.where((f.col(POSITION) > after) & (f.col(POSITION) <= end))


def marked(frame: DataFrame, marks: History) -> DataFrame:
    """The rows with the watermark from before their commit."""
    from pyspark.sql.types import StructType, TimestampType

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            place = batch.schema.get_field_index(POSITION)
            yield batch.append_column(WATERMARK, marks.before(batch.column(place).to_numpy()))

    schema = StructType([*frame.schema.fields]).add(WATERMARK, TimestampType())
    return frame.mapInArrow(work, schema)


def latest(frame: DataFrame, topic: Topic) -> DataFrame:
    """A table's present rows, from its changes."""
    from pyspark.sql import functions as f

    names = [*topic.schema.names, INGESTED_AT]
    values = f.struct(*(f.col(quoted(name)) for name in names), f.col(DELETED))
    order = f.struct(f.col(POSITION), f.col(OFFSET))
    last = frame.groupBy(*(quoted(name) for name in topic.key)).agg(f.max_by(values, order).alias("row"))
    return last.where(~f.col(f"row.{DELETED}")).select(*(f.col(f"row.{quoted(name)}") for name in names))


def versions(frame: DataFrame, topic: Topic, taken: Sequence[str]) -> DataFrame:
    """The versions of a table's rows, from its changes; `taken` are the columns of a change as a view sees it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    begin = f.col(INGESTED_AT)
    if (time := topic.options.event_time) is not None:
        kind = frame.schema[time].dataType
        begin = f.coalesce(f.col(quoted(time)), begin.cast(kind))
    order = Window.partitionBy(*(quoted(name) for name in topic.key)).orderBy(begin, POSITION, OFFSET)
    number = f.col(OFFSET) * topic.partitions + f.col(PARTITION)
    made = [number.alias(VERSION), begin.alias(VALID_FROM), f.lead(begin).over(order).alias(VALID_TO)]
    columns = [f.col(quoted(name)) for name in taken[: taken.index(INGESTED_AT)]]
    all_of_them = frame.select(*columns, DELETED, *made)
    there = f.isnull(VALID_TO) | (f.col(VALID_FROM) < f.col(VALID_TO))
    return all_of_them.where(~f.col(DELETED) & there).drop(DELETED)


def seal_long_tail(db: Database, topic: Topic, upto: int) -> None:
    """Many rows of the tail go into a segment before they are read."""
    with db.catalog.read() as tx:
        sql = "SELECT coalesce(sum(rows), 0) FROM tail WHERE topic = ? AND position <= ?"
        (rows,) = tx.one(sql, topic.id, upto) or (0,)
    if rows > TAIL_ROWS:
        db.log.keeper.seal(topic.name, upto)


def gaps(tx: Transaction, topic: Topic, files: list[Segment], after: int, upto: int) -> list[tuple[int, int]]:
    """The ranges beside the segments in which the tail has rows; in others compaction may have left none."""
    found = []
    start = after
    for first, last in [*((s.first, s.last) for s in files), (upto + 1, upto + 1)]:
        sql = "SELECT 1 FROM tail WHERE topic = ? AND position > ? AND position < ? LIMIT 1"
        if start < first - 1 and tx.one(sql, topic.id, start, first):
            found.append((start, first - 1))
        start = max(start, last)
    return found


def _tail(db: Database, topic: Topic, missing: list[tuple[int, int]]) -> pa.Table:
    """What is not in the segments, though it may be sealed by now."""
    batches = [b.rows for after, upto in missing for b in db.log.read([topic.name], after=after, upto=upto)]
    return pa.Table.from_batches(batches, topic.readable(None))


def _from_segments(
    spark: SparkSession, db: Database, topic: Topic, written: Topic, files: list[Segment], stamped: bool
) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    stored = from_arrow_schema(
        stamped_schema(written) if stamped else written.stored, prefer_timestamp_ntz=True
    )
    frame = spark.read.schema(stored).parquet(*(str(db.log.files.path(s.file).resolve()) for s in files))
    if not stamped:
        place = "_metadata.file_name"
        frame = frame.select("*", f.col(place).alias("__file"), f.col("_metadata.row_index").alias("__row"))
        by_file = {Path(s.file).name: s for s in files}
        frame = frame.withColumn(POSITION, _by_file({name: s.first for name, s in by_file.items()}))
        at = _by_file({name: s.first_at for name, s in by_file.items()})
        frame = frame.withColumn(INGESTED_AT, f.timestamp_micros(at))
        if topic.partitions == 1:
            first = _by_file({name: s.spans[0][1] for name, s in by_file.items()})
            frame = frame.withColumn(OFFSET, first + f.col("__row"))
        else:
            starts = {f"{name}/{p}": first for name, s in by_file.items() for p, first, _ in s.spans}
            key = f.concat_ws("/", f.col("__file"), f.col(PARTITION))
            number = f.row_number().over(Window.partitionBy("__file", PARTITION).orderBy("__row"))
            frame = frame.withColumn(OFFSET, _by_file(starts, key) + number - 1)
    if topic.partitions == 1:
        frame = frame.withColumn(PARTITION, f.lit(0))
    users = []
    for column in from_arrow_schema(topic.schema.arrow, prefer_timestamp_ntz=True):
        there = column.name in written.schema.names
        source = f.col(quoted(column.name)) if there else f.lit(None)
        users.append(source.cast(column.dataType).alias(column.name))
    return frame.select(*users, *(f.col(field.name) for field in topic.system_fields))


def _by_file(values: dict[str, int], key: Any = None) -> Any:
    from pyspark.sql import functions as f

    pairs = [f.lit(x) for name, value in values.items() for x in (name, value)]
    return f.create_map(*pairs)[key if key is not None else f.col("__file")].cast("bigint")


def quoted(name: str) -> str:
    """A name as Spark SQL wants it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"
