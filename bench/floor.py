"""The floor: from one appended event to the visible change, for 1, 5 and 20 views of different shapes.

One process keeps the views, another appends one event at a time and waits until the views show it. The time
is that of the second process: append, epoch, commit, and the wake-up of the waiting reader.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from pathlib import Path

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


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--views", type=int, nargs="*", default=[1, 5, 20])
    options.add_argument("--events", type=int, default=60, help="measured, after as many to warm up")
    options.add_argument("--first", type=int, default=0, help="the shape of the first view, from 0 to 6")
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    found = []
    for count in chosen.views:
        times, recomputed, correct = run(count, chosen.events, chosen.first)
        p50, p99 = statistics.median(times), sorted(times)[int(len(times) * 0.99)]
        print(
            f"floor  {count:>3} views  p50 {p50:6.0f} ms  p99 {p99:6.0f} ms  best {min(times):6.0f} ms"
            f"  recomputing {recomputed:6.0f} ms  {'right' if correct else 'WRONG'}",
            flush=True,
        )
        for system, value in (("evert", p50), ("spark", recomputed)):
            case = f"floor of {count} views"
            found.append({"case": case, "system": system, "value": value, "unit": "ms", "correct": correct})
    ours = [case for case in found if case["system"] == "evert"]
    for case in ours[1:]:
        print(f"floor  {case['case']} is {case['value'] / ours[0]['value']:.2f} times that of one view")
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


def run(views: int, events: int, first: int) -> tuple[list[float], float, bool]:
    """Milliseconds from each append to the change that shows it, and to compute all views with Spark SQL.

    And whether every view is what plain Spark SQL makes of the log.
    """
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
            correct = all(proof.holds for proof in db.prove())
            return found, recompute(db), correct


def recompute(db: evert.Database) -> float:
    """Milliseconds to compute all views anew with plain Spark SQL, in memory already; the best of five."""
    from evert.epoch.spark import latest, read_topic, session

    spark = session()
    read_topic(spark, db, "orders").cache().createOrReplaceTempView("orders")
    customers = latest(read_topic(spark, db, "customers"), db.definition("customers"))
    customers.cache().createOrReplaceTempView("customers")
    times = []
    for _ in range(5):
        begun = time.perf_counter()
        for view in db.views.values():
            spark.sql(view.query).collect()
        times.append((time.perf_counter() - begun) * 1e3)
    return min(times)


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
