"""Policies: the time of an epoch that keeps a view, and of one that recomputes it, by how much has changed.

Each view is there twice over the same tables, once as it is kept by default and once with `refresh="full"`; both
are brought up to date by the same changes, one after the other.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures import Figures

import evert
from evert.epoch.epoch import EpochDone

VIEWS = {
    "aggregate": "SELECT account, count(*) AS n, sum(amount) AS total FROM orders GROUP BY account",
    "join": "SELECT o.id, o.amount, a.region FROM orders o JOIN accounts a ON o.account = a.id",
    "left join": "SELECT a.id, o.id AS bought FROM accounts a LEFT JOIN orders o ON o.account = a.id",
    "top": "SELECT * FROM (SELECT id, account, row_number() OVER (PARTITION BY account ORDER BY amount DESC) AS n"
    " FROM orders) WHERE n <= 3",
    "window": "SELECT id, sum(amount) OVER (PARTITION BY account) AS total FROM orders",
    "median": "SELECT account, median(amount) AS middle FROM orders GROUP BY account",
}
ACCOUNTS = 20


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--percent", type=float, nargs="*", default=[0.1, 1, 10, 50, 100])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--views", nargs="*", default=list(VIEWS))
    chosen = options.parse_args()
    with (
        Figures("policies", chosen) as figures,
        tempfile.TemporaryDirectory() as folder,
        evert.open(Path(folder) / "policies.evert") as db,
    ):
        db.table("orders", "id BIGINT, account BIGINT, amount BIGINT", key="id")
        db.table("accounts", "id BIGINT, region STRING", key="id")
        chance = np.random.default_rng(1)
        accounts = chosen.rows // ACCOUNTS
        regions = pa.array([f"region {n % 50}" for n in range(accounts)])
        db.topic("accounts").upsert(pa.table({"id": np.arange(accounts), "region": regions}))
        write(db, np.arange(chosen.rows), accounts, chance)
        for number, name in enumerate(chosen.views):
            db.view(f"kept_{number}", VIEWS[name], group=f"kept_{number}")
            db.view(f"full_{number}", VIEWS[name], refresh="full")
        db.refresh(timeout=3600)
        for percent in chosen.percent:
            times = rounds(db, chosen.rows, percent, accounts, chosen.rounds, chance)
            for number, name in enumerate(chosen.views):
                case = f"{name}, {percent:g} % changed"
                same = equal(db, f"kept_{number}", f"full_{number}")
                for system, group in (("kept", f"kept_{number}"), ("recomputed", f"full_{number}")):
                    figures.add(case, system, times[group], "ms", same)
                faster = figures.of("recomputed")[case] / figures.of("kept")[case]
                figures.say(f"{case}: keeping is {faster:.2f} times as fast")


def write(db: evert.Database, ids: np.ndarray, accounts: int, chance: np.random.Generator) -> None:
    amounts = chance.integers(0, 10_000, len(ids))
    db.topic("orders").upsert(pa.table({"id": ids, "account": ids % accounts, "amount": amounts}))


def rounds(
    db: evert.Database, rows: int, percent: float, accounts: int, count: int, chance: np.random.Generator
) -> dict[str, list[float]]:
    """Milliseconds of the epochs of each group, after one round that warms up."""
    times: dict[str, list[float]] = {}
    for turn in range(count + 1):
        ids = chance.permutation(rows)[: max(1, int(rows * percent / 100))]
        write(db, ids, accounts, chance)
        spent: dict[str, float] = {}

        def seen(done: EpochDone, spent: dict[str, float] = spent) -> None:
            spent[done.group] = spent.get(done.group, 0.0) + done.milliseconds

        db.refresh(timeout=3600, on_epoch=seen)
        if turn:
            for group, value in spent.items():
                times.setdefault(group, []).append(value)
    return times


def equal(db: evert.Database, one: str, two: str) -> bool:
    """Whether two views have the same rows."""
    tables = [db.views[name].arrow() for name in (one, two)]
    first, second = (table.sort_by([(name, "ascending") for name in table.schema.names]) for table in tables)
    return bool(first.equals(second))


if __name__ == "__main__":
    main()
