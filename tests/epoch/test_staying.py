"""Nodes whose rows are where they need them: with and without Spark between them, the rows are the same."""

from __future__ import annotations

import random

import pytest
from tests.epoch.orders import opened, right

import evert

VIEWS = {
    "best": """SELECT * FROM (SELECT o.id, c.country, o.amount, c.id AS customer,
        row_number() OVER (PARTITION BY c.id ORDER BY o.amount DESC, o.id) AS place
        FROM orders o JOIN customers c ON o.customer = c.id) WHERE place <= 2""",
    "spent": """SELECT c.id, c.country, sum(o.amount) AS total, max(o.amount) AS most
        FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.id, c.country""",
    "totals": """SELECT customer, 0.5 * sum(amount) AS half, count(DISTINCT amount) AS n
        FROM orders GROUP BY customer""",
    "both": """SELECT x.customer, n, orders, countries FROM
        (SELECT customer, count(DISTINCT amount) AS n, count(DISTINCT id) AS orders FROM orders GROUP BY customer) x
        LEFT JOIN (SELECT id, count(*) AS countries FROM customers GROUP BY id) y ON x.customer = y.id""",
    "bought": """SELECT id, n FROM (SELECT id, count(*) AS n FROM customers GROUP BY id) x WHERE id NOT IN
        (SELECT customer FROM orders WHERE amount > 5 GROUP BY customer)""",
    "either": """SELECT customer, sum(n) AS n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer
        UNION ALL SELECT id, count(*) FROM customers GROUP BY id) GROUP BY customer""",
    "above": "SELECT country, total FROM spent WHERE total > 10",
    "how_many": "SELECT count(*) AS n FROM orders GROUP BY customer",
    "how_many_of_all": """SELECT n FROM (SELECT count(*) AS n FROM orders GROUP BY customer)
        UNION ALL SELECT count(*) FROM customers GROUP BY country UNION ALL SELECT amount FROM orders""",
    "how_many_so_often": "SELECT n, count(*) AS times FROM how_many GROUP BY n",
}


@pytest.mark.parametrize("inline", [True, False])
def test_views_are_right_whether_rows_stay_in_a_task_or_only_in_their_shard(
    spark, tmp_path, monkeypatch, jobs, inline
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
    assert max(job._flow.depth for job in jobs) == (4 if inline else 5)


def test_rows_that_spark_evaluates_stay_in_their_shard_beside_cells_that_go_elsewhere(spark, tmp_path, jobs):
    with evert.open(tmp_path / "db", background=False, shards=4) as db:
        people = db.table("people", "id INT, city STRING, name STRING", key="id")
        db.view("turned", "SELECT id, reverse(name) AS name FROM people")
        db.view("by_city", "SELECT city, count(*) AS n FROM people GROUP BY city")
        people.upsert([{"id": n, "city": f"city {n % 7}", "name": f"name {n}"} for n in range(40)])
        db.refresh(timeout=120)
        people.upsert([{"id": n, "city": f"city {n % 7}", "name": f"other {n}"} for n in range(0, 40, 3)])
        db.refresh(timeout=120)
        people.upsert([{"id": n, "city": "one city", "name": f"third {n}"} for n in range(0, 40, 2)])
        db.refresh(timeout=120)
        assert [job.inline for job in jobs] == [True] * 3
        assert right(db)


@pytest.mark.parametrize("small", [0, 100_000])
def test_large_cells_of_workers_and_of_spark_do_not_meet_in_a_file(spark, tmp_path, monkeypatch, jobs, small):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", small)
    with evert.open(tmp_path / "db", background=False) as db:
        lines = db.stream("lines", "id INT, x STRING")
        both = db.view("both", "SELECT id, x FROM lines UNION ALL SELECT id, reverse(x) FROM lines")
        lines.append([{"id": n, "x": f"{n:0100}"} for n in range(20_000)])
        db.refresh(timeout=120)
        assert both.count() == 40_000
        assert len(jobs) == 1
        assert right(db)
