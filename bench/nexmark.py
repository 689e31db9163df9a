"""Nexmark: events a second through each query's view, beside plain Spark computing the same from the same log.

The events lie in the log before the clock starts, and each view is built twice: the first time warms up. Epochs are
of the size that is asked for, and each is committed durably. What a view has in the end is compared with what Spark
SQL makes of the whole log.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import evert
from evert.epoch import schedule
from evert.testing import nexmark
from memory import Watch

STATEFUL = [f"q{n}" for n in (4, 5, 6, 7, 8, 9, 11, 15, 16, 17, 18, 19, 20)]
STATELESS = [f"q{n}" for n in (0, 1, 2, 10, 14, 21, 22)]
CHUNK = 500_000


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--epoch", type=int, nargs="*", default=[500_000])
    options.add_argument("--queries", nargs="*", default=STATEFUL + STATELESS)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, evert.open(Path(folder) / "nexmark.evert") as db:
        fill(db, chosen.events)
        for name in chosen.queries:
            plain = batch(db, name, chosen.runs)
            found.append(line(name, "spark batch", chosen.events, plain, None))
            for epoch in chosen.epoch:
                schedule.MOST_EVENTS = epoch
                with Watch() as memory:
                    times = [build(db, name) for _ in range(chosen.runs + 1)][1:]
                right = all(proof.holds for proof in db.prove(name))
                db.drop(name)
                found.append(line(name, f"evert, {epoch:,} an epoch", chosen.events, times, right))
                print(f"{'':14} peak of anonymous memory {memory.peak / 2**30:.1f} GB", flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


def fill(db: evert.Database, events: int) -> None:
    """The log of so many events, a commit for each topic and chunk."""
    for name, schema in nexmark.SCHEMAS.items():
        db.stream(name, schema)
    for first in range(0, events, CHUNK):
        for name, rows in nexmark.events(first, min(CHUNK, events - first)).tables().items():
            db.topic(name).append(rows)


def build(db: evert.Database, name: str) -> float:
    """Seconds from the log to the view."""
    if name in db.views:
        db.drop(name)
    db.view(name, nexmark.QUERIES[name].sql)
    begun = time.perf_counter()
    db.refresh(timeout=3600)
    return time.perf_counter() - begun


def batch(db: evert.Database, name: str, runs: int) -> list[float]:
    """Seconds that plain Spark takes for the query over the whole log, its rows thrown away."""
    from evert.epoch.spark import read_topic, session

    spark = session()
    for topic in nexmark.SCHEMAS:
        read_topic(spark, db, topic).createOrReplaceTempView(topic)
    times = []
    for _ in range(runs + 1):
        begun = time.perf_counter()
        spark.sql(nexmark.QUERIES[name].sql).write.format("noop").mode("overwrite").save()
        times.append(time.perf_counter() - begun)
    return times[1:]


def line(name: str, system: str, events: int, times: list[float], right: bool | None) -> dict[str, Any]:
    """One figure, printed."""
    rate = events / statistics.median(times)
    word = "" if right is None else "  right" if right else "  WRONG"
    print(f"nexmark  {name:<4} {system:<26} {rate / 1e3:8,.0f} thousand events/s{word}", flush=True)
    return {"case": name, "system": system, "value": rate, "unit": "events/s", "correct": right}


if __name__ == "__main__":
    main()
