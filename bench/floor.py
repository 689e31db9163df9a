"""The floor: from one appended event to the visible change, for 1, 5 and 20 views of different shapes.

One process keeps the views, another appends one event at a time and waits until the views show it. The time
is that of the second process: append, epoch, commit, and the wake-up of the waiting reader. Beside it what plain
Spark SQL takes to compute the views anew. Then the time that a new process needs to its first answer, with and
without bringing the view up to date, and the memory of a process that keeps views and has nothing to do.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures import Figures
from bench.memory import Watch

import evert

SHAPES = (
    "SELECT id, amount * {n} AS scaled FROM orders WHERE amount > {n}",
    "SELECT customer + {n} AS c, count(*) AS n, sum(amount) AS total FROM orders GROUP BY customer + {n}",
    "SELECT c.country, avg(o.amount) AS mean{n} FROM orders o JOIN customers c ON o.customer = c.id"
    " GROUP BY c.country",
    "SELECT DISTINCT customer, amount > {n} AS large FROM orders",
    "SELECT o.id, c.country, {n} AS kind FROM orders o JOIN customers c ON o.customer = c.id",
    "SELECT upper(status) AS status, max(amount) AS most{n} FROM orders GROUP BY upper(status)",
    "SELECT customer, part, count(*) AS n{n} FROM orders LATERAL VIEW explode(split(status, ' ')) AS part"
    " GROUP BY customer, part",
)


FIRST_ANSWER = """
import sys, evert
with evert.open(sys.argv[1]) as db:
    if sys.argv[2:]:
        db.topic("orders").append({"id": -1, "customer": 1, "amount": 99, "status": "new"})
        db.refresh()
    print(db.views["v0"].count())
"""


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--views", type=int, nargs="*", default=[1, 5, 20])
    options.add_argument("--events", type=int, default=60, help="measured, after as many to warm up")
    options.add_argument("--first", type=int, default=0, help="the shape of the first view, from 0 to 6")
    chosen = options.parse_args()
    with Figures("floor", chosen) as figures:
        for count in chosen.views:
            run(figures, count, chosen.events, chosen.first)
        ours = {case: value for case, value in figures.of("evert").items() if case.startswith("floor")}
        for case, value in list(ours.items())[1:]:
            figures.say(f"{case} is {value / next(iter(ours.values())):.2f} times that of the first")


def run(figures: Figures, views: int, events: int, first: int) -> None:
    """A database with so many views: from append to change, and to compute all views with Spark SQL."""
    case = f"floor of {views} views"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "floor.evert"
        with evert.open(path) as db:
            db.stream("orders", "id BIGINT, customer BIGINT, amount BIGINT, status STRING")
            db.table("customers", "id BIGINT, country STRING", key="id").upsert(
                [{"id": i, "country": f"c{i % 5}"} for i in range(100)]
            )
            for number in range(views):
                db.view(f"v{number}", SHAPES[(first + number) % len(SHAPES)].format(n=number))
            db.refresh()
            context = multiprocessing.get_context("spawn")
            times = context.Queue()
            writer = context.Process(target=write, args=(str(path), views, events, times))
            writer.start()
            while writer.is_alive() and times.empty():
                db.run(seconds=1)
            found = times.get()
            writer.join()
            p99 = sorted(found)[int(len(found) * 0.99)]
            right = all(proof.holds for proof in db.prove())
            figures.add(case, "evert", found, "ms", right, f"p99 {p99:.0f} ms")
            with Watch() as memory:
                db.run(seconds=3)
            figures.add(f"at rest with {views} views", "evert", [memory.peak / 1e6], "MB")
            figures.add(case, "spark, recomputing", recompute(db), "ms")
        for word, more in (("first answer", ()), ("first answer after a change", ("change",))):
            taken = [first_answer(path, *more) for _ in range(3)]
            figures.add(f"{word}, {views} views", "evert", taken, "ms")


def first_answer(path: Path, *more: str) -> float:
    """Milliseconds of a new process that opens the database, brings it up to date if asked to, and reads a view."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST_ANSWER, path, *more], check=True, capture_output=True)
    return (time.perf_counter() - begun) * 1e3


def recompute(db: evert.Database) -> list[float]:
    """Milliseconds to compute all views anew with plain Spark SQL, the topics in memory already."""
    from evert.epoch.spark import latest, read_topic, session

    spark = session()
    read_topic(spark, db, "orders").cache().createOrReplaceTempView("orders")
    customers = latest(read_topic(spark, db, "customers"), db.definition("customers"))
    customers.cache().createOrReplaceTempView("customers")
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        for view in db.views.values():
            spark.sql(view.query).collect()
        times.append((time.perf_counter() - begun) * 1e3)
    return times[2:]


def write(path: str, views: int, events: int, times: multiprocessing.Queue) -> None:
    """Append events one by one, and wait for each until every view shows it."""
    found = []
    with evert.open(path) as db:
        orders = db.topic("orders")
        shown = [db.views[f"v{number}"] for number in range(views)]
        for number in range(2 * events):
            begun = time.perf_counter()
            row = {"id": number, "customer": number % 100, "amount": 50 + number, "status": "new and paid"}
            position = orders.append(row)
            for view in shown:
                view.wait(position)
            if number >= events:
                found.append((time.perf_counter() - begun) * 1e3)
            time.sleep(0.02)
    times.put(found)


if __name__ == "__main__":
    main()
