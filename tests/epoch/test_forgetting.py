"""State that no change can reach any more is forgotten, and nobody can tell from what views show."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import evert

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
OPTIONS = {"event_time": "at", "lateness": "1 minute", "forget_after": "5 minutes"}
WITHIN = "s.who = c.who AND c.at BETWEEN s.at AND s.at + INTERVAL 3 MINUTES"
VIEWS = {
    "clicked": f"SELECT s.id, c.id AS click FROM searches s JOIN clicks c ON {WITHIN}",
    "all_searches": f"SELECT s.id, s.at, c.id AS click FROM searches s LEFT JOIN clicks c ON {WITHIN}",
    "both": f"SELECT s.id, c.id AS click FROM searches s FULL JOIN clicks c ON {WITHIN}",
    "ignored": f"SELECT s.id FROM searches s WHERE NOT EXISTS (SELECT 1 FROM clicks c WHERE {WITHIN})",
    "rate": "SELECT window(at, '2 minutes') AS w, count(*) AS n, count(click) AS clicks"
    f" FROM (SELECT s.at, c.id AS click FROM searches s LEFT JOIN clicks c ON {WITHIN}) GROUP BY 1",
    "visits": "SELECT who, session_window(at, '1 minute') AS w, count(*) AS n FROM searches GROUP BY 1, 2",
    "rolling": "SELECT id, who, count(*) OVER (PARTITION BY who ORDER BY at"
    " RANGE BETWEEN INTERVAL 2 MINUTES PRECEDING AND CURRENT ROW) AS n FROM searches",
}


@pytest.fixture
def make(spark, tmp_path):
    made = []

    def make(name="db", **options):
        db = evert.open(tmp_path / name)
        for topic in ("searches", "clicks"):
            db.stream(topic, "id BIGINT, who STRING, at TIMESTAMP", **(OPTIONS | options))
        made.append(db)
        return db

    yield make
    for db in made:
        db.close()


def write(db, minute, count=40):
    """Events of one minute: everybody searches and clicks, some come late, and one clicks on nothing."""
    for topic, delay in (("searches", 0), ("clicks", 20)):
        rows = []
        for number in range(count):
            late = 200 if number % 10 == 3 else 0
            at = NOON + timedelta(minutes=minute, seconds=number + delay - late)
            rows.append({"id": minute * 1000 + number, "who": f"w{number % 7}", "at": at})
        db.topic(topic).append(rows)


def state(db, kind=None):
    """How many rows nodes keep, but for what views show."""
    sql = "SELECT coalesce(sum(r.rows), 0) FROM runs r JOIN nodes n ON n.id = r.node WHERE n.name <> 'output'"
    with db.catalog.read() as tx:
        return tx.one(sql if kind is None else f"{sql} AND n.kind = '{kind}'")[0]


@pytest.mark.timeout(900)
def test_state_stays_as_large_as_what_may_still_change(make):
    db = make()
    for name, query in VIEWS.items():
        db.view(name, query)
    sizes = []
    for minute in range(36):
        write(db, minute)
        if minute % 2:
            db.refresh()
            sizes.append(state(db))
    assert max(sizes[9:]) <= 1.2 * max(sizes[:9])
    assert [proof.view for proof in db.prove() if not proof.holds] == []
    db.view("later", VIEWS["rate"])
    db.refresh()
    assert all(proof.holds for proof in db.prove("later"))


def test_without_forget_after_nothing_is_forgotten(make):
    db = make(forget_after=None)
    db.view("clicked", VIEWS["clicked"])
    sizes = []
    for minute in range(0, 60, 10):
        write(db, minute)
        db.refresh()
        sizes.append(state(db))
    assert sizes == [80, 160, 240, 320, 400, 480]
    db.topic("searches").append({"id": -1, "who": "w1", "at": NOON})
    db.refresh()
    assert all(proof.holds for proof in db.prove())


def test_a_view_on_a_node_that_has_forgotten_is_built_from_the_log(make):
    db = make()
    joined = VIEWS["clicked"]
    db.view("clicked", joined)
    for minute in range(0, 60, 10):
        write(db, minute)
        db.refresh()
    assert state(db) < 480
    db.view("counted", f"SELECT id % 1000 AS n, count(*) AS clicks FROM ({joined}) GROUP BY 1")
    db.refresh()
    assert all(proof.holds for proof in db.prove())
    assert sum(row["clicks"] for row in db.views["counted"].rows()) == db.views["clicked"].count()


def test_a_stream_that_forgets_from_some_day_on_keeps_its_views(make):
    db = make(forget_after=None)
    db.view("clicked", VIEWS["clicked"])
    for minute in range(0, 40, 10):
        write(db, minute)
        db.refresh()
    for topic in ("searches", "clicks"):
        db.topic(topic).alter(forget_after="5 minutes")
    for minute in range(40, 120, 10):
        write(db, minute)
        db.refresh()
    assert state(db) < 480
    assert all(proof.holds for proof in db.prove())


def test_windows_that_are_closed_leave_nothing_behind(make):
    db = make(forget_after=None)
    query = "SELECT window, who, count(*) AS n FROM searches GROUP BY window(at, '2 minutes'), who"
    db.view("closed", query, emit="close")
    db.view("ended", VIEWS["visits"], emit="close")
    for minute in range(0, 100, 10):
        write(db, minute)
        db.refresh()
    assert state(db, "aggregate") <= 60
    assert state(db, "sessions") <= 60
    assert db.views["closed"].count() > 60
    assert all(proof.holds for proof in db.prove())
