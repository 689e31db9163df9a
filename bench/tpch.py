"""TPC-H: the time of a refresh, in which orders come and others go, beside computing the query anew.

Every query is a view in a group of its own, so that its epochs are timed apart. In a refresh some of the orders,
with their items, are deleted and as many new ones come, in one commit. Plain Spark computes the queries over the
tables as Parquet files, which have as many rows as the generator makes; a few more than are in the log's tables.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures import Figures
from bench.memory import Watch
from tests.tpc import source

import evert
from evert.epoch.epoch import EpochDone
from evert.epoch.spark import session
from evert.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HELD_BACK = 0.12
"""So many of the orders are not there at first: the largest refresh needs a tenth."""
CHUNK = 500_000
OF_ORDERS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
"""The tables that change, and the column that has the order."""


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--scale", type=float, default=1)
    options.add_argument("--percent", type=float, nargs="*", default=[0.1, 1, 10])
    options.add_argument("--queries", nargs="*", default=[f"q{n}" for n in range(1, 23)])
    options.add_argument("--runs", type=int, default=3)
    chosen = options.parse_args()
    with Figures("tpch", chosen) as figures, tempfile.TemporaryDirectory() as folder:
        queries = write(Path(folder) / "tables", chosen.scale)
        orders = Orders(Path(folder) / "tables")
        with evert.open(Path(folder) / "tpch.evert") as db:
            load(db, Path(folder) / "tables", orders)
            for name in chosen.queries:
                db.view(name, queries[name], group=name)
            begun = time.perf_counter()
            with Watch() as memory:
                db.refresh(timeout=7200)
                figures.say(f"{len(chosen.queries)} views built in {time.perf_counter() - begun:.0f} s")
                kept = {percent: refresh(db, orders, percent, chosen.runs) for percent in chosen.percent}
            figures.say(f"{memory.peak / 1e9:.1f} GB of anonymous memory until here")
            anew = recompute(
                Path(folder) / "tables", {name: queries[name] for name in chosen.queries}, chosen.runs
            )
            for name in chosen.queries:
                right = all(proof.holds for proof in db.prove(name))
                for percent, times in kept.items():
                    figures.add(f"{name}, {percent:g} % of orders", "evert", times[name], "ms", right)
                    figures.add(f"{name}, {percent:g} % of orders", "spark, recomputing", anew[name], "ms")
        for percent, times in kept.items():
            parts = [
                statistics.median(times[name]) / statistics.median(anew[name]) for name in chosen.queries
            ]
            figures.say(
                f"{percent:g} % of orders: a refresh takes {statistics.median(parts):.3f} of recomputing on the"
                f" median query, {max(parts):.3f} on the worst"
            )


def write(folder: Path, scale: float) -> Mapping[str, str]:
    """The tables as Parquet, those of orders sorted by their key; the queries."""
    data = source.make("tpch", scale, {})
    folder.mkdir()
    for name, table in data.tables.items():
        ordered = table.sort_by(OF_ORDERS[name]) if name in OF_ORDERS else table
        pq.write_table(ordered, folder / f"{name}.parquet", row_group_size=CHUNK)
    return data.queries


class Orders:
    """The orders and their items, and which of them are there."""

    def __init__(self, folder: Path) -> None:
        self._chance = np.random.default_rng(1)
        self.tables = {name: pq.read_table(folder / f"{name}.parquet") for name in OF_ORDERS}
        keys = self._chance.permutation(self.tables["orders"].column("o_orderkey").to_numpy())
        held = int(len(keys) * HELD_BACK)
        self._away, self.there = keys[:held], keys[held:]

    def rows(self, name: str, orders: np.ndarray) -> pa.Table:
        """The rows of some orders."""
        table = self.tables[name]
        return table.filter(pa.array(np.isin(table.column(OF_ORDERS[name]).to_numpy(), orders)))

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


def refresh(db: evert.Database, orders: Orders, percent: float, runs: int) -> dict[str, list[float]]:
    """Milliseconds of each view's epochs in some refreshes, after one to warm up."""
    found: dict[str, list[float]] = {}
    for turn in range(runs + 1):
        come, gone = orders.exchange(percent / 100)
        with db.transaction() as tx:
            for name, key in source.TPCH_KEYS.items():
                if name in OF_ORDERS:
                    tx.delete(name, orders.rows(name, gone).select(key.split()))
                    tx.upsert(name, orders.rows(name, come))
        spent: dict[str, float] = {}

        def seen(done: EpochDone, spent: dict[str, float] = spent) -> None:
            spent[done.group] = spent.get(done.group, 0.0) + done.milliseconds

        db.refresh(timeout=7200, on_epoch=seen)
        for group, value in spent.items() if turn else ():
            found.setdefault(group, []).append(value)
    return found


def recompute(folder: Path, queries: Mapping[str, str], runs: int) -> Mapping[str, Sequence[float]]:
    """Milliseconds of each query over the files, after a run to warm up."""
    spark = session().newSession()
    for name in source.TPCH_KEYS:
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(name)
    found = {}
    for name, query in queries.items():
        times = []
        for _ in range(runs + 1):
            begun = time.perf_counter()
            spark.sql(query).write.format("noop").mode("overwrite").save()
            times.append((time.perf_counter() - begun) * 1e3)
        found[name] = times[1:]
    return found


if __name__ == "__main__":
    main()
