"""What stops with a view that stops, what cannot be defined, and what must not disturb others."""

from __future__ import annotations

from datetime import timedelta

import pytest

import evert
from evert.errors import BadQuery, Refused, ViewExists
from evert.testing import ManualClock


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(spark, tmp_path, clock):
    with evert.open(tmp_path / "db", background=False, clock=clock) as made:
        yield made


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def test_readers_in_any_group_stop_with_a_view_and_go_on_with_it(db):
    rates = db.table("rates", "id INT, rate INT", key="id")
    rates.upsert({"id": 1, "rate": 2})
    db.view("shares", "SELECT id, 10 div rate AS share FROM rates")
    ranked = db.view("ranked", "SELECT id, row_number() OVER (ORDER BY share) AS place FROM shares")
    db.refresh(timeout=120)
    rates.upsert({"id": 2, "rate": 0})
    db.refresh(timeout=120)
    later = db.view("later", "SELECT count(*) AS n FROM shares")
    db.refresh(timeout=120)
    assert {name: view.state for name, view in db.views.items()} == dict.fromkeys(
        ("shares", "ranked", "later"), "stopped"
    )
    rates.upsert({"id": 2, "rate": 1})
    db.refresh(timeout=120)
    assert rows(ranked) == [(1, 1), (2, 2)]
    assert rows(later) == [(2,)]
    assert all(proof.holds for proof in db.prove())


def test_a_recomputed_view_forgets_too(db, clock):
    topic = db.stream("s", "id INT", retain="1 day", views="forget")
    ranked = db.view("ranked", "SELECT id, row_number() OVER (ORDER BY id) AS place FROM s")
    count = db.view("count", "SELECT count(*) AS n FROM s")
    topic.append([{"id": 1}, {"id": 2}])
    db.refresh(timeout=120)
    db.maintain()
    clock.advance(timedelta(days=2))
    topic.append({"id": 3})
    db.refresh(timeout=120)
    assert rows(ranked) == [(3, 1)]
    assert rows(count) == [(1,)]


def test_a_view_defined_after_a_base_was_made_does_not_read_it(db, clock):
    topic = db.stream("s", "id INT, x INT", retain="1 day")
    first = db.view("first", "SELECT id FROM s")
    topic.append([{"id": 1, "x": 5}, {"id": 2, "x": 6}])
    db.refresh(timeout=120)
    db.log.keep()
    clock.advance(timedelta(days=2))
    from evert.views import bases

    assert bases.fold(db.catalog, db.log) == 1
    topic.append({"id": 3, "x": 7})
    second = db.view("second", "SELECT sum(x) AS x, count(*) AS n FROM s")
    db.refresh(timeout=120)
    assert rows(second) == [(7, 1)]
    db.maintain()
    db.view("first", "SELECT id FROM s WHERE id > 0", replace=True)
    db.refresh(timeout=120)
    assert rows(first) == [(1,), (2,), (3,)]
    assert all(proof.holds for proof in db.prove())


def test_a_refused_function_does_not_take_over(db):
    db.stream("s", "id INT").append([{"id": 1}, {"id": 2}])

    @db.view
    def v(spark):
        return spark.sql("SELECT id, row_number() OVER (ORDER BY id) AS place FROM s")

    def other(spark):
        return spark.sql("SELECT id, row_number() OVER (ORDER BY id DESC) AS place FROM s")

    db.refresh(timeout=120)
    with pytest.raises(ViewExists):
        db.view("v", other)
    db.topic("s").append({"id": 3})
    db.refresh(timeout=120)
    assert rows(db.views["v"]) == [(1, 1), (2, 2), (3, 3)]


def test_a_view_can_be_read_by_a_new_one_while_it_is_replaced_but_not_change_its_group(db):
    db.stream("s", "id INT").append([{"id": 1}])
    db.view("a", "SELECT id FROM s")
    db.refresh(timeout=120)
    db.view("a", "SELECT id FROM s WHERE id > 0", replace=True)
    reader = db.view("b", "SELECT count(*) AS n FROM a")
    db.refresh(timeout=120)
    assert rows(reader) == [(1,)]
    with pytest.raises(Refused, match="cannot move from the group default"):
        db.view("a", "SELECT max(id) OVER (ORDER BY id) AS id FROM s", replace=True)


def test_what_changes_by_itself_or_has_no_columns_is_refused(db):
    db.stream("s", "id INT, t STRING")
    for query in (
        "SELECT timestamp'now' AS at FROM s",
        "SELECT cast('today' AS DATE) AS day FROM s",
        "SELECT aes_encrypt(t, '0123456789abcdef') AS x FROM s",
        lambda spark: spark.table("s").select(),
    ):
        if callable(query):
            query.__qualname__ = query.__name__ = "nothing"
        with pytest.raises(BadQuery):
            db.view("v", query)
    assert db.views == {}
