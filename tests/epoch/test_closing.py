"""Windows that are shown once, when the watermark has closed them, and what comes too late for them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

import evert
from evert.epoch import inputs, schedule
from evert.errors import BadQuery

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TUMBLING = "SELECT window, k, count(*) AS n FROM clicks GROUP BY window(at, '10 minutes'), k"
VIEWS = {
    "tumbling": TUMBLING,
    "hopping": "SELECT window.end AS e, k, sum(id) AS s FROM clicks WHERE id > 3"
    " GROUP BY window(at, '10 minutes', '5 minutes'), k HAVING count(*) > 1",
    "sessions": "SELECT session_window AS w, k, count(*) AS n FROM clicks"
    " GROUP BY session_window(at, '3 minutes'), k",
    "top": "SELECT w, k, n FROM (SELECT w, k, n, row_number() OVER (PARTITION BY w ORDER BY n DESC, k) AS r FROM"
    " (SELECT window(at, '10 minutes') AS w, k, count(*) AS n FROM clicks GROUP BY 1, 2)) WHERE r <= 2",
}


@pytest.fixture
def make(spark, tmp_path):
    made = []

    def make(name):
        db = evert.open(tmp_path / name)
        db.stream("clicks", "id BIGINT, k STRING, at TIMESTAMP", event_time="at", lateness="5 minutes")
        db.table("users", "k STRING, name STRING", key="k")
        db.topic("users").upsert([{"k": k, "name": f"user {k}"} for k in "xy"])
        made.append(db)
        return db

    yield make
    for db in made:
        db.close()


def minute(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


def click(number: float, k="x", id=7):
    return {"id": id, "k": k, "at": minute(number)}


def closed(db, view="v"):
    return sorted((row["window"]["start"].minute, row["n"]) for row in db.views[view].rows())


def test_a_window_is_shown_once_when_the_watermark_has_passed_its_end(make):
    db = make("once")
    db.view("v", TUMBLING, emit="close")
    db.topic("clicks").append([click(1), click(2), click(14.99)])
    db.refresh()
    assert closed(db) == []
    db.topic("clicks").append(click(15))
    db.refresh()
    assert closed(db) == [(0, 2)]
    changes = [row for change in db.views["v"].changes(after=0) for row in change.rows.to_pylist()]
    assert [row["_weight"] for row in changes] == [1]


def test_what_comes_after_the_close_changes_nothing_and_is_kept_aside(make):
    db = make("late")
    db.view("v", TUMBLING, emit="close")
    db.topic("clicks").append([click(1), click(30)])
    db.refresh()
    db.topic("clicks").append([click(2, id=8), click(24.5, id=9)])
    db.refresh()
    assert closed(db) == [(0, 1)]
    assert [row["id"] for row in db.views["v.late"].rows()] == [8]
    assert all(proof.holds for proof in db.prove())


def test_one_epoch_shows_what_many_would_have_shown(make):
    epochs, once = make("epochs"), make("once")
    for db in (epochs, once):
        db.view("v", TUMBLING, emit="close")
    for rows in ([click(1)], [click(30)], [click(2)], [click(29)], [click(50)]):
        for db in (epochs, once):
            db.topic("clicks").append(rows)
        epochs.refresh()
    once.refresh()
    assert closed(epochs) == closed(once) == [(0, 1), (20, 1), (30, 1)]
    assert epochs.views["v.late"].rows() == once.views["v.late"].rows() != []


@pytest.mark.parametrize("seed", [1, 2])
def test_any_windows_over_any_events_in_any_cuts(make, seed, monkeypatch):
    steps, cut = make("steps"), make("cut")
    for db in (steps, cut):
        for name, query in VIEWS.items():
            db.view(name, query, emit="close")
    draw = random.Random(seed)
    for step in range(5):
        for _ in range(draw.randrange(3)):
            at = step * 10
            rows = [
                click(at + draw.uniform(-30, 10), draw.choice("xyz"), draw.randrange(50)) for _ in range(6)
            ]
            for db in (steps, cut):
                db.topic("clicks").append(rows)
        steps.refresh()
        assert [proof.view for proof in steps.prove() if not proof.holds] == []
    monkeypatch.setattr(schedule, "MOST_EVENTS", 7)
    cut.refresh()
    for name in steps.views:
        mine, theirs = (sorted(map(repr, db.views[name].rows())) for db in (steps, cut))
        assert mine == theirs, name


def test_large_ranges_are_parted_in_the_same_way(make, monkeypatch):
    monkeypatch.setattr(inputs, "SMALL", 3)
    db = make("large")
    for name in ("tumbling", "sessions"):
        db.view(name, VIEWS[name], emit="close")
    db.view("length", TUMBLING.replace("FROM clicks", "FROM clicks WHERE reverse(k) <> 'a'"), emit="close")
    for rows in ([click(n) for n in range(8)], [click(60)], [click(n) for n in range(8)], [click(90)]):
        db.topic("clicks").append(rows)
    db.maintain()
    db.topic("clicks").append([click(3), click(95)])
    db.refresh()
    assert all(proof.holds for proof in db.prove())
    assert len(db.views["tumbling.late"].rows()) == 9


def test_a_promise_closes_windows_without_an_event(make):
    db = make("promise")
    db.view("v", TUMBLING, emit="close")
    db.topic("clicks").append(click(1))
    db.topic("clicks").no_more_before(minute(10))
    db.refresh()
    assert closed(db) == [(0, 1)]


def test_closed_windows_are_joined_with_tables_in_a_view_of_their_own(make):
    db = make("tables")
    db.view("v", TUMBLING, emit="close")
    db.view("named", "SELECT v.window, name, n FROM v JOIN users USING (k)")
    db.topic("clicks").append([click(1), click(70)])
    db.topic("users").upsert({"k": "x", "name": "another"})
    db.refresh()
    assert [row["name"] for row in db.views["named"].rows()] == ["another"]


def test_the_statement_says_so(make):
    db = make("sql")
    db.sql(f"CREATE MATERIALIZED VIEW v EMIT ON WINDOW CLOSE AS {TUMBLING}")
    db.sql(f"CREATE MATERIALIZED VIEW w EMIT CHANGES AS {TUMBLING}")
    db.topic("clicks").append([click(1), click(30)])
    db.refresh()
    assert (len(closed(db, "v")), len(closed(db, "w"))) == (1, 2)


def test_queries_may_ask_where_a_watermark_stands(make):
    db = make("asked")
    db.view("settled", "SELECT id FROM clicks WHERE at < watermark('clicks') - INTERVAL 1 MINUTE")
    db.view("late", "SELECT id, watermark('clicks') - at AS behind FROM clicks")
    db.view("mark", "SELECT watermark('clicks') AS mark")
    for number in (1, 30, 2):
        db.topic("clicks").append(click(number, id=number))
        db.refresh()
        assert all(proof.holds for proof in db.prove())
    assert sorted(row["id"] for row in db.views["settled"].rows()) == [1, 2]
    assert [row["mark"] for row in db.views["mark"].rows()] == [minute(25)]
    assert {row["id"]: row["behind"] for row in db.views["late"].rows()}[1] == timedelta(minutes=24)
    with pytest.raises(evert.EvertError):
        db.drop("clicks")


def test_a_view_counts_the_stragglers_that_correct_it(make):
    db = make("corrections")
    db.view("v", TUMBLING)
    db.view("above", "SELECT k, sum(n) AS n FROM v GROUP BY k")
    db.topic("clicks").append([click(1), click(30)])
    db.topic("clicks").append([click(2), click(24.9), click(25)])
    assert [one.corrections for one in db.status()] == [0, 0]
    db.refresh()
    assert [one.corrections for one in db.status()] == [2, 2]


def test_dropping_the_view_drops_what_was_late_for_it(make):
    db = make("drop")
    db.view("v", TUMBLING, emit="close")
    db.refresh()
    db.drop("v")
    assert list(db.views) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, count(*) AS n FROM clicks GROUP BY k",
        "SELECT k, count(*) AS n FROM clicks GROUP BY k, window(at, '10 minutes')",
        "SELECT window, name, count(*) AS n FROM clicks JOIN users USING (k) GROUP BY window(at, '1 hour'), name",
    ],
)
def test_a_query_without_windows_of_a_stream_cannot_wait_for_them(make, query):
    db = make("refused")
    with pytest.raises(BadQuery):
        db.view("v", query, emit="close")
    assert list(db.views) == []


def test_counts_of_the_same_windows_may_be_joined_and_others_not(make):
    db = make("several")
    counted = "SELECT k, count(*) AS n, window(at, '{}') AS w FROM clicks GROUP BY k, 3"
    most = f"SELECT max(n) AS n, w FROM ({counted}) GROUP BY w"
    joined = f"SELECT c.w, c.k, c.n FROM ({counted}) c JOIN ({most}) m ON c.w = m.w AND c.n = m.n"
    db.view("busiest", joined.format("10 minutes", "10 minutes"), emit="close")
    db.topic("clicks").append([click(1), click(2), click(3, "y"), click(30)])
    db.topic("clicks").append(click(4, "y"))
    db.refresh()
    assert [(row["k"], row["n"]) for row in db.views["busiest"].rows()] == [("x", 2)]
    assert [row["k"] for row in db.views["busiest.late"].rows()] == ["y"]
    assert all(proof.holds for proof in db.prove())
    with pytest.raises(BadQuery):
        db.view("other", joined.format("10 minutes", "5 minutes"), emit="close")
    assert sorted(db.views) == ["busiest", "busiest.late"]


def test_what_came_too_late_goes_with_its_view_whatever_that_shows_by_now(make):
    db = make("gone")
    db.view("v", TUMBLING, emit="close")
    db.view("v", TUMBLING, replace=True)
    db.refresh()
    assert "v.late" in db.views
    db.drop("v")
    assert list(db.views) == []
