"""Of a table, a view keeps the columns that it reads; views that come together, what any of them reads."""

from __future__ import annotations

import pytest

import evert
from evert.epoch import direct
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


def test_views_that_read_all_columns_together_keep_all(db):
    for name, query in (("countries", COUNTRIES), ("cities", CITIES), ("names", NAMES)):
        db.view(name, query)
    forward(db, 0)
    db.view("everybody", ALL)
    forward(db, 3)
    assert kept(db) == [("all", ["cities", "countries", "everybody", "names"])]


AGES = "SELECT age, count(*) AS n FROM people GROUP BY age"


def test_nodes_above_are_taken_over_though_no_table_has_all_that_the_new_view_needs(db):
    """Each of two views has a part of a third one, on a table of other columns than it needs."""
    db.view("shown", COUNTRIES)
    forward(db, 0)
    db.view("shown", AGES, replace=True, hold=True)
    forward(db, 3)
    db.view("countries", COUNTRIES)
    forward(db, 6)
    db.switch("shown")
    forward(db, 9)
    assert kept(db) == [("1,4", ["countries"]), ("3,4", ["shown"])]
    db.view(
        "both",
        f"SELECT country AS value, n FROM ({COUNTRIES}) UNION ALL SELECT CAST(age AS STRING), n FROM ({AGES})",
    )
    forward(db, 12)
    assert kept(db) == [("1,4", ["countries"]), ("3,4", ["shown"]), ("all", ["both"])]
    assert "shared with countries" in str(db.explain("both"))
    assert "shared with shown" in str(db.explain("both"))
    forward(db, 15)
    db.drop("countries")
    forward(db, 18)
    db.drop("shown")
    forward(db, 21)
    forward(db, 24)


def test_large_ranges_are_read_in_these_columns_only(db, monkeypatch):
    monkeypatch.setattr("evert.epoch.inputs.SMALL", 0)
    db.view("countries", COUNTRIES)
    for number in range(0, 9, 3):
        write(db, number)
        db.log.keeper.seal("people")
        forward(db, number + 1)
    read = []
    slices = direct.slices

    def noted(*given):
        found = slices(*given)
        read.extend(found[0] if found else [])
        return found

    monkeypatch.setattr(direct, "slices", noted)
    write(db, 20)
    db.log.keeper.seal("people")
    db.refresh(timeout=120)
    assert all(proof.holds for proof in db.prove())
    columns = ("country", "id", "_position", "_offset", "_deleted")
    assert {tuple(filter(None, one.columns)) for one in read} == {columns}


def test_a_view_that_stops_and_goes_on_has_its_columns_still(db):
    db.view("shares", "SELECT id, 100 div age AS share FROM people WHERE age < 100")
    db.view("countries", COUNTRIES)
    forward(db, 1)
    db.topic("people").upsert([{"id": 50, "age": 0, "country": "CH"}])
    db.refresh(timeout=120)
    assert db.view("shares").state == "stopped"
    write(db, 4)
    db.topic("people").delete([{"id": 50}])
    db.refresh(timeout=120)
    forward(db, 7)
    assert kept(db) == [("1,3,4", ["countries", "shares"])]


def test_a_view_whose_state_is_damaged_is_built_anew_in_its_columns(db):
    db.view("countries", COUNTRIES)
    forward(db, 0)
    with db.catalog.read() as tx:
        files = [file for (file,) in tx.all("SELECT DISTINCT file FROM runs")]
    for file in files:
        path = db.path / file
        path.write_bytes(path.read_bytes()[:-200])
    write(db, 3)
    db.refresh(timeout=120)
    forward(db, 6)
    assert kept(db) == [("1,4", ["countries"])]


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
