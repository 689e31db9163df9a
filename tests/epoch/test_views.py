"""Views from end to end: a change goes in at one end, and every view is right at the other."""

from __future__ import annotations

from decimal import Decimal

import pytest

import evert
from evert.errors import Refused, Stopped


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        yield made


@pytest.fixture
def shop(db):
    db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
    db.table("customers", "id BIGINT, country STRING", key="id")
    db.topic("customers").upsert([{"id": 1, "country": "CH"}, {"id": 2, "country": "DE"}])
    db.topic("orders").append(
        [{"id": 10, "customer": 1, "amount": "19.90"}, {"id": 11, "customer": 2, "amount": 5}]
    )
    return db


REVENUE = """
    SELECT country, count(*) AS n, sum(amount) AS revenue
    FROM orders JOIN customers ON customer = customers.id GROUP BY country
"""


def proved(db):
    return all(proof.holds for proof in db.prove())


def sorted_rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def test_a_change_of_one_row_changes_what_rests_on_it(shop):
    revenue = shop.view("revenue", REVENUE)
    total = shop.view("total", "SELECT sum(revenue) AS total, count(*) AS countries FROM revenue")
    shop.refresh()
    assert sorted_rows(revenue) == [("CH", 1, Decimal("19.90")), ("DE", 1, Decimal("5.00"))]
    assert total.rows() == [{"total": Decimal("24.90"), "countries": 2}]
    assert revenue.get("CH") == {"country": "CH", "n": 1, "revenue": Decimal("19.90")}
    shop.topic("customers").upsert({"id": 1, "country": "DE"})
    shop.refresh()
    assert sorted_rows(revenue) == [("DE", 2, Decimal("24.90"))]
    assert total.rows() == [{"total": Decimal("24.90"), "countries": 1}]
    shop.topic("customers").delete(1)
    shop.topic("customers").delete(2)
    shop.refresh()
    assert revenue.rows() == []
    assert total.rows() == [{"total": None, "countries": 0}]
    assert proved(shop)


def test_a_view_of_a_function_is_kept_like_one_in_sql(shop):
    @shop.view
    def per_customer(spark):
        return spark.table("orders").groupBy("customer").count()

    shop.refresh()
    assert sorted_rows(shop.views["per_customer"]) == [(1, 1), (2, 1)]


@pytest.mark.parametrize("refresh", ["auto", "full"])
def test_a_query_of_which_spark_needs_no_row_is_kept_and_proved(shop, refresh):
    nothing = shop.view("nothing", "SELECT count(*) AS n FROM orders WHERE false", refresh=refresh)
    shop.refresh()
    assert nothing.rows() == [{"n": 0}]
    shop.topic("orders").append({"id": 12, "customer": 1, "amount": 1})
    shop.refresh()
    assert nothing.rows() == [{"n": 0}]
    assert proved(shop)


@pytest.mark.parametrize("refresh", ["auto", "full"])
def test_what_reads_all_its_input_tells_only_what_changed(shop, refresh):
    query = "SELECT id, row_number() OVER (ORDER BY id) AS place FROM orders"
    ranked = shop.view("ranked", query, refresh=refresh)
    explained = shop.explain("ranked")
    reason = "window row_number() [n1]" if refresh == "auto" else "REFRESH POLICY FULL"
    assert explained.recomputes == reason
    assert ("[n1, whole]" in str(explained)) == (refresh == "auto")
    shop.refresh()
    assert sorted_rows(ranked) == [(10, 1), (11, 2)]
    start = shop.position
    shop.topic("orders").append({"id": 9, "customer": 1, "amount": 1})
    shop.refresh()
    assert sorted_rows(ranked) == [(9, 1), (10, 2), (11, 3)]
    changes = [row for change in ranked.changes(after=start) for row in change.rows.to_pylist()]
    assert sorted((row["id"], row["place"], row["_weight"]) for row in changes) == [
        (9, 1, 1),
        (10, 1, -1),
        (10, 2, 1),
        (11, 2, -1),
        (11, 3, 1),
    ]
    above = shop.view("above", "SELECT count(*) AS n, max(place) AS last FROM ranked")
    below = shop.view("third", "SELECT r.id FROM ranked r JOIN orders o ON r.id = o.id WHERE place = 3")
    shop.refresh()
    assert above.rows() == [{"n": 3, "last": 3}]
    assert below.rows() == [{"id": 11}]
    shop.topic("orders").append({"id": 8, "customer": 1, "amount": 1})
    shop.refresh()
    assert above.rows() == [{"n": 4, "last": 4}]
    assert below.rows() == [{"id": 10}]
    assert proved(shop)


def test_a_limit_in_a_correlated_subquery_goes_by_an_order_that_is_not_shown(shop):
    latest = shop.view(
        "latest",
        """SELECT c.id, t.amount FROM customers c,
            LATERAL (SELECT amount FROM orders o WHERE o.customer = c.id ORDER BY o.id DESC LIMIT 1) t""",
    )
    assert shop.explain("latest").recomputes is None
    shop.topic("orders").append({"id": 12, "customer": 1, "amount": 7})
    shop.refresh()
    assert sorted_rows(latest) == [(1, Decimal("7.00")), (2, Decimal("5.00"))]
    shop.topic("orders").append(
        [{"id": 13, "customer": 1, "amount": 50}, {"id": 14, "customer": 2, "amount": 1}]
    )
    shop.refresh()
    assert sorted_rows(latest) == [(1, Decimal("50.00")), (2, Decimal("1.00"))]
    assert proved(shop)


def test_a_view_defined_later_is_built_from_the_log_and_joins_the_others(shop):
    revenue = shop.view("revenue", REVENUE)
    shop.refresh()
    shop.topic("orders").append({"id": 12, "customer": 2, "amount": 7})
    later = shop.view("later", "SELECT country FROM revenue WHERE revenue > 10")
    counted = shop.view("counted", "SELECT count(*) AS n FROM orders")
    shop.refresh()
    assert sorted_rows(later) == [("CH",), ("DE",)]
    assert counted.rows() == [{"n": 3}]
    assert {view.position for view in (revenue, later, counted)} == {shop.position}
    shop.topic("customers").delete(1)
    shop.refresh()
    assert later.rows() == [{"country": "DE"}]
    assert proved(shop)


def test_a_view_that_fails_on_its_data_stops_alone_and_goes_on_when_the_data_are_mended(shop):
    shop.table("rates", "id INT, rate INT", key="id")
    shop.topic("rates").upsert({"id": 1, "rate": 2})
    shares = shop.view("shares", "SELECT id, 10 div rate AS share FROM rates")
    doubled = shop.view("doubled", "SELECT id, share * 2 AS twice FROM shares")
    others = shop.view("others", "SELECT count(*) AS n FROM rates")
    shop.refresh()
    good = shop.position
    shop.topic("rates").upsert({"id": 3, "rate": 5})
    bad = shop.topic("rates").upsert({"id": 2, "rate": 0})
    shop.refresh()
    assert others.rows() == [{"n": 3}]
    assert (shares.state, shares.position) == ("stopped", good)
    assert (doubled.state, doubled.position) == ("stopped", good)
    assert "DIVIDE_BY_ZERO" in shares.error["message"]
    assert shares.error["position"] == bad
    assert shares.error["rows"][0]["id"] == 2
    with pytest.raises(Stopped, match=f"stopped at {good}"):
        shares.rows()
    assert shares.at(good).rows() == [{"id": 1, "share": 5}]
    shop.topic("rates").upsert({"id": 2, "rate": 1})
    shop.refresh()
    assert sorted_rows(shares) == [(1, 5), (2, 10), (3, 2)]
    assert sorted_rows(doubled) == [(1, 10), (2, 20), (3, 4)]
    assert {view.position for view in (shares, doubled, others)} == {shop.position}
    assert proved(shop)


def test_a_replaced_view_publishes_the_difference_and_its_readers_follow(shop):
    shop.view("large", "SELECT id, amount FROM orders WHERE amount > 10")
    count = shop.view("count", "SELECT count(*) AS n FROM large")
    shop.refresh()
    large = shop.views["large"]
    before = shop.position
    assert count.rows() == [{"n": 1}]
    shop.view("large", "SELECT id, amount FROM orders WHERE amount < 10", replace=True)
    assert large.rows() == [{"id": 10, "amount": Decimal("19.90")}]
    shop.refresh()
    assert large.rows() == [{"id": 11, "amount": Decimal("5.00")}]
    assert count.rows() == [{"n": 1}]
    changes = [row for change in large.changes(after=before) for row in change.rows.to_pylist()]
    assert sorted((row["id"], row["_weight"]) for row in changes) == [(10, -1), (11, 1)]
    shop.topic("orders").append({"id": 12, "customer": 2, "amount": 7})
    shop.refresh()
    assert count.rows() == [{"n": 2}]
    assert proved(shop)


REFUSED = {
    "SELECT rand() AS x FROM orders": r"rand\(\) gives another answer each time",
    "SELECT now() AS x FROM orders": r"now\(\) changes without any change of the log",
    "SELECT * FROM nowhere": "no topic or view 'nowhere'",
    "DROP TABLE orders": "DROP",
    "SELECT 1 AS x; SELECT 2 AS x": ";",
    "SELECT java_method('java.lang.System', 'exit', 0) AS x FROM orders": "calls any Java method",
    "SELECT * FROM parquet.`/etc`": "no topic or view",
    "SELECT FROM WHERE": "WHERE|FROM",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_cannot_be_a_view_is_refused_with_the_reason_and_leaves_nothing(shop, query):
    with pytest.raises(Refused, match=REFUSED[query]):
        shop.view("v", query)
    assert shop.views == {}


def test_a_view_cannot_read_itself(shop):
    shop.view("a", "SELECT id FROM orders")
    shop.view("b", "SELECT id FROM a")
    with pytest.raises(Refused, match="itself"):
        shop.view("a", "SELECT id FROM b", replace=True)


def test_a_large_range_is_read_by_spark_and_gives_the_same(shop, monkeypatch):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", 0)
    revenue = shop.view("revenue", REVENUE)
    shop.refresh()
    shop.topic("customers").upsert({"id": 1, "country": "DE"})
    shop.topic("orders").append({"id": 12, "customer": 2, "amount": 7})
    shop.refresh()
    assert sorted_rows(revenue) == [("DE", 3, Decimal("31.90"))]
    assert proved(shop)


def test_a_backlog_is_worked_off_in_several_epochs_and_shown_at_the_end(shop, monkeypatch):
    monkeypatch.setattr("evert.epoch.schedule.MOST_EVENTS", 1)
    for number in range(4):
        shop.topic("orders").append({"id": number, "customer": 1, "amount": 1})
    shop.view("base", "SELECT id FROM orders")
    on_base = shop.view("on_base", "SELECT count(*) AS n FROM base JOIN orders USING (id)")
    epochs = []
    shop.refresh(on_epoch=epochs.append)
    assert len(epochs) > 3
    assert on_base.rows() == [{"n": 6}]
    assert proved(shop)
