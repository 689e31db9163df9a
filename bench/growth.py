"""Growth: the time of an epoch of 1,000 changes while the state of a join and an aggregate grows.

Beside it, in the same run, what recomputing the same views with plain Spark SQL takes at that size.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import evert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOIN = "SELECT b.id, x, y FROM bids b JOIN auctions a ON b.id = a.id WHERE x + y < 10"
AGGREGATE = "SELECT id, count(*) AS n, sum(y) AS total FROM bids GROUP BY id"
CHANGES = 1_000
CHUNK = 500_000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--millions", type=float, nargs="*", default=[1, 5, 20])
    options.add_argument("--epochs", type=int, default=40)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder, evert.open(Path(folder) / "growth.evert") as db:
        db.stream("auctions", "id BIGINT, x BIGINT")
        db.stream("bids", "id BIGINT, y BIGINT")
        db.view("joined", JOIN)
        db.view("counted", AGGREGATE)
        chance = np.random.default_rng(1)
        stored = 0
        for millions in chosen.millions:
            begun = time.perf_counter()
            stored = fill(db, stored, int(millions * 1e6), chance)
            filled = time.perf_counter() - begun
            times = epochs(db, stored, chosen.epochs, chance)
            spark = tables(db)
            recomputed = recompute(spark)
            correct = check(db, spark)
            size = sum(view.bytes for view in db.status())
            print(
                f"growth  {millions:>4} million rows  median {statistics.median(times):6.0f} ms"
                f"  worst {max(times):6.0f} ms  best {min(times):6.0f} ms  recomputing {recomputed:7.0f} ms"
                f"  state {size / (2 * stored):.0f} bytes a row  filled in {filled:.0f} s"
                f"  {'right' if correct else 'WRONG'}",
                flush=True,
            )
            value = statistics.median(times)
            case = f"epoch at {millions} million rows"
            for system, milliseconds in (("evert", value), ("spark", recomputed)):
                line = {"case": case, "system": system, "value": milliseconds, "unit": "ms"}
                found.append(line | {"correct": correct})
    ours = [case["value"] for case in found if case["system"] == "evert"]
    print(f"growth  from the smallest to the largest state: {ours[-1] / ours[0]:.2f} times")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


def fill(db: evert.Database, stored: int, wanted: int, chance: np.random.Generator) -> int:
    """Bring both streams to a number of rows, half of it each, with keys that are all different."""
    while stored < wanted:
        count = min(CHUNK, (wanted - stored + 1) // 2)
        ids = np.arange(stored // 2, stored // 2 + count)
        db.topic("auctions").append(pa.table({"id": ids, "x": chance.integers(0, 1000, count)}))
        db.topic("bids").append(pa.table({"id": ids, "y": chance.integers(0, 1000, count)}))
        stored += 2 * count
        db.refresh()
    return stored


def epochs(db: evert.Database, stored: int, count: int, chance: np.random.Generator) -> list[float]:
    """Milliseconds of epochs of a thousand changes each, at random keys; the first ones warm up."""
    times: list[float] = []
    for _ in range(count + 10):
        ids = chance.integers(0, stored // 2, CHANGES)
        db.topic("bids").append(pa.table({"id": ids, "y": chance.integers(0, 1000, CHANGES)}))
        db.refresh(on_epoch=lambda done: times.append(done.milliseconds))
    return times[10:]


def tables(db: evert.Database) -> SparkSession:
    """A session that has both streams as tables."""
    from evert.epoch.spark import read_topic, session

    spark = session()
    for topic in ("auctions", "bids"):
        read_topic(spark, db, topic).createOrReplaceTempView(topic)
    return spark


def recompute(spark: SparkSession) -> float:
    """Milliseconds to compute both views with plain Spark SQL over the log."""
    begun = time.perf_counter()
    for query in (JOIN, AGGREGATE):
        spark.sql(query).write.format("noop").mode("overwrite").save()
    return (time.perf_counter() - begun) * 1e3


def check(db: evert.Database, spark: SparkSession) -> bool:
    """Whether the join is what Spark makes of the log, and the aggregate has its groups, rows and total."""
    sums = spark.sql("SELECT count(DISTINCT id), count(*), sum(y) FROM bids").collect()[0]
    kept = db.views["counted"].arrow()
    ours = (kept.num_rows, pc.sum(kept.column("n")).as_py(), pc.sum(kept.column("total")).as_py())
    return tuple(sums) == ours and all(proof.holds for proof in db.prove("joined"))


if __name__ == "__main__":
    main()
