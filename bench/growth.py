"""Growth: the time of an epoch of 1,000 changes at random keys while the state of a view grows.

A join, an aggregate, a rank and a table, each in a database of its own. Beside it, in the same run, what it takes
to recompute the view with plain Spark SQL at that size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.beside import Beside
from bench.figures import Figures
from bench.memory import Watch

import evert
from evert.epoch.spark import latest, read_topic, session

CHANGES = 1_000
CHUNK = 500_000
WARM = 20
RUNS = 3


@dataclass(frozen=True)
class Case:
    """A view, the topics that its state grows with, and the columns that are added up to check it."""

    query: str
    topics: tuple[str, ...]
    sums: tuple[str, ...]


CASES = {
    "join": Case(
        "SELECT b.id, x, y FROM bids b JOIN auctions a ON b.id = a.id WHERE x + y < 10",
        ("auctions", "bids"),
        ("id", "x", "y"),
    ),
    "aggregate": Case(
        "SELECT id, count(*) AS n, sum(y) AS total FROM bids GROUP BY id", ("bids",), ("id", "n", "total")
    ),
    "top": Case(
        "SELECT id, y FROM (SELECT id, y, row_number() OVER (PARTITION BY id ORDER BY y DESC) AS n FROM bids)"
        " WHERE n <= 3",
        ("bids",),
        ("id", "y"),
    ),
    "table": Case("SELECT id, balance FROM accounts WHERE balance >= 0", ("accounts",), ("id", "balance")),
}
"""The last topic of a case is the one that changes."""


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--millions", type=float, nargs="*", default=[1, 10, 50])
    options.add_argument("--epochs", type=int, default=500)
    options.add_argument("--cases", nargs="*", choices=CASES, default=list(CASES))
    chosen = options.parse_args()
    with Figures("growth", chosen) as figures, Beside() as beside:
        for name in chosen.cases:
            grow(figures, beside, name, chosen)


def grow(figures: Figures, beside: Beside, name: str, chosen: argparse.Namespace) -> None:
    """One case through all sizes."""
    case, chance, stored = CASES[name], np.random.default_rng(1), 0
    with tempfile.TemporaryDirectory() as folder, evert.open(Path(folder) / "growth.evert") as db:
        db.stream("auctions", "id BIGINT, x BIGINT")
        db.stream("bids", "id BIGINT, y BIGINT")
        db.table("accounts", "id BIGINT, balance BIGINT", key="id")
        db.view("grown", case.query)
        for millions in chosen.millions:
            with Watch(without=[beside.number]) as memory:
                begun = time.perf_counter()
                stored = fill(db, case, stored, int(millions * 1e6), chance)
                filled = time.perf_counter() - begun
                times = epochs(db, case, stored, chosen.epochs, chance)
            size = sum(view.bytes for view in db.status())
            db.maintain()  # who reads files must not find them compacted meanwhile
            recomputed, sums = beside.do(anew, db.path, case)
            right = sums == kept(db, case)
            note = f"{size / stored:.0f} bytes a row, filled in {filled:.0f} s, {memory}"
            at = f"{name}, {millions:g} million rows"
            figures.add(at, "evert", times, "ms", right, note)
            figures.add(at, "spark, recomputing", recomputed, "ms")
            figures.say(f"{at}: the worst epoch takes {max(times) / np.median(times):.1f} times the median")
    ours = [value for case, value in figures.of("evert").items() if case.startswith(f"{name},")]
    figures.say(f"{name}: from the smallest to the largest state {ours[-1] / ours[0]:.2f} times")


def fill(db: evert.Database, case: Case, stored: int, wanted: int, chance: np.random.Generator) -> int:
    """Bring the topics of a case to a number of rows together, with keys that are all different."""
    share = len(case.topics)
    while stored < wanted:
        count = min(CHUNK, -(-(wanted - stored) // share))
        ids = np.arange(stored // share, stored // share + count)
        for topic in case.topics:
            write(db, topic, ids, chance)
        stored += share * count
        db.refresh(timeout=3600)
    return stored


def epochs(
    db: evert.Database, case: Case, stored: int, count: int, chance: np.random.Generator
) -> list[float]:
    """Milliseconds of epochs of a thousand changes each, at random keys; the first ones warm up."""
    times: list[float] = []
    for _ in range(count + WARM):
        write(db, case.topics[-1], chance.integers(0, stored // len(case.topics), CHANGES), chance)
        db.refresh(on_epoch=lambda done: times.append(done.milliseconds))
    return times[WARM:]


def write(db: evert.Database, topic: str, ids: np.ndarray, chance: np.random.Generator) -> None:
    names = [column.name for column in db.definition(topic).schema.columns]
    rows = pa.table([pa.array(ids), pa.array(chance.integers(0, 1000, len(ids)))], names=names)
    (db.topic(topic).upsert if topic == "accounts" else db.topic(topic).append)(rows)


def anew(path: Path, case: Case) -> tuple[list[float], tuple[int, ...]]:
    """Milliseconds that plain Spark SQL over the log takes for a view, after one run to warm up; how many rows it
    has, and the sum of every column."""
    spark = session()
    with evert.open(path) as db:
        for topic in case.topics:
            rows = read_topic(spark, db, topic)
            rows = latest(rows, db.definition(topic)) if topic == "accounts" else rows
            rows.createOrReplaceTempView(topic)
    taken = []
    for _ in range(RUNS + 1):
        begun = time.perf_counter()
        spark.sql(case.query).write.format("noop").mode("overwrite").save()
        taken.append((time.perf_counter() - begun) * 1e3)
    sums = ", ".join(f"sum({column})" for column in case.sums)
    return taken[1:], tuple(spark.sql(f"SELECT count(*), {sums} FROM ({case.query})").collect()[0])


def kept(db: evert.Database, case: Case) -> tuple[int, ...]:
    """How many rows the view has, and the sum of every column."""
    rows = db.views["grown"].arrow()
    return (rows.num_rows, *(pc.sum(rows.column(column)).as_py() for column in case.sums))


if __name__ == "__main__":
    main()
