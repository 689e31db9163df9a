"""What stops with a view that stops, what cannot be defined, and what must not disturb others."""

from __future__ import annotations

from datetime import timedelta

import pytest

import evert
from evert.epoch.epoch import Epochs
from evert.errors import BadQuery, Refused, ViewExists
from evert.testing import ManualClock
from evert.views import bases, changes, upkeep


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
    ranking = "SELECT id, row_number() OVER (ORDER BY share) AS place FROM shares"
    ranked = db.view("ranked", ranking, refresh="full")
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
    ranking = "SELECT id, row_number() OVER (ORDER BY id) AS place FROM s"
    ranked = db.view("ranked", ranking, refresh="full")
    kept = db.view("kept", ranking)
    count = db.view("count", "SELECT count(*) AS n FROM s")
    topic.append([{"id": 1}, {"id": 2}])
    db.refresh(timeout=120)
    db.maintain()
    clock.advance(timedelta(days=2))
    topic.append({"id": 3})
    db.refresh(timeout=120)
    assert rows(ranked) == rows(kept) == [(3, 1)]
    assert rows(count) == [(1,)]


def test_a_view_defined_after_a_base_was_made_does_not_read_it(db, clock):
    topic = db.stream("s", "id INT, x INT", retain="1 day")
    first = db.view("first", "SELECT id FROM s")
    topic.append([{"id": 1, "x": 5}, {"id": 2, "x": 6}])
    db.refresh(timeout=120)
    db.log.keep()
    clock.advance(timedelta(days=2))
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


def test_two_functions_of_one_name_do_not_make_two_views(db):
    """The second would be taken for the first where the views are planned again."""
    db.stream("s", "id INT").append([{"id": 1}, {"id": 2}])

    def above(least):
        def query(spark):
            return spark.table("s").where(f"id > {least}")

        return query

    db.view("all", above(0))
    with pytest.raises(
        Refused, match=r"another function called .*above.*query is what the view all is made of"
    ):
        db.view("some", above(1))
    assert list(db.views) == ["all"]
    db.view("all", above(0))
    db.view("again", above(0))
    db.refresh(timeout=120)
    assert db.view("again").count() == db.view("all").count() == 2


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
        db.view("a", "SELECT max(id) AS id FROM s", refresh="full", replace=True)


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


def test_views_that_catch_up_apart_join_where_the_first_of_them_has_joined(db, monkeypatch):
    stream = db.stream("s", "id INT")
    table = db.table("t", "k INT, d INT", key="k")
    db.view("shares", "SELECT k, 10 div d AS q FROM t")
    table.upsert({"k": 1, "d": 1})
    db.refresh(timeout=120)
    table.upsert({"k": 2, "d": 0})
    db.refresh(timeout=120)
    table.upsert({"k": 2, "d": 5})
    count = db.view("count", "SELECT count(*) AS n FROM s")
    ran = Epochs.run

    def run_and_append(self, work, lease):
        done = ran(self, work, lease)
        monkeypatch.setattr(Epochs, "run", ran)
        stream.append({"id": 1})
        return done

    monkeypatch.setattr(Epochs, "run", run_and_append)
    db.refresh(timeout=120)
    stream.append({"id": 2})
    db.refresh(timeout=120)
    assert rows(count) == [(2,)]
    assert {view.position for view in db.views.values()} == {db.position}
    assert all(proof.holds for proof in db.prove())


def test_a_view_that_missed_changes_of_another_that_are_no_longer_kept_is_built_anew(db, clock, monkeypatch):
    monkeypatch.setattr(changes, "SNAPSHOT_ROWS", 2)
    stream = db.stream("s", "id INT, k INT")
    table = db.table("t", "k INT, d INT", key="k")
    db.view("a", "SELECT id, k FROM s", history="1 minute")
    b = db.view("b", "SELECT a.id, a.k div t.d AS q FROM a JOIN t ON a.k = t.k")
    table.upsert({"k": 1, "d": 1})
    stream.append({"id": 1, "k": 1})
    db.refresh(timeout=120)
    table.upsert({"k": 1, "d": 0})
    stream.append([{"id": 2, "k": 1}, {"id": 3, "k": 1}])
    db.refresh(timeout=120)
    assert b.state == "stopped"
    for number in range(2):
        clock.advance(600)
        stream.append([{"id": 10 * number + j, "k": 2} for j in range(4, 9)])
        db.refresh(timeout=120)
        clock.advance(600)
        upkeep.keep(db.catalog, db.log)
    table.upsert({"k": 1, "d": 1})
    db.refresh(timeout=120)
    assert rows(b) == [(1, 1), (2, 1), (3, 1)]
    assert all(proof.holds for proof in db.prove())


def test_a_backlog_is_not_cut_where_a_compacted_table_lacks_what_it_had(db, monkeypatch):
    monkeypatch.setattr("evert.epoch.schedule.MOST_EVENTS", 2)
    db.stream("s", "id INT, k INT")
    db.table("t", "k INT, n INT", key="k")
    view = db.view("v", "SELECT s.id, t.n FROM s JOIN t ON s.k = t.k")
    for number in range(7):
        with db.transaction() as tx:
            tx.append("s", [{"id": number, "k": 0}])
            tx.upsert("t", [{"k": 0, "n": number}])
        if number == 0:
            db.refresh(timeout=120)
    assert db.compact("t") > 0
    seen = []
    db.refresh(timeout=120, on_epoch=lambda done: seen.append((done.position, rows(view))))
    assert all({n for _, n in found} == {position - 1} for position, found in seen)


def test_a_function_view_without_its_code_stops_its_readers_only_and_goes_on_with_it(spark, tmp_path):
    def everything(spark):
        return spark.table("s")

    with evert.open(tmp_path / "db", background=False) as db:
        db.stream("s", "id INT").append({"id": 1})
        db.view("everything", everything)
        db.view("count", "SELECT count(*) AS n FROM everything")
        db.view("other", "SELECT count(*) AS n FROM s")
        db.refresh(timeout=120)
    with evert.open(tmp_path / "db", background=False) as db:
        db.topic("s").append({"id": 2})
        db.refresh(timeout=120)
        states = {name: view.state for name, view in db.views.items()}
        assert states == {"everything": "absent", "count": "stopped", "other": "live"}
        db.view("everything", everything)
        db.refresh(timeout=120)
        assert rows(db.views["count"]) == rows(db.views["other"]) == [(2,)]


def test_a_stream_that_begins_to_forget_makes_a_maximum_be_planned_anew(db, clock):
    stream = db.stream("s", "id INT", retain="1 hour")
    most = db.view("most", "SELECT max(id) AS id FROM s")
    stream.append({"id": 9})
    db.refresh(timeout=120)
    db.maintain()
    db.alter("s", views="forget")
    clock.advance(7200)
    stream.append({"id": 1})
    db.refresh(timeout=120)
    db.refresh(timeout=120)
    assert rows(most) == [(1,)]
    assert db.explain("most").recomputes is None


def test_a_stopped_view_does_not_keep_the_runner_awake(db):
    table = db.table("t", "k INT, d INT", key="k")
    db.view("shares", "SELECT k, 10 div d AS q FROM t")
    db.view("readers", "SELECT count(*) AS n FROM shares")
    table.upsert({"k": 1, "d": 0})
    db.refresh(timeout=120)
    before = db.catalog.version()
    db.run(seconds=1)
    assert db.catalog.version() - before < 20


def test_a_view_stops_though_the_row_it_fails_on_cannot_be_found_in_a_compacted_table(db):
    db.table("t", "k INT, n INT", key="k")
    view = db.view("v", "SELECT k, 10 DIV n AS share FROM t")
    beside = db.view("w", "SELECT count(*) AS n FROM t")
    for number in (1, 0, 2, 3, 0):
        db.topic("t").upsert([{"k": 0, "n": number}, {"k": number + 1, "n": 1}])
    assert db.compact("t") > 0
    db.refresh(timeout=120)
    assert view.state == "stopped"
    assert "DIVIDE_BY_ZERO" in view.error["message"]
    assert view.error["position"] is None
    assert rows(beside) == [(5,)]
    db.topic("t").upsert([{"k": 0, "n": 5}])
    db.refresh(timeout=120)
    assert rows(view) == [(0, 2), (1, 10), (2, 10), (3, 10), (4, 10)]


def test_a_view_that_failed_while_it_was_built_in_pieces_is_built_when_its_data_are_mended(db, monkeypatch):
    monkeypatch.setattr("evert.epoch.schedule.MOST_EVENTS", 1)
    table = db.table("t", "k INT, d INT", key="k")
    view = db.view("shares", "SELECT k, 10 div d AS q FROM t")
    table.upsert({"k": 1, "d": 0})
    table.upsert({"k": 2, "d": 5})
    db.refresh(timeout=120)
    assert view.state == "stopped"
    table.upsert({"k": 1, "d": 2})
    table.upsert({"k": 3, "d": 1})
    db.refresh(timeout=120)
    assert rows(view) == [(1, 5), (2, 2), (3, 10)]
