"""Nodes that views have in common are kept once, and nobody notices when the views part."""

from __future__ import annotations

import pytest
from tests.epoch.orders import JOINED, opened, right


@pytest.fixture
def db(spark, tmp_path):
    with opened(tmp_path) as made:
        yield made


def write(db, number):
    db.topic("orders").append([{"id": number + n, "customer": n % 4, "amount": n} for n in range(6)])


def states(db):
    with db.catalog.read() as tx:
        return [row[0] for row in tx.all("SELECT DISTINCT node FROM runs ORDER BY node")]


def test_equal_nodes_of_two_views_have_one_state(db):
    db.view("totals", f"SELECT country, sum(amount) AS amount FROM ({JOINED}) GROUP BY country")
    write(db, 0)
    db.refresh(timeout=120)
    alone = len(states(db))
    db.view("counts", f"SELECT country, count(amount) AS n FROM ({JOINED}) GROUP BY country")
    write(db, 10)
    db.refresh(timeout=120)
    assert len(states(db)) == alone + 2  # an aggregate and an output: the table and the join are there
    assert "shared with totals" in str(db.explain("counts"))
    write(db, 20)
    db.topic("customers").delete([{"id": 1}])
    db.refresh(timeout=120)
    assert right(db)
    db.drop("totals")
    write(db, 30)
    db.refresh(timeout=120)
    assert right(db)
    assert "shared" not in str(db.explain("counts"))


def test_a_view_that_stops_takes_a_copy_of_what_it_shared_and_gives_it_back(db):
    db.view(
        "shares", "SELECT o.id, 100 div o.amount AS share FROM orders o JOIN customers c ON o.customer = c.id"
    )
    fine = db.view("fine", f"SELECT id FROM ({JOINED}) WHERE amount > 0")
    db.topic("orders").append({"id": 1, "customer": 1, "amount": 5})
    db.refresh(timeout=120)
    write(db, 10)
    db.refresh(timeout=120)
    assert db.view("shares").state == "stopped"
    assert fine.count() == 6
    db.topic("customers").delete([{"id": 0}])
    db.refresh(timeout=120)
    assert [view.state for view in db.views.values()] == ["live", "live"]
    assert right(db)
    write(db, 20)
    db.refresh(timeout=120)
    assert right(db)
