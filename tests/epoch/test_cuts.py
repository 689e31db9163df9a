"""Jobs that are cut into several plans: what is below a cut leaves its rows for what is above."""

from __future__ import annotations

import pytest
from tests.epoch.orders import opened, right

from evert.epoch import job

VIEWS = {
    "middle": """SELECT country, median(amount) AS middle FROM (
        SELECT c.country, o.customer, percentile(o.amount, 0.5) AS amount
        FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country, o.customer) GROUP BY country""",
    "share": """SELECT id, amount / sum(amount) OVER (PARTITION BY customer) AS share FROM (
        SELECT customer, id, amount, avg(amount) OVER (PARTITION BY customer) AS mean FROM orders)
        WHERE amount >= mean""",
    "listed": "SELECT customer, sort_array(collect_list(share)) AS shares FROM"
    " (SELECT o.customer, s.share FROM orders o JOIN share s ON o.id = s.id) GROUP BY customer",
}


def change(db, number):
    db.topic("orders").append(
        [{"id": 10 * number + n, "customer": (number + n) % 4, "amount": n + number} for n in range(8)]
    )
    db.topic("customers").upsert({"id": number % 4, "country": "AB"[number % 2]})
    if number > 1:
        db.topic("customers").delete((number + 1) % 4)


@pytest.mark.parametrize("inline", [True, False])
def test_views_are_right_in_any_number_of_plans(spark, tmp_path, monkeypatch, jobs, inline):
    monkeypatch.setattr(job, "MOST_COPIES", 1)
    if not inline:
        monkeypatch.setattr("evert.plan.nodes.inlined", lambda pipe, terms: None)
    with opened(tmp_path) as db:
        for name, query in VIEWS.items():
            db.view(name, query)
        for number in range(4):
            change(db, number)
            db.refresh(timeout=120)
            assert right(db)
        assert max(each.pieces for each in jobs) > 2
        assert db.views["middle"].count()
        assert db.views["listed"].count()


def test_a_plan_is_cut_only_where_it_would_become_large(spark, tmp_path, jobs):
    with opened(tmp_path) as db:
        db.view("middle", VIEWS["middle"])
        change(db, 0)
        db.refresh(timeout=120)
        assert [each.pieces for each in jobs] == [1] * len(jobs)
