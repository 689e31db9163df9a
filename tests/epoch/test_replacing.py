"""Replacements that wait, that are given up, and the way back."""

from __future__ import annotations

import gc
from datetime import UTC, datetime

import pytest

import evert
from evert.doctor import examine_database
from evert.epoch.epoch import Epochs
from evert.errors import Absent, BadOption, NoReplacement, NothingEarlier, NotReady, Refused
from evert.testing import ManualClock

ALL = "SELECT id, n FROM s"
FEW = "SELECT id, n FROM s WHERE n < 10"
MANY = "SELECT id, n FROM s UNION ALL SELECT id, n FROM s"


def everything(spark):
    return spark.table("s")


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(spark, tmp_path, clock):
    with evert.open(tmp_path / "db", background=False, clock=clock) as made:
        made.stream("s", "id INT, n INT").append([{"id": 1, "n": 1}, {"id": 2, "n": 20}])
        yield made


def refresh(db):
    return db.refresh(timeout=120)


def append(db, *rows):
    db.topic("s").append([{"id": number, "n": n} for number, n in rows])


def rows(view):
    return sorted(tuple(row.values()) for row in view.rows())


def differing(found):
    return sorted(tuple(row.values()) for row in found.rows.to_pylist())


def proved(db):
    return all(proof.holds for proof in db.prove())


def left_over(db):
    """What is there of views that is not of the views of today."""
    db.maintain()
    with db.catalog.read() as tx:
        known = {file for t in ("runs", "changes") for (file,) in tx.all(f"SELECT file FROM {t}")}
        found = [
            *tx.all("SELECT id FROM nodes WHERE view NOT IN (SELECT id FROM views)"),
            *tx.all("SELECT id FROM runs WHERE node NOT IN (SELECT state FROM nodes)"),
            *tx.all("SELECT id FROM changes WHERE feed NOT IN (SELECT feed FROM views)"),
            *tx.all("SELECT topic FROM holds WHERE holder NOT IN (SELECT id FROM views)"),
            *tx.all("SELECT id FROM views WHERE folded IS NULL"),
            *tx.all("SELECT file FROM garbage"),
        ]
    there = {f"{room}/{path.name}" for room in ("state", "views") for path in (db.path / room).glob("*")}
    return found + sorted(there - known)


def test_going_back_restores_the_query_and_going_back_again_goes_forward(db):
    view = db.view("v", ALL, key="id", history="3 days")
    total = db.view("total", "SELECT count(*) AS n FROM v")
    refresh(db)
    assert db.earlier("v") == []
    with pytest.raises(NothingEarlier, match="the view v has no earlier definition"):
        db.rollback("v")
    db.view("v", FEW, replace=True)
    assert db.earlier("v") == [], "it is not replaced yet"
    refresh(db)
    (first,) = db.earlier("V")
    assert (first.query, first.options.key, first.position) == (ALL, ("id",), db.position)
    seen = db.position
    assert db.rollback("V").name == "v"
    assert rows(view) == [(1, 1)], "the present one is read until the other is built"
    append(db, (3, 30))
    refresh(db)
    assert rows(view) == [(1, 1), (2, 20), (3, 30)]
    assert rows(total) == [(3,)]
    assert (view.query, view.definition.options.history) == (ALL, 3 * 86_400_000_000)
    kinds = {change.kind for change in view.changes(after=seen)}
    assert kinds == {"delta"}, "readers follow"
    db.rollback("v")
    refresh(db)
    assert (view.query, rows(view), rows(total)) == (FEW, [(1, 1)], [(1,)])
    assert [one.query for one in db.earlier("v")] == [ALL, FEW, ALL]
    assert proved(db)


def test_the_newest_definition_that_differs_is_the_one_before(db, clock):
    view = db.view("v", ALL)
    refresh(db)
    for query in (FEW, MANY):
        clock.advance(60)
        db.view("v", query, replace=True)
        refresh(db)
    assert [one.query for one in db.earlier("v")] == [FEW, ALL]
    assert [one.at for one in db.earlier("v")] == [
        datetime.fromtimestamp(clock.now() / 1e6 - ago, UTC) for ago in (0, 60)
    ]
    db.rollback("v")
    db.rollback("v")
    refresh(db)
    assert view.query == FEW, "asked for twice before it was built, it is still the same"
    assert [one.query for one in db.earlier("v", forget=True)] == [MANY, FEW, ALL]
    assert db.earlier("v") == []
    with pytest.raises(NothingEarlier):
        db.rollback("v")


def test_a_dropped_view_has_no_past(db):
    db.view("v", ALL)
    refresh(db)
    db.view("v", FEW, replace=True)
    refresh(db)
    db.drop("v")
    assert left_over(db) == []
    db.view("v", MANY)
    assert db.earlier("v") == []


def test_functions_come_back_where_their_code_is(spark, tmp_path):
    def inner(spark):
        return spark.table("s").where("n < 10")

    with evert.open(tmp_path / "db", background=False) as db:
        db.stream("s", "id INT, n INT").append([{"id": 1, "n": 1}, {"id": 2, "n": 20}])
        for function in (inner, everything):
            db.view("v", function, replace=True)
            db.view("w", everything if function is inner else inner, replace=True)
            refresh(db)
        assert [one.kind for one in db.earlier("v")] == ["function"]
        db.rollback("v")
        refresh(db)
        assert rows(db.views["v"]) == [(1, 1)]
        db.rollback("v")
        refresh(db)
    with evert.open(tmp_path / "db", background=False) as db:
        with pytest.raises(Absent, match="the code of the view v"):
            db.rollback("v")
        assert len(db.status()) == 2, "nothing was written"
        db.rollback("w")
        refresh(db)
        assert rows(db.views["w"]) == [(1, 1), (2, 20)]


def test_a_view_that_replaces_itself_leaves_nothing_earlier(db):
    db.table("t", "k INT, n INT", key="k").upsert({"k": 1, "n": 5})
    view = db.view("v", "SELECT k, n FROM t WHERE n < 10")
    refresh(db)
    db.view("v", "SELECT k, n FROM t", replace=True, hold=True)
    refresh(db)
    db.alter("t", "k INT, n BIGINT")
    db.topic("t").upsert({"k": 2, "n": 5_000_000_000})
    refresh(db)
    refresh(db)
    assert db.earlier("v") == []
    assert rows(view) == [(1, 5)]
    found = db.compare("v")
    assert (differing(found), found.position) == ([(2, 5_000_000_000, 1)], db.position)
    db.switch("v")
    refresh(db)
    assert rows(view) == [(1, 5), (2, 5_000_000_000)]
    assert proved(db)
    assert left_over(db) == []


def test_a_held_replacement_waits_is_compared_and_then_takes_over(db):
    view = db.view("v", ALL)
    total = db.view("total", "SELECT count(*) AS n FROM v")
    refresh(db)
    with pytest.raises(NoReplacement, match="the view v has no replacement"):
        db.compare("v")
    db.view("v", FEW, replace=True, hold=True)
    with pytest.raises(NotReady, match="the replacement of v is being built"):
        db.compare("v")
    for number in range(3, 6):
        position = refresh(db)
        assert position == db.position, "nothing is written only because one waits"
        assert rows(total) == [(len(rows(view)),)]
        found = db.compare("v")
        assert (found.view, found.position) == ("v", position)
        assert {weight for *_, weight in differing(found)} == {-1}
        assert (found.added, found.removed, found.same) == (0, number - 2, 1)
        append(db, (number, number * 10))
    refresh(db)
    old, new, _ = db.status()
    assert (old.held, old.replacing, new.held, new.replacing, new.state) == (False, False, True, True, "live")
    assert (new.position, new.lag_events) == (db.position, 0)
    seen = view.position
    db.switch("v")
    db.switch("v")
    assert len(rows(view)) == 5, "with the next epoch"
    refresh(db)
    assert (rows(view), rows(total)) == ([(1, 1)], [(1,)])
    (change,) = view.changes(after=seen)
    assert (change.kind, change.rows.num_rows) == ("delta", 4)
    with pytest.raises(NoReplacement):
        db.switch("v")
    assert [one.query for one in db.earlier("v")] == [ALL]
    assert proved(db)
    assert left_over(db) == []


def test_rows_that_come_several_times_differ_by_their_weight(db):
    db.view("v", ALL)
    db.view("v", MANY, replace=True, hold=True)
    append(db, (1, 1))
    refresh(db)
    found = db.compare("v")
    assert differing(found) == [(1, 1, 2), (2, 20, 1)]
    assert (found.old, found.new, found.added, found.removed, found.same) == (3, 6, 3, 0, 3)


def test_an_abandoned_replacement_leaves_nothing(db):
    view = db.view("v", ALL)
    refresh(db)
    with pytest.raises(NoReplacement):
        db.abandon("v")
    for built in (False, True):
        db.view("v", FEW, replace=True, hold=built)
        if built:
            refresh(db)
        db.abandon("v")
        gc.collect()
        assert left_over(db) == []
    append(db, (3, 30))
    refresh(db)
    assert len(rows(view)) == 3
    assert db.earlier("v") == []
    assert [c for c in examine_database(db.path, deep=True) if c.level == "error"] == []


def test_a_replacement_that_is_given_up_during_its_epoch_does_not_come_back(db, monkeypatch):
    view = db.view("v", ALL)
    refresh(db)
    db.view("v", FEW, replace=True, hold=True)
    refresh(db)
    ran = Epochs._computed

    def computed(self, work):
        found = ran(self, work)
        if not work.views[0].current:
            db.abandon("v")
        return found

    monkeypatch.setattr(Epochs, "_computed", computed)
    append(db, (3, 30))
    refresh(db)
    assert [one.replacing for one in db.status()] == [False]
    assert len(rows(view)) == 3
    with db.catalog.read() as tx:
        assert tx.all("SELECT id FROM nodes WHERE view NOT IN (SELECT id FROM views)") == []


def test_what_waits_survives_the_process(spark, tmp_path):
    folder = tmp_path / "db"
    with evert.open(folder, background=False) as db:
        db.stream("s", "id INT, n INT").append([{"id": 1, "n": 1}, {"id": 2, "n": 20}])
        db.view("v", ALL)
        refresh(db)
        db.view("v", FEW, replace=True, hold=True)
    with evert.open(folder, background=False) as db:
        refresh(db)
        assert differing(db.compare("v")) == [(2, 20, -1)]
        append(db, (3, 30))
        db.run(seconds=2)
        assert db.compare("v").position == db.position
        db.switch("v")
    with evert.open(folder, background=False) as db:
        refresh(db)
        assert rows(db.views["v"]) == [(1, 1)]
        db.rollback("v")
    with evert.open(folder, background=False) as db:
        refresh(db)
        assert len(rows(db.views["v"])) == 3
        assert left_over(db) == []


def test_a_held_replacement_that_fails_stops_alone_and_goes_on_when_its_data_are_mended(db):
    table = db.table("t", "k INT, d INT", key="k")
    table.upsert({"k": 1, "d": 2})
    view = db.view("v", "SELECT k, d FROM t")
    refresh(db)
    db.view("v", "SELECT k, cast(10 div d AS INT) AS d FROM t", replace=True, hold=True)
    refresh(db)
    table.upsert({"k": 2, "d": 0})
    refresh(db)
    assert (rows(view), view.state) == ([(1, 2), (2, 0)], "live")
    new = db.status()[1]
    assert (new.state, new.held, new.error["position"]) == ("stopped", True, db.position)
    for refused in (db.compare, db.switch):
        with pytest.raises(Refused, match="the replacement of v has stopped"):
            refused("v")
    table.upsert({"k": 2, "d": 5})
    refresh(db)
    assert differing(db.compare("v")) == [(1, 2, -1), (1, 5, 1), (2, 2, 1), (2, 5, -1)]
    db.abandon("v")
    assert left_over(db) == []


def test_a_stopped_view_goes_on_though_its_replacement_waits(db):
    table = db.table("t", "k INT, d INT", key="k")
    view = db.view("v", "SELECT k, 10 div d AS d FROM t")
    table.upsert({"k": 1, "d": 1})
    refresh(db)
    table.upsert({"k": 2, "d": 0})
    refresh(db)
    db.view("v", "SELECT k, try_divide(10, d) AS d FROM t", replace=True, hold=True)
    refresh(db)
    append(db, (3, 30))
    refresh(db)
    old, new = db.status()
    assert (old.state, new.state, new.position) == ("stopped", "live", db.position)
    with pytest.raises(evert.errors.Stopped):
        db.compare("v")
    table.upsert({"k": 2, "d": 5})
    refresh(db)
    assert rows(view) == [(1, 10), (2, 2)]
    with pytest.raises(Refused, match="d is DOUBLE and was BIGINT"):
        db.compare("v")


def test_other_columns_are_named_and_readers_keep_theirs(db):
    db.view("v", ALL)
    refresh(db)
    db.view("v", "SELECT id, cast(n AS BIGINT) AS n, 1 AS one FROM s", replace=True, hold=True)
    refresh(db)
    with pytest.raises(Refused, match="only the new one has one; n is BIGINT and was INT"):
        db.compare("v")
    db.view("reader", "SELECT sum(n) AS n FROM v")
    with pytest.raises(Refused, match="cannot change its columns while reader reads it"):
        db.switch("v")
    db.drop("reader")
    db.switch("v")
    with pytest.raises(Refused, match="v is being replaced by one of other columns"):
        db.view("reader", "SELECT sum(n) AS n FROM v")
    refresh(db)
    assert len(rows(db.views["v"])[0]) == 3
    db.view("v", "SELECT n, id, 1 AS one FROM s", replace=True, hold=True)
    refresh(db)
    with pytest.raises(Refused, match="n is INT and was BIGINT"):
        db.compare("v")


def test_a_view_has_one_replacement_which_the_last_word_decides(db):
    view = db.view("v", ALL)
    refresh(db)
    with pytest.raises(BadOption, match="only a replacement can be held"):
        db.view("v", FEW, hold=True)
    db.view("v", FEW, replace=True, hold=True)
    db.view("v", MANY, replace=True, hold=True)
    refresh(db)
    assert db.compare("v").new == 4
    db.view("v", ALL, replace=True)
    assert db.compare("v").new == 4, "what waits is given up by name only"
    db.view("v", MANY, replace=True)
    refresh(db)
    assert len(rows(view)) == 4
    db.view("v", FEW, replace=True)
    db.view("v", MANY, replace=True)
    refresh(db)
    assert len(rows(view)) == 4, "what it is already is not replaced, and what was to replace it goes"
    assert left_over(db) == []


def test_recomputed_views_and_views_of_views_wait_too(db):
    db.view("base", ALL)
    ranked = db.view("ranked", "SELECT id, row_number() OVER (ORDER BY n) AS place FROM base")
    total = db.view("total", "SELECT sum(n) AS n FROM base")
    refresh(db)
    db.view(
        "ranked", "SELECT id, row_number() OVER (ORDER BY n DESC) AS place FROM base", replace=True, hold=True
    )
    db.view("total", "SELECT sum(n) + 1 AS n FROM base", replace=True, hold=True)
    for number in range(3, 5):
        append(db, (number, number * 10))
        refresh(db)
        assert (db.compare("ranked").added, differing(db.compare("total"))[1][1]) == (2 * (number // 2), 1)
    db.view("base", MANY, replace=True)
    refresh(db)
    (old, minus), (new, plus) = sorted(differing(db.compare("total")))
    assert (new - old, minus, plus) == (1, -1, 1)
    db.switch("ranked")
    db.switch("total")
    refresh(db)
    assert rows(total) == [(2 * (1 + 20 + 30 + 40) + 1,)]
    assert len(rows(ranked)) == 8
    assert proved(db)


def test_a_replacement_that_waits_forgets_what_its_view_forgets(db, clock):
    stream = db.stream("f", "id INT", retain="1 day", views="forget")
    view = db.view("v", "SELECT count(*) AS n FROM f")
    stream.append([{"id": 1}, {"id": 2}])
    refresh(db)
    db.view("v", "SELECT count(*) * 10 AS n FROM f", replace=True, hold=True)
    refresh(db)
    db.maintain()
    clock.advance(2 * 86_400)
    stream.append({"id": 3})
    refresh(db)
    assert rows(view) == [(1,)]
    assert differing(db.compare("v")) == [(1, -1), (10, 1)]
    assert proved(db)
