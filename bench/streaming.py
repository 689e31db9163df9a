"""Spark Structured Streaming as a peer: the same query over the same files, one micro-batch after the other."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = ("append", "update")


def seconds(
    spark: SparkSession, folder: Path, topics: tuple[str, ...], query: str, *, written: bool
) -> float | str:
    """Seconds for all files, a file of each topic in a batch; or why Spark cannot stream the query."""
    from pyspark.errors import PySparkException

    why = ""
    for topic in topics:
        path = str(folder / topic)
        files = spark.readStream.schema(spark.read.parquet(path).schema).option("maxFilesPerTrigger", 1)
        files.parquet(path).createOrReplaceTempView(topic)
    for mode in MODES:
        with tempfile.TemporaryDirectory() as state:
            writer = spark.sql(query).writeStream.outputMode(mode).option("checkpointLocation", f"{state}/c")
            writer = (
                writer.format("noop")
                if not written
                else writer.format("parquet").option("path", f"{state}/out")
            )
            begun = time.perf_counter()
            try:
                running = writer.trigger(availableNow=True).start()
                running.awaitTermination()
                return time.perf_counter() - begun
            except PySparkException as error:
                why = str(error).splitlines()[0]
    return why
