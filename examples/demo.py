"""Two processes write, Spark keeps two views up to date, and at the end both are proved.

One process appends orders to a stream, the other moves customers from country to country in a table. The
view `revenue` joins the two and adds up by country; the view `total` reads the view `revenue`.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import evert

REVENUE = """
SELECT c.country, count(*) AS orders, sum(o.amount) AS revenue
FROM orders o JOIN customers c ON o.customer = c.id
GROUP BY c.country
"""
TOTAL = "SELECT count(*) AS countries, sum(orders) AS orders, sum(revenue) AS revenue FROM revenue"
COUNTRIES = ["AT", "CH", "DE", "FR", "IT"]
CUSTOMERS = 50
SECONDS = 10
SHOW_EVERY = 2.0


def main() -> None:
    if len(sys.argv) == 3:
        role, folder = sys.argv[1:]
        {"orders": write_orders, "customers": write_customers}[role](folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        run(str(Path(scratch) / "shop.evert"))


def run(folder: str) -> None:
    with evert.open(folder) as db:
        db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
        customers = db.table("customers", "id BIGINT, country STRING", key="id")
        customers.upsert([{"id": i, "country": COUNTRIES[i % 5]} for i in range(CUSTOMERS)])

        print("Starting Spark, and defining two views ...")
        revenue = db.view("revenue", REVENUE)
        total = db.view("total", TOTAL)
        db.refresh()
        print("\nHow they are kept; what stands in [brackets] has state, so that a change costs a change:\n")
        for name in ("revenue", "total"):
            print(f"{name}\n{db.explain(name)}\n")

        print("One order comes in:")
        shown = revenue.position
        db.topics["orders"].append({"id": -2, "customer": 1, "amount": "19.90"})
        db.refresh()
        shown = show_changes(revenue, shown)
        print("\nAnother one, and in the same commit its customer moves to another country:")
        with db.transaction() as tx:
            tx.append("orders", {"id": -1, "customer": 1, "amount": "5.00"})
            tx.upsert("customers", {"id": 1, "country": "AT"})
        db.refresh()
        shown = show_changes(revenue, shown)

        print(f"\nFor {SECONDS} seconds one process appends orders, one moves customers between countries.\n")
        epochs: list[Any] = []
        stop = threading.Event()
        writers = [
            subprocess.Popen([sys.executable, __file__, role, folder]) for role in ("orders", "customers")
        ]
        with ThreadPoolExecutor(1) as background:
            running = background.submit(db.run, stop=stop, on_epoch=epochs.append)
            try:
                while any(writer.poll() is None for writer in writers) and not running.done():
                    time.sleep(SHOW_EVERY)
                    shown = show_changes(revenue, shown)
                if any(writer.wait() for writer in writers):
                    sys.exit("a writer failed")
                db.refresh()
            finally:
                stop.set()
            running.result()
        show_changes(revenue, shown)
        summarize(db, epochs, total)


def write_orders(folder: str) -> None:
    chance = random.Random(1)
    with evert.open(folder) as db:
        orders = db.topics["orders"]
        number, end = 0, time.monotonic() + SECONDS
        while time.monotonic() < end:
            rows = []
            for _ in range(chance.randint(1, 200)):
                amount = Decimal(chance.randint(100, 99_999)) / 100
                rows.append({"id": number, "customer": chance.randrange(CUSTOMERS), "amount": amount})
                number += 1
            orders.append(rows, producer="shop", sequence=number)
            time.sleep(0.02)


def write_customers(folder: str) -> None:
    chance = random.Random(2)
    with evert.open(folder) as db:
        customers = db.topics["customers"]
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            moved = chance.randrange(CUSTOMERS)
            if chance.random() < 0.1:
                customers.delete(moved)
            else:
                customers.upsert({"id": moved, "country": chance.choice(COUNTRIES)})
            time.sleep(0.1)


def show_changes(view: evert.View, after: int) -> int:
    """Print what the view's change feed has after a position, several epochs added up."""
    weights: dict[tuple, int] = {}
    for change in view.changes(after=after):
        after = change.position
        for row in change.rows.to_pylist():
            values = row["country"], row["orders"], row["revenue"]
            weights[values] = weights.get(values, 0) + row["_weight"]
    changed = sorted((row for row in weights.items() if row[1]), key=lambda row: (row[0][0], row[1]))
    if changed:
        print(f"{view.name} at position {after}")
        for (country, orders, amount), weight in changed:
            print(f"  {'+' if weight > 0 else '-'} {country}  {orders:>7,} orders  {amount:>14,.2f}")
    return after


def summarize(db: evert.Database, epochs: list[Any], total: evert.View) -> None:
    """What it took, and whether the views are right."""
    (row,) = total.rows()
    print(f"\ntotal: {row['orders']:,} orders in {row['countries']} countries, {row['revenue']:,.2f}")
    events = sum(epoch.rows for epoch in epochs)
    changed = sum(sum(epoch.changed.values()) for epoch in epochs)
    milliseconds = sorted(epoch.milliseconds for epoch in epochs)
    print(
        f"\n{len(epochs)} epochs took in {events:,} changes of the topics and made {changed:,} changes of rows in"
        f" the views.\nAn epoch took {statistics.median(milliseconds):.0f} ms (median), at most"
        f" {milliseconds[-1]:.0f} ms."
    )
    begun = time.perf_counter()
    for proof in db.prove():
        if not proof.holds:
            sys.exit(f"The view {proof.view} is wrong.\n  lacks: {proof.missing}\n  has: {proof.unexpected}")
        print(f"Proved: {proof.view} is what plain Spark SQL makes of the whole log (rows: {proof.rows}).")
    print(f"Computing both views anew for that took {(time.perf_counter() - begun) * 1e3:.0f} ms.")


if __name__ == "__main__":
    main()
