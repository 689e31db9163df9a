"""TPC-H: the time of a refresh, in which orders come and others go, beside computing the query anew.

Each query is a view in a database of its own, and then all of them are views of one group in one database, which
share what they read and keep. In a refresh some of the orders, with their items, are deleted and as many new ones
come, in one commit. Beside it, plain Spark computes the query over the rows that there are in the end, as Parquet
files that somebody else would have to keep up to date, and the views must have what it gives.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures import Figures
from bench.memory import Watch
from tests.tpc import source

import evert
from evert.epoch.spark import session
from evert.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

HELD_BACK = 0.12
"""So many of the orders are not there at first: the largest refresh needs a tenth."""
CHUNK = 500_000
WARM_REFRESHES, WARM_PERCENT = 10, 0.1
"""A process that keeps a view has run many epochs before: so many come before those that are measured."""

WARM_QUERIES = 3
SPARK = "spark, recomputing"
TOGETHER = "all in one group"
OF_ORDERS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, and the column that has the order."""


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--scale", type=float, default=1)
    options.add_argument("--percent", type=float, nargs="*", default=[0.1, 1, 10])
    options.add_argument("--queries", nargs="*", default=[f"q{n}" for n in range(1, 23)])
    options.add_argument("--runs", type=int, default=3)
    chosen = options.parse_args()
    with Figures("tpch", chosen) as figures, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        every = write(folder / "tables", chosen.scale)
        queries = {name: every[name] for name in chosen.queries}
        with evert.open(folder / "loaded.evert") as db:
            load(db, folder / "tables", Orders(folder / "tables"))
        for name, query in queries.items():
            with copied(folder) as (db, there):
                alone(figures, db, there, name, query, chosen)
        compare(figures, chosen.percent, queries)
        with copied(folder) as (db, there):
            together(figures, db, there, queries, chosen)


@contextmanager
def copied(folder: Path) -> Iterator[tuple[evert.Database, Orders]]:
    """A database of its own with the loaded tables."""
    place = folder / "copy.evert"
    shutil.copytree(folder / "loaded.evert", place)
    try:
        with evert.open(place) as db:
            yield db, Orders(folder / "tables")
    finally:
        shutil.rmtree(place)


def alone(
    figures: Figures, db: evert.Database, orders: Orders, name: str, query: str, chosen: argparse.Namespace
) -> None:
    """A query by itself: its refreshes, and how long it takes anew."""
    with Watch() as memory:
        begun = time.perf_counter()
        db.view(name, query)
        db.refresh(timeout=7200)
        built = time.perf_counter() - begun
        kept = refreshes(db, orders, chosen)
    spark = from_files(orders)
    anew = recompute(spark, query, chosen.runs)
    right = same(db, name, spark, query)
    note = f"built in {built:.0f} s, {memory}"
    for percent, found in kept.items():
        figures.add(case(name, percent), "evert", found, "ms", right, note)
    figures.add(name, SPARK, anew, "ms")


def together(
    figures: Figures,
    db: evert.Database,
    orders: Orders,
    queries: Mapping[str, str],
    chosen: argparse.Namespace,
) -> None:
    """All queries in one group: an epoch for all of them."""
    with Watch() as memory:
        begun = time.perf_counter()
        for name, query in queries.items():
            db.view(name, query)
        db.refresh(timeout=7200)
        note = f"built in {time.perf_counter() - begun:.0f} s"
        kept = refreshes(db, orders, chosen)
    spark = from_files(orders)
    right = all(same(db, name, spark, query) for name, query in queries.items())
    note += f", {memory}"
    for percent, found in kept.items():
        figures.add(case(TOGETHER, percent), "evert", found, "ms", right, note)
        anew = sum(figures.of(SPARK)[name] for name in queries)
        part = statistics.median(found) / anew
        figures.say(f"{case(TOGETHER, percent)}: {part:.3f} of the {anew:,.0f} ms that all take anew")


def compare(figures: Figures, percents: Sequence[float], queries: Mapping[str, str]) -> None:
    ours, anew = figures.of("evert"), figures.of(SPARK)
    for percent in percents:
        parts = [ours[case(name, percent)] / anew[name] for name in queries]
        figures.say(
            f"{percent:g} % of orders: a refresh takes {statistics.median(parts):.3f} of recomputing on the"
            f" median query, {min(parts):.3f} on the best, {max(parts):.3f} on the worst"
        )


def case(name: str, percent: float) -> str:
    return f"{name}, {percent:g} % of orders"


def write(folder: Path, scale: float) -> Mapping[str, str]:
    """The tables as Parquet, those of orders sorted by their key; the queries.

    Another process makes them, whose memory is gone with it.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as maker:
        return maker.submit(made, folder, scale).result()


def made(folder: Path, scale: float) -> Mapping[str, str]:
    data = source.make("tpch", scale, {})
    folder.mkdir()
    for name, table in data.tables.items():
        ordered = table.sort_by(OF_ORDERS[name]) if name in OF_ORDERS else table
        pq.write_table(ordered, folder / f"{name}.parquet", row_group_size=CHUNK)
        if name in OF_ORDERS:
            with pa.ipc.new_file(folder / f"{name}.arrow", ordered.schema) as file:
                file.write_table(ordered)
    return data.queries


class Orders:
    """The orders and their items, and which of them are there: at first always the same ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._chance = np.random.default_rng(1)
        self.tables = {
            name: pa.ipc.open_file(pa.memory_map(str(folder / f"{name}.arrow"))).read_all()
            for name in OF_ORDERS
        }
        keys = self._chance.permutation(self.tables["orders"].column("o_orderkey").to_numpy())
        held = int(len(keys) * HELD_BACK)
        self._away, self.there = keys[:held], keys[held:]

    def rows(self, name: str, orders: np.ndarray) -> pa.Table:
        """The rows of some orders."""
        table = self.tables[name]
        keys = table.column(OF_ORDERS[name]).to_numpy()
        asked = np.zeros(keys[-1] + 1, np.bool_)
        asked[orders] = True
        return table.filter(pa.array(asked[keys]))

    def file(self, name: str) -> Path:
        """A file with the rows of a table that there are; every database ends with the same ones."""
        if name not in OF_ORDERS:
            return self.folder / f"{name}.parquet"
        path = self.folder / f"{name} {crc32(np.sort(self.there))}.parquet"
        if not path.exists():
            pq.write_table(self.rows(name, self.there), path, row_group_size=CHUNK)
        return path

    def exchange(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Some orders that come, and as many that go."""
        count = int((len(self.there) + len(self._away)) * share)
        gone, stay = np.split(self._chance.permutation(self.there), [count])
        come, rest = np.split(self._away, [count])
        self.there, self._away = np.concatenate([stay, come]), np.concatenate([rest, gone])
        return come, gone


def load(db: evert.Database, folder: Path, orders: Orders) -> None:
    """The tables with their first rows."""
    for name, key in source.TPCH_KEYS.items():
        rows = (
            orders.rows(name, orders.there)
            if name in OF_ORDERS
            else pq.read_table(folder / f"{name}.parquet")
        )
        table = db.table(name, Schema.from_arrow(rows.schema).ddl(), key=key.split())
        for start in range(0, rows.num_rows, CHUNK):
            table.upsert(rows.slice(start, CHUNK))
    db.maintain()


def refreshes(db: evert.Database, orders: Orders, chosen: argparse.Namespace) -> dict[float, list[float]]:
    """Milliseconds of the refreshes of each size, in a process that is warm."""
    refresh(db, orders, WARM_PERCENT, WARM_REFRESHES)
    return {percent: refresh(db, orders, percent, chosen.runs) for percent in chosen.percent}


def refresh(db: evert.Database, orders: Orders, percent: float, runs: int) -> list[float]:
    """Milliseconds of the epochs of some refreshes, after one to warm up."""
    found = []
    for _ in range(runs + 1):
        come, gone = orders.exchange(percent / 100)
        with db.transaction() as tx:
            for name, key in source.TPCH_KEYS.items():
                if name in OF_ORDERS:
                    tx.delete(name, orders.rows(name, gone).select(key.split()))
                    tx.upsert(name, orders.rows(name, come))
        spent: list[float] = []
        db.refresh(timeout=7200, on_epoch=lambda done, spent=spent: spent.append(done.milliseconds))
        found.append(sum(spent))
    return found[1:]


def from_files(orders: Orders) -> SparkSession:
    """A session that has the tables as files, with the orders that there are."""
    spark = session().newSession()
    for name in source.TPCH_KEYS:
        spark.read.parquet(str(orders.file(name))).createOrReplaceTempView(name)
    return spark


def same(db: evert.Database, name: str, spark: SparkSession, query: str) -> bool:
    """Whether a view has the rows that Spark gives; there are no floating point numbers in TPC-H."""
    kept, anew = db.views[name].arrow(), spark.sql(query).toArrow()
    rows = [
        Counter(zip(*(column.to_pylist() for column in table.columns), strict=True)) for table in (kept, anew)
    ]
    return rows[0] == rows[1]


def recompute(spark: SparkSession, query: str, runs: int) -> list[float]:
    """Milliseconds of a query, after some runs to warm up."""
    times = []
    for _ in range(runs + WARM_QUERIES):
        begun = time.perf_counter()
        spark.sql(query).write.format("noop").mode("overwrite").save()
        times.append((time.perf_counter() - begun) * 1e3)
    return times[WARM_QUERIES:]


if __name__ == "__main__":
    main()
