"""Two processes write, Spark keeps a view up to date, and the result is checked against plain Spark SQL.

One process appends orders to a stream, the other moves customers from country to country in a table. The
view joins the two. Its rows are printed as they change.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

import evert

QUERY = """
SELECT c.country, count(*) AS orders, sum(o.amount) AS revenue
FROM orders o JOIN customers c ON o.customer = c.id
GROUP BY c.country
"""
COUNTRIES = ["AT", "CH", "DE", "FR", "IT"]
CUSTOMERS = 50
SECONDS = 12


def main() -> None:
    if len(sys.argv) == 3:
        role, folder = sys.argv[1:]
        {"orders": write_orders, "customers": write_customers}[role](folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        run(str(Path(scratch) / "shop.evert"))


def run(folder: str) -> None:
    with evert.open(folder) as db:
        orders = db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
        customers = db.table("customers", "id BIGINT, country STRING", key="id")
        customers.upsert([{"id": i, "country": COUNTRIES[i % 5]} for i in range(CUSTOMERS)])
        revenue = db.view("revenue", QUERY)
        print("Starting Spark ...")
        db.refresh()

        print("Two processes write: one appends orders, one moves customers between countries.")
        writers = [
            subprocess.Popen([sys.executable, __file__, role, folder]) for role in ("orders", "customers")
        ]
        shown: dict[str, tuple] = {}
        while any(writer.poll() is None for writer in writers):
            db.refresh()
            shown = show_changes(shown, revenue)
        if any(writer.returncode for writer in writers):
            sys.exit("a writer failed")
        db.refresh()
        show_changes(shown, revenue)
        check(db, orders, customers, revenue)


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


def show_changes(shown: dict[str, tuple], view: evert.View) -> dict[str, tuple]:
    """Print what changed in the view since it was shown last."""
    answer = view.answer()
    now = {row["country"]: (row["orders"], row["revenue"]) for row in answer.rows.to_pylist()}
    lines = [
        f"  - {c}  {shown[c][0]:>7} orders  {shown[c][1]:>14,.2f}"
        for c in sorted(shown)
        if now.get(c) != shown[c]
    ]
    lines += [
        f"  + {c}  {now[c][0]:>7} orders  {now[c][1]:>14,.2f}" for c in sorted(now) if now[c] != shown.get(c)
    ]
    if lines:
        print(f"revenue at position {answer.position}")
        print("\n".join(lines))
    return now


def check(db: evert.Database, orders: evert.Stream, customers: evert.Table, revenue: evert.View) -> None:
    """Compute the same with nothing but Spark SQL over what the log holds, and compare."""
    from evert.epoch.spark import session

    spark = session()
    appended = pa.Table.from_batches(list(orders.read()))
    current = {}
    for batch in customers.read():
        for row in batch.to_pylist():
            current[row["id"]] = None if row["_deleted"] else row["country"]
    spark.createDataFrame(appended).createOrReplaceTempView("orders")
    alive = [(i, country) for i, country in current.items() if country is not None]
    spark.createDataFrame(alive, "id BIGINT, country STRING").createOrReplaceTempView("customers")
    expected = sorted(map(tuple, spark.sql(QUERY).collect()))
    kept = sorted(tuple(row.values()) for row in revenue.rows())
    if kept != expected:
        sys.exit(f"The view is wrong.\n  kept:     {kept}\n  expected: {expected}")
    print(
        f"Checked: after {db.position} commits and {appended.num_rows} orders the view equals plain Spark SQL"
        f" ({len(kept)} rows)."
    )


if __name__ == "__main__":
    main()
