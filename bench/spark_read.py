"""How fast Spark reads a topic: every column of every event, down to the last value."""

from __future__ import annotations

import time
from typing import Any

from bench.evert_store import TOPIC, Evert
from bench.report import READ_SPARK, Report
from bench.stores import Expected

from evert.epoch.spark import read_topic, session
from evert.errors import EvertError


def measure_spark(report: Report, store: Evert, expected: Expected, repeat: int) -> None:
    """The second and later runs of one session count: the first one pays for the start of the JVM's code."""
    try:
        spark = session()
    except EvertError as missing:
        report.skip(READ_SPARK, store.name, f"Spark cannot be had: {missing}")
        return
    try:
        runs = [_read(spark, store, expected) for _ in range(1 + repeat)]
    finally:
        spark.stop()
    report.add(READ_SPARK, store.name, "events/s", runs[1:])


def _read(spark: Any, store: Evert, expected: Expected) -> tuple[float, bool]:
    from pyspark.sql import functions as f

    with store.open() as db:
        begin = time.perf_counter()
        frame = read_topic(spark, db, TOPIC)
        row = frame.agg(
            f.count("*").alias("events"),
            f.sum("price").alias("price"),
            *(f.max(column) for column in ("auction", "bidder", "channel", "at")),
        ).first()
        taken = time.perf_counter() - begin
    return row["events"] / taken, (row["events"], row["price"]) == (expected.events, expected.price)
