"""Nodes whose rows are where they need them: with and without Spark between them, the rows are the same."""

from __future__ import annotations

import random

import pytest
from tests.epoch.orders import opened, right

from evert.epoch.job import Job

VIEWS = {
    "best": """SELECT * FROM (SELECT o.id, c.country, o.amount, c.id AS customer,
        row_number() OVER (PARTITION BY c.id ORDER BY o.amount DESC, o.id) AS place
        FROM orders o JOIN customers c ON o.customer = c.id) WHERE place <= 2""",
    "spent": """SELECT c.id, c.country, sum(o.amount) AS total, max(o.amount) AS most
        FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.id, c.country""",
    "totals": """SELECT customer, 0.5 * sum(amount) AS half, count(DISTINCT amount) AS n
        FROM orders GROUP BY customer""",
    "above": "SELECT country, total FROM spent WHERE total > 10",
}


@pytest.fixture
def depths(monkeypatch):
    """Of each job, how many levels it has."""
    seen = []
    run = Job.run

    def noted(self, folder, epoch):
        seen.append(self._flow.depth)
        return run(self, folder, epoch)

    monkeypatch.setattr(Job, "run", noted)
    return seen


@pytest.mark.parametrize("inline", [True, False])
def test_views_are_right_whether_rows_stay_in_a_task_or_only_in_their_shard(
    spark, tmp_path, monkeypatch, depths, inline
):
    if not inline:
        monkeypatch.setattr("evert.plan.nodes.inlined", lambda pipe, terms: None)
    chance = random.Random(3)
    with opened(tmp_path) as db:
        for name, query in VIEWS.items():
            db.view(name, query)
        for number in range(5):
            amounts = [
                {"id": 10 * number + n, "customer": chance.randrange(5), "amount": n} for n in range(10)
            ]
            db.topic("orders").append(amounts)
            db.topic("customers").upsert({"id": chance.randrange(5), "country": chance.choice("AB")})
            if number % 2:
                db.topic("customers").delete(chance.randrange(5))
            db.refresh(timeout=120)
            assert right(db)
        for customer in range(5):
            kept = [row for row in db.views["totals"].rows() if row["customer"] == customer]
            assert db.views["totals"].get(customer) == (kept[0] if kept else None)
    assert max(depths) == (4 if inline else 5)
