"""Spark Structured Streaming as a peer: the same query over the same files, one micro-batch after the other."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from evert.epoch.spark import session

MODES = ("append", "update")


def seconds(
    folder: Path, topics: tuple[str, ...], query: str, *, written: bool, patience: float
) -> float | str:
    """Seconds for all files, a file of each topic in a batch; or why Spark cannot stream the query.

    It is stopped after `patience` seconds, which it then has taken.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import current_timestamp

    why, spark = "", session().newSession()
    for topic in topics:
        path = str(folder / topic)
        files = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
        rows = files.parquet(path).withColumn("_ingested_at", current_timestamp())
        rows.createOrReplaceTempView(topic)
    for mode in MODES:
        with tempfile.TemporaryDirectory() as state:
            try:
                writer = spark.sql(query).writeStream.outputMode(mode)
                writer = writer.option("checkpointLocation", f"{state}/c").format("noop")
                if written:
                    writer = writer.format("parquet").option("path", f"{state}/out")
                begun = time.perf_counter()
                running = writer.trigger(availableNow=True).start()
                if running.awaitTermination(patience):
                    return time.perf_counter() - begun
                running.stop()
                return patience
            except PySparkException as error:
                why = str(error).splitlines()[0]
    return why
