"""The refresh policy of a view: kept if it can be, kept or refused, or always recomputed."""

from __future__ import annotations

import pytest

import evert
from evert.errors import BadOption, BadQuery, BadStatement, ViewExists

WHOLE = "SELECT id, sum(price) OVER () AS total FROM items"
BY_KIND = "SELECT kind, sum(price) AS total FROM items GROUP BY kind"


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        items = made.table("items", "id INT, kind STRING, price INT", key="id")
        items.upsert([{"id": 1, "kind": "a", "price": 10}, {"id": 2, "kind": "b", "price": 20}])
        yield made


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def test_strict_refuses_what_would_be_recomputed_and_says_why(db):
    db.stream("marked", "attributes MAP<STRING, INT>")
    with pytest.raises(BadQuery) as caught:
        db.view("best", "SELECT attributes, count(*) AS n FROM marked GROUP BY attributes", refresh="strict")
    assert caught.value.message == (
        "the view is to be kept incrementally, and it would be recomputed: grouping by a MAP"
    )
    assert "REFRESH POLICY INCREMENTAL STRICT" in caught.value.hint
    assert db.views == {}


def test_strict_refuses_a_node_that_reads_all_its_input_again_and_names_it(db):
    with pytest.raises(BadQuery, match=r"it would be recomputed: window sum\(items.price\) \[n2\]"):
        db.view("totals", WHOLE, refresh="strict")
    assert db.views == {}
    assert "[n2, whole]" in str(db.explain(WHOLE))


def test_strict_takes_what_reads_the_rows_of_a_key(db):
    view = db.view("medians", "SELECT kind, median(price) AS m FROM items GROUP BY kind", refresh="strict")
    assert "per key]" in str(db.explain("medians"))
    db.refresh(timeout=120)
    assert rows(view) == [("a", 10.0), ("b", 20.0)]


def test_full_breaks_ties_as_views_that_are_kept_do(db):
    db.topic("items").upsert([{"id": n, "kind": "a", "price": n % 2} for n in range(30, 0, -1)])
    first = "SELECT id, price FROM items ORDER BY price LIMIT 4"
    ranked = "SELECT id, row_number() OVER (PARTITION BY kind ORDER BY price) AS n FROM items"
    views = [
        [db.view(f"{name}_{policy}", query, refresh=policy) for policy in ("auto", "full")]
        for name, query in (("first", first), ("ranked", ranked))
    ]
    db.refresh(timeout=120)
    for auto, full in views:
        assert rows(auto) == rows(full)
        assert auto.count() in (4, 30)


def test_full_recomputes_whatever_the_query_is_and_says_so(db):
    full = db.view("full_totals", BY_KIND, refresh="full")
    auto = db.view("auto_totals", BY_KIND)
    explained = db.explain("full_totals")
    assert explained.recomputes == "REFRESH POLICY FULL"
    assert "  recomputed: REFRESH POLICY FULL" in explained.lines
    assert db.explain("auto_totals").recomputes is None
    assert (full.group, auto.group) == ("full_totals", "default")
    db.refresh(timeout=120)
    seen = full.position
    db.topic("items").upsert({"id": 1, "kind": "b", "price": 5})
    db.refresh(timeout=120)
    assert rows(full) == rows(auto) == [("b", 25)]
    changes = [row for change in full.changes(after=seen) for row in change.rows.to_pylist()]
    assert sorted(tuple(row.values()) for row in changes) == [("a", 10, -1), ("b", 20, -1), ("b", 25, 1)]
    assert all(proof.holds for proof in db.prove())


@pytest.mark.parametrize(
    ("policy", "reason"), [("AUTO", None), ("INCREMENTAL STRICT", None), ("FULL", "REFRESH POLICY FULL")]
)
def test_a_policy_is_written_in_sql(db, policy, reason):
    db.sql(f"CREATE MATERIALIZED VIEW totals KEY (kind) REFRESH POLICY {policy} HISTORY '1 day' AS {BY_KIND}")
    assert db.explain("totals").recomputes == reason
    assert db.view("totals").key == ("kind",)


def test_strict_in_sql_refuses_too(db):
    with pytest.raises(BadQuery, match="window sum"):
        db.sql(f"CREATE MATERIALIZED VIEW totals REFRESH POLICY INCREMENTAL STRICT AS {WHOLE}")
    assert db.views == {}


@pytest.mark.parametrize(
    "written", ["SOMETIMES", "INCREMENTAL", "STRICT", "FULL REFRESH POLICY AUTO", "'full'", ""]
)
def test_another_policy_in_sql_is_no_statement(db, written):
    with pytest.raises(BadStatement):
        db.sql(f"CREATE MATERIALIZED VIEW totals REFRESH POLICY {written} AS {BY_KIND}")
    assert db.views == {}


def test_another_policy_in_python_is_refused(db):
    with pytest.raises(BadOption, match="there is no refresh policy 'sometimes'"):
        db.view("totals", BY_KIND, refresh="sometimes")
    assert db.views == {}


def test_a_view_of_another_policy_is_another_view(db):
    totals = db.view("totals", BY_KIND, refresh="full")
    db.refresh(timeout=120)
    assert db.view("totals", BY_KIND, refresh="full").position == totals.position
    with pytest.raises(ViewExists):
        db.view("totals", BY_KIND)
    db.view("totals", BY_KIND, replace=True)
    db.refresh(timeout=120)
    assert db.explain("totals").recomputes is None
    assert (totals.group, rows(totals)) == ("default", [("a", 10), ("b", 20)])
