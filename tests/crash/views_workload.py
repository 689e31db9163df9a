"""The views under crashes: what is defined and written, where a process can die, and what is true of every version.

Customers are never deleted and each order is of a customer that is there, so that at every position

    sum(joined.amount) = sum(revenue.total) = sum(counted.total) = grand.total,   |buyers| = |counted|

and `counted.n` sums up to the orders that the log has up to there.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import evert

SETTINGS: dict[str, Any] = {"background": False, "shards": 2, "seal_rows": 600, "spill_bytes": 2_000}
CUSTOMERS = 12
COUNTRIES = ("AT", "CH", "DE", "FR")
QUERIES = {
    "joined": "SELECT orders.id, amount, country FROM orders JOIN customers ON customer = customers.id",
    "revenue": "SELECT country, count(*) AS n, sum(amount) AS total FROM joined GROUP BY country",
    "counted": "SELECT customer, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer",
    "buyers": "SELECT DISTINCT customer FROM orders",
    "grand": "SELECT sum(n) AS n, sum(total) AS total FROM revenue",
    "best": (
        "SELECT customer, id FROM (SELECT customer, id, row_number() OVER (PARTITION BY customer"
        " ORDER BY amount DESC, id) AS place FROM orders) WHERE place <= 2"
    ),
    "middle": "SELECT country, max(amount) AS most, median(amount) AS half FROM joined GROUP BY country",
    "idle": "SELECT id FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)",
}
ANOTHER = QUERIES["counted"].replace("FROM orders", "FROM orders WHERE amount IS NOT NULL")
"""Another query for `counted` with the same rows."""

POINTS = (
    "announced",
    "in a kernel",
    "computed",
    "in the commit",
    "committed",
    "in the upkeep",
    "in the sweep",
    "while building",
    "in the switch",
    "switched",
)


def make(folder: Path) -> None:
    """The topics, with all customers."""
    with evert.open(folder, **SETTINGS) as db:
        db.stream("orders", "id BIGINT, customer BIGINT, amount BIGINT", partitions=2)
        db.table("customers", "id BIGINT, country STRING", key="id")
        db.topic("customers").upsert([{"id": n, "country": COUNTRIES[n % 4]} for n in range(CUSTOMERS)])


def write(db: evert.Database, chance: random.Random, number: int) -> None:
    """One small commit: some orders, or customers that move."""
    if number % 3 == 2:
        who = chance.sample(range(CUSTOMERS), 2)
        db.topic("customers").upsert([{"id": n, "country": chance.choice(COUNTRIES)} for n in who])
        return
    db.topic("orders").append(
        [
            {
                "id": number * 100 + i,
                "customer": chance.randrange(CUSTOMERS),
                "amount": chance.randint(-9, 99),
            }
            for i in range(chance.randint(1, 30))
        ]
    )


def write_many(db: evert.Database, number: int) -> None:
    """So many orders that what they change is published in files."""
    ids = range(number * 100_000, number * 100_000 + 15_000)
    db.topic("orders").append([{"id": n, "customer": n % CUSTOMERS, "amount": 1} for n in ids])


def define(db: evert.Database) -> None:
    for name, query in QUERIES.items():
        if name not in db.views:
            db.view(name, query)


def check_answers(answers: dict[str, Any]) -> tuple[int, int]:
    """What is true of every version; its position and how many orders it has seen."""
    positions = {answer.position for answer in answers.values()}
    assert len(positions) == 1, f"a reader saw views at several positions: {positions}"
    rows = {name: answer.rows for name, answer in answers.items()}
    totals = {
        name: (_sum(rows[name], "n"), _sum(rows[name], "total")) for name in ("revenue", "counted", "grand")
    }
    totals["joined"] = (rows["joined"].num_rows, _sum(rows["joined"], "amount"))
    assert len(set(totals.values())) == 1, f"at {positions}: {totals}"
    assert rows["buyers"].num_rows == rows["counted"].num_rows
    return positions.pop(), totals["counted"][0]


def _sum(rows: pa.Table, column: str) -> int:
    return int(pc.sum(rows.column(column)).as_py() or 0)


def expected(db: evert.Database) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of the views at the head of the log, by plain Python."""
    orders = [row for batch in db.read(["orders"]) for row in batch.rows.to_pylist()]
    country = {row["id"]: row["country"] for b in db.read(["customers"]) for row in b.rows.to_pylist()}
    by_country: Counter[str] = Counter()
    by_customer: Counter[int] = Counter()
    spent: Counter[Any] = Counter()
    amounts: dict[Any, list[int]] = defaultdict(list)
    for order in orders:
        amounts[country[order["customer"]]].append(order["amount"])
        by_country[country[order["customer"]]] += 1
        by_customer[order["customer"]] += 1
        spent[country[order["customer"]]] += order["amount"]
        spent[order["customer"]] += order["amount"]
    return {
        "joined": Counter((o["id"], o["amount"], country[o["customer"]]) for o in orders),
        "revenue": Counter((name, n, spent[name]) for name, n in by_country.items()),
        "counted": Counter((who, n, spent[who]) for who, n in by_customer.items()),
        "buyers": Counter((who,) for who in by_customer),
        "grand": Counter([(len(orders), sum(o["amount"] for o in orders))]),
        "best": Counter(_best(orders)),
        "middle": Counter((name, max(many), float(median(many))) for name, many in amounts.items()),
        "idle": Counter((who,) for who in range(CUSTOMERS) if who not in by_customer),
    }


def _best(orders: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    placed: Counter[int] = Counter()
    for order in sorted(orders, key=lambda o: (-o["amount"], o["id"])):
        placed[order["customer"]] += 1
        if placed[order["customer"]] <= 2:
            yield order["customer"], order["id"]


def die_at(point: str, nth: int, how: int = signal.SIGKILL) -> None:
    """Let this process get a signal the `nth` time that it comes to a point; in kernels, at the `nth` level."""
    from evert.epoch import epoch as epochs
    from evert.epoch import worker
    from evert.epoch.epoch import Epochs
    from evert.log.files import Files
    from evert.views import changes

    left = [nth]

    def after(owner: Any, name: str, when: Callable[..., bool] = lambda *_: True) -> None:
        inner = getattr(owner, name)

        def outer(*args: Any, **options: Any) -> Any:
            result = inner(*args, **options)
            left[0] -= when(*args)
            if left[0] == 0:
                left[0] = -1
                with between_commits(args[0]):
                    signal.pthread_kill(threading.get_ident(), how)  # not a step further, as with os.kill
            return result

        setattr(owner, name, outer)

    match point:
        case "announced":
            after(Files, "announce_prefix")
        case "in a kernel":
            worker.kernel = partial(deadly_kernel, driver=os.getpid(), at=nth)  # type: ignore[assignment]
        case "computed":
            after(Epochs, "_run_job")
        case "in the commit":
            after(epochs, "commit")
        case "committed":
            after(Epochs, "run")
        case "in the upkeep":
            after(changes, "stored")
        case "in the sweep":
            after(Files, "_members")
        case "while building":
            after(Epochs, "_computed", lambda self, work: work.building)
        case "in the switch":
            after(epochs, "commit", lambda tx, files, lease, work, *_: bool(work.switches))
        case "switched":
            after(Epochs, "run", lambda self, work, lease: bool(work.switches))
        case _:
            raise ValueError(point)


@contextmanager
def between_commits(owner: Any) -> Iterator[None]:
    """Where no thread of this process commits: one that is stopped while it does keeps all others from writing."""
    if isinstance(db := getattr(owner, "_db", None), evert.Database):
        with db.catalog._leader:
            yield
    else:
        yield


def deadly_kernel(
    batches: Iterable[Any], members: Any, level: int, then: Any, *, driver: int, at: int
) -> Iterator[Any]:
    """A kernel that kills the driver when it has done its work, and goes on without it."""
    from evert.epoch.worker import kernel

    for batch in kernel(batches, members, level, then):
        yield batch
        if level >= at or then is None:
            with suppress(ProcessLookupError):
                os.kill(driver, signal.SIGKILL)
