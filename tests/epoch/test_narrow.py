"""Of a table, a view keeps the columns that it reads; views that come together, what any of them reads."""

from __future__ import annotations

import pytest

import evert
from evert.plan.graph import Plan

COUNTRIES = "SELECT country, count(*) AS n FROM people GROUP BY country"
CITIES = "SELECT city, max(age) AS oldest FROM people GROUP BY city"
NAMES = "SELECT id, name FROM people WHERE country = 'CH'"
ALL = "SELECT * FROM people WHERE age > 1"


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        made.table("people", "name STRING, country STRING, city STRING, age INT, id INT", key="id")
        yield made


def write(db, number):
    people = [
        {
            "id": n,
            "name": f"n{number}",
            "country": ["CH", "AT"][n % 2],
            "city": f"c{(n + number) % 3}",
            "age": n,
        }
        for n in range(number, number + 6)
    ]
    db.topic("people").upsert(people)
    db.topic("people").delete([{"id": number + 1}])


def forward(db, number):
    write(db, number)
    db.refresh(timeout=120)
    assert all(proof.holds for proof in db.prove())


def kept(db):
    """The columns of each state of the table, by the views that have it."""
    with db.catalog.read() as tx:
        rows = tx.all(
            "SELECT n.state, n.fingerprint, v.name FROM nodes n JOIN views v ON v.id = n.view"
            " WHERE n.kind = 'upsert' ORDER BY v.name"
        )
    found: dict[int, tuple[str, list[str]]] = {}
    for state, name, view in rows:
        columns = name.partition(":")[2] or "all"
        found.setdefault(state, (columns, []))[1].append(view)
    return sorted(found.values())


def test_only_what_a_view_reads_is_kept(db):
    db.view("countries", COUNTRIES)
    forward(db, 0)
    forward(db, 3)
    assert kept(db) == [("1,4", ["countries"])]


def test_a_view_that_reads_all_keeps_all(db):
    db.view("everybody", ALL)
    forward(db, 0)
    assert kept(db) == [("all", ["everybody"])]


def test_views_that_come_together_keep_what_any_of_them_reads(db):
    db.view("countries", COUNTRIES)
    db.view("cities", CITIES)
    forward(db, 0)
    forward(db, 3)
    assert kept(db) == [("1,2,3,4", ["cities", "countries"])]


def test_a_later_view_has_what_is_there_if_that_is_enough(db):
    db.view("names", NAMES)
    forward(db, 0)
    db.view("countries", COUNTRIES)
    forward(db, 3)
    assert kept(db) == [("0,1,4", ["countries", "names"])]
    db.drop("names")
    forward(db, 6)


def test_a_later_view_that_needs_more_keeps_all_and_so_do_those_after_it(db):
    db.view("countries", COUNTRIES)
    forward(db, 0)
    db.view("cities", CITIES)
    forward(db, 3)
    db.view("names", NAMES)
    forward(db, 6)
    assert kept(db) == [("1,4", ["countries"]), ("all", ["cities", "names"])]
    db.drop("cities")
    forward(db, 9)


def test_what_a_node_above_shares_does_not_hide_what_its_table_lacks(db):
    """Two views have the parts of a third one, on tables of other columns than it needs."""
    db.stream("visits", "id INT, person INT")
    db.view("countries", "SELECT country, count(*) AS n FROM people GROUP BY country")
    forward(db, 0)
    db.view("ages", "SELECT age, count(*) AS n FROM people GROUP BY age")
    forward(db, 3)
    db.view(
        "both",
        "SELECT 'country' AS what, country AS value, n FROM"
        " (SELECT country, count(*) AS n FROM people GROUP BY country)"
        " UNION ALL SELECT 'age', CAST(age AS STRING), n FROM"
        " (SELECT age, count(*) AS n FROM people GROUP BY age)",
    )
    forward(db, 6)
    db.drop("countries")
    forward(db, 9)
    db.drop("ages")
    forward(db, 12)


def test_a_replacement_keeps_what_it_reads_itself(db):
    db.view("shown", COUNTRIES)
    forward(db, 0)
    db.view("shown", CITIES, replace=True)
    forward(db, 3)
    assert kept(db) == [("2,3,4", ["shown"])]


def test_a_new_process_goes_on_with_what_is_kept(db, tmp_path):
    db.view("countries", COUNTRIES)
    forward(db, 0)
    with evert.open(tmp_path / "db", background=False) as again:
        forward(again, 3)
        assert kept(again) == [("1,4", ["countries"])]


def test_a_plan_says_which_columns_it_needs(db):
    db.view("countries", COUNTRIES)
    plan: Plan = db._runner().planning.plan(db.view("countries").definition)
    assert [node.needs for node in plan.nodes if node.kind == "upsert"] == [frozenset({1, 4})]
