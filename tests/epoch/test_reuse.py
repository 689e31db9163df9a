"""What live views keep, a new view takes over: nothing is read twice, and nothing is wrong for it."""

from __future__ import annotations

import pytest
from tests.epoch.orders import JOINED, opened, right

from evert.epoch import reuse
from evert.epoch.epoch import Epochs
from evert.epoch.spark import JobFailed

TOTALS = f"SELECT country, sum(amount) AS amount FROM ({JOINED}) GROUP BY country"
COUNTS = f"SELECT country, count(amount) AS n, max(amount) AS most FROM ({JOINED}) GROUP BY country"

ON_TOP = [
    f"SELECT country, amount FROM ({TOTALS}) WHERE amount > 3",
    f"SELECT country, amount, rank() OVER (ORDER BY amount) AS r FROM ({TOTALS})",
    f"SELECT a.country, b.amount FROM ({TOTALS}) a LEFT JOIN orders b ON a.amount = b.amount",
    "SELECT c.country, median(o.amount) AS m FROM orders o JOIN customers c ON o.customer = c.id GROUP BY 1",
    f"SELECT max(id) AS id, min(amount) AS least FROM ({JOINED})",
    f"SELECT DISTINCT country FROM ({JOINED}) WHERE id NOT IN (SELECT amount FROM orders)",
    "SELECT country, t.amount FROM (SELECT country, n FROM counts) JOIN totals t USING (country)",
]


@pytest.fixture
def db(spark, tmp_path):
    with opened(tmp_path) as made:
        yield made


def write(db, number):
    db.topic("orders").append([{"id": number + n, "customer": n % 5, "amount": n} for n in range(6)])
    db.topic("customers").upsert({"id": number % 5, "country": "C"})
    db.topic("customers").delete([{"id": (number + 1) % 4}])


def read_by(db):
    """How many events the last epoch read."""
    with db.catalog.read() as tx:
        return tx.one("SELECT rows FROM epochs ORDER BY id DESC LIMIT 1")[0]


def test_a_new_view_on_what_another_one_keeps_reads_no_event(db):
    db.view("totals", TOTALS)
    write(db, 0)
    write(db, 10)
    db.refresh(timeout=120)
    assert read_by(db) > 0
    db.view("counts", COUNTS)
    db.refresh(timeout=120)
    assert read_by(db) == 0
    assert db.view("counts").state == "live"
    assert right(db)
    assert "shared with totals" in str(db.explain("counts"))
    write(db, 20)
    db.refresh(timeout=120)
    assert right(db)
    db.drop("totals")
    write(db, 30)
    db.refresh(timeout=120)
    assert right(db)


def test_a_replacement_keeps_what_still_fits_and_reads_the_rest_from_the_log(db):
    view = db.view("totals", TOTALS)
    write(db, 0)
    db.refresh(timeout=120)
    counted = view.count()
    more = "SELECT country, amount + (SELECT count(*) FROM orders) AS amount FROM"
    db.view("totals", f"{more} ({TOTALS})", replace=True, hold=True)
    db.refresh(timeout=120)
    assert read_by(db) == 6  # the orders, which are counted for the first time; no customers
    assert db.compare("totals").new == counted
    write(db, 10)
    db.refresh(timeout=120)  # the view goes on, and takes its own copy of what both have
    db.switch("totals")
    write(db, 20)
    db.refresh(timeout=120)
    assert right(db)


def test_whatever_is_put_on_top_is_what_spark_gives(db):
    db.view("totals", TOTALS)
    db.view("counts", COUNTS)
    write(db, 0)
    db.refresh(timeout=120)
    db.topic("customers").delete([{"id": 0}])
    db.refresh(timeout=120)
    for number, query in enumerate(ON_TOP):
        db.view(f"more{number}", query)
        db.refresh(timeout=120)
    assert right(db)
    write(db, 10)
    db.refresh(timeout=120)
    assert right(db)


def test_too_much_at_once_is_built_from_the_log_in_pieces(db, monkeypatch):
    db.view("totals", TOTALS)
    write(db, 0)
    db.refresh(timeout=120)
    monkeypatch.setattr(reuse, "MOST_ROWS", 5)
    db.view("counts", COUNTS)
    db.refresh(timeout=120)
    assert read_by(db) == 12  # what both topics have
    assert right(db)


def test_what_cannot_be_taken_over_is_built_from_the_log(db, monkeypatch):
    db.view("totals", TOTALS)
    write(db, 0)
    db.refresh(timeout=120)
    run = Epochs.run

    def damaged(self, work, lease):
        if work.reuses:
            raise JobFailed("a run is damaged")
        return run(self, work, lease)

    monkeypatch.setattr(Epochs, "run", damaged)
    db.view("counts", COUNTS)
    db.refresh(timeout=120)
    assert read_by(db) == 12
    assert db.view("counts").state == "live"
    assert right(db)


def test_a_view_that_is_dropped_meanwhile_leaves_its_state_to_nobody(db, monkeypatch):
    db.view("totals", TOTALS)
    write(db, 0)
    db.refresh(timeout=120)
    db.view("counts", COUNTS)
    found = reuse.found

    def then_dropped(*arguments):
        reused = found(*arguments)
        if "totals" in db.views:
            db.drop("totals")
        return reused

    monkeypatch.setattr(reuse, "found", then_dropped)
    db.refresh(timeout=120)
    assert db.view("counts").state == "live"
    assert right(db)
    write(db, 10)
    db.refresh(timeout=120)
    assert right(db)
