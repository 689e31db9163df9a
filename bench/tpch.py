"""TPC-H: the time of a refresh, in which orders come and others go, beside computing the query anew.

Each query is a view in a database of its own, and then all of them are views of one group in one database, which
share what they read and keep. In a refresh some of the orders, with their items, are deleted and as many new ones
come, in one commit. Beside it, plain Spark computes the query over the rows that there are in the end, as Parquet
files that somebody else would have to keep up to date, and the views must have what it gives. Another process makes
the tables, appends the changes and computes anew: the memory is that of keeping views.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.beside import Beside
from bench.figures import Figures
from bench.memory import Watch
from tests.tpc import source

import evert
from evert.epoch.spark import session
from evert.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

HELD_BACK = 0.12
"""So many of the orders are not there at first: the largest refresh needs a tenth."""
CHUNK = 500_000
WARM_REFRESHES, WARM_PERCENT = 10, 0.1
"""A process that keeps a view has run many epochs before: so many come before those that are measured."""

WARM_QUERIES = 3
SPARK = "spark, recomputing"
TOGETHER = "all in one group"
TABLES, LOADED = "tables", "loaded.evert"
OF_ORDERS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, and the column that has the order."""


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--scale", type=float, default=1)
    options.add_argument("--percent", type=float, nargs="*", default=[0.1, 1, 10])
    options.add_argument("--queries", nargs="*", default=[f"q{n}" for n in range(1, 23)])
    options.add_argument("--runs", type=int, default=3)
    chosen = options.parse_args()
    with Figures("tpch", chosen) as figures, Beside() as beside, tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        every = beside.do(make, folder, chosen.scale)
        queries = {name: every[name] for name in chosen.queries}
        bench = Bench(figures, beside, folder, chosen.percent, chosen.runs)
        for name, query in queries.items():
            bench.case(name, {name: query})
        compare(figures, chosen.percent, queries)
        bench.case(TOGETHER, queries)
        for percent in chosen.percent:
            part = figures.of("evert")[sized(TOGETHER, percent)] / figures.of(SPARK)[TOGETHER]
            figures.say(f"{sized(TOGETHER, percent)}: a refresh takes {part:.3f} of recomputing")


@dataclass(frozen=True)
class Bench:
    """What all cases have in common."""

    figures: Figures
    beside: Beside
    folder: Path
    percents: Sequence[float]
    runs: int

    def case(self, name: str, queries: Mapping[str, str]) -> None:
        """Some queries as views of a database of their own: its refreshes, and how long each query takes anew."""
        path = self.folder / f"{name}.evert"
        shutil.copytree(self.folder / LOADED, path)
        with evert.open(path) as db:
            with Watch(without=[self.beside.number]) as memory:
                begun = time.perf_counter()
                for view, query in queries.items():
                    db.view(view, query)
                db.refresh(timeout=7200)
                note = f"built in {time.perf_counter() - begun:.0f} s"
                self.refresh(db, WARM_PERCENT, WARM_REFRESHES)
                kept = {percent: self.refresh(db, percent, self.runs) for percent in self.percents}
            found = {
                view: self.beside.do(anew, path, query, db.views[view].arrow(), self.runs)
                for view, query in queries.items()
            }
        shutil.rmtree(path)
        right = all(same for _, same in found.values())
        total = [sum(runs) for runs in zip(*(times for times, _ in found.values()), strict=True)]
        for percent, times in kept.items():
            self.figures.add(sized(name, percent), "evert", times, "ms", right, f"{note}, {memory}")
        self.figures.add(name, SPARK, total, "ms")

    def refresh(self, db: evert.Database, percent: float, runs: int) -> list[float]:
        """Milliseconds of the epochs of some refreshes, after one to warm up."""
        found = []
        for _ in range(runs + 1):
            self.beside.do(exchange, db.path, percent / 100)
            spent: list[float] = []
            db.refresh(timeout=7200, on_epoch=lambda done, spent=spent: spent.append(done.milliseconds))
            found.append(sum(spent))
        return found[1:]


def compare(figures: Figures, percents: Sequence[float], names: Collection[str]) -> None:
    """What part of recomputing a refresh takes, over some cases."""
    ours, theirs = figures.of("evert"), figures.of(SPARK)
    for percent in percents:
        parts = [ours[sized(name, percent)] / theirs[name] for name in names]
        figures.say(
            f"{percent:g} % of orders: a refresh takes {statistics.median(parts):.3f} of recomputing on the"
            f" median query, {min(parts):.3f} on the best, {max(parts):.3f} on the worst"
        )


def sized(name: str, percent: float) -> str:
    return f"{name}, {percent:g} % of orders"


def make(folder: Path, scale: float) -> Mapping[str, str]:
    """The tables as files, those of orders by their key, a database with their first rows, and the queries."""
    data = source.make("tpch", scale, {})
    (folder / TABLES).mkdir()
    for name, table in data.tables.items():
        ordered = table.sort_by(OF_ORDERS[name]) if name in OF_ORDERS else table
        pq.write_table(ordered, folder / TABLES / f"{name}.parquet", row_group_size=CHUNK)
        if name in OF_ORDERS:
            with pa.ipc.new_file(folder / TABLES / f"{name}.arrow", ordered.schema) as file:
                file.write_table(ordered)
    with evert.open(folder / LOADED) as db:
        load(db, folder / TABLES, Orders(folder / TABLES))
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


@cache
def orders_of(path: Path) -> Orders:
    """The orders that a database has and those that it has not."""
    return Orders(path.parent / TABLES)


def exchange(path: Path, share: float) -> None:
    """Delete some orders of a database and bring in as many, in one commit."""
    orders = orders_of(path)
    come, gone = orders.exchange(share)
    with evert.open(path) as db, db.transaction() as tx:
        for name, key in source.TPCH_KEYS.items():
            if name in OF_ORDERS:
                tx.delete(name, orders.rows(name, gone).select(key.split()))
                tx.upsert(name, orders.rows(name, come))


def anew(path: Path, query: str, kept: pa.Table, runs: int) -> tuple[list[float], bool]:
    """Milliseconds that a query takes over the rows of a database as files, after some runs to warm up; and
    whether it gives the rows that were kept. There are no floating point numbers in TPC-H."""
    orders, spark = orders_of(path), session().newSession()
    for name in source.TPCH_KEYS:
        spark.read.parquet(str(orders.file(name))).createOrReplaceTempView(name)
    times = []
    for _ in range(runs + WARM_QUERIES):
        begun = time.perf_counter()
        spark.sql(query).write.format("noop").mode("overwrite").save()
        times.append((time.perf_counter() - begun) * 1e3)
    mine, theirs = (
        Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))
        for table in (kept, spark.sql(query).toArrow())
    )
    return times[WARM_QUERIES:], mine == theirs


if __name__ == "__main__":
    main()
