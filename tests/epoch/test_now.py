"""Views that ask what time it is: rows leave and come by themselves, and the log tells when."""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta

import pytest

import evert
from evert.epoch import schedule
from evert.errors import BadQuery
from evert.log import ticks
from evert.testing import ManualClock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
VIEWS = {
    "today": "SELECT id, k FROM clicks WHERE at > now() - INTERVAL 1 DAY",
    "due": "SELECT id, k FROM clicks WHERE current_timestamp() >= at",
    "between": "SELECT id FROM clicks WHERE at BETWEEN now() - INTERVAL 3 HOURS AND now() + INTERVAL 2 HOURS",
    "counted": "SELECT k, count(*) AS n, max(id) AS m FROM clicks WHERE at >= now() - INTERVAL 2 HOURS GROUP BY k",
    "awake": "SELECT k, max(at) AS last FROM clicks GROUP BY k HAVING max(at) > now() - INTERVAL 5 HOURS",
    "known": "SELECT id, name FROM clicks JOIN users USING (k) WHERE users.until + clicks.length > now()",
    "without": "SELECT k FROM users WHERE k NOT IN (SELECT k FROM clicks WHERE at > now() - INTERVAL 6 HOURS)",
    "by_day": "SELECT id FROM clicks WHERE CAST(at AS DATE) >= current_date()",
}


@pytest.fixture
def clock():
    return ManualClock(int(NOON.timestamp() * 1e6))


@pytest.fixture
def db(spark, tmp_path, clock):
    with evert.open(tmp_path / "now.evert", clock=clock) as db:
        db.stream("clicks", "id BIGINT, k STRING, at TIMESTAMP, length INTERVAL DAY TO SECOND")
        db.table("users", "k STRING, name STRING, until TIMESTAMP", key="k")
        yield db


def click(id, hours, k="x"):
    return {"id": id, "k": k, "at": NOON + timedelta(hours=hours), "length": timedelta(hours=id % 5)}


def ids(db, view):
    return sorted(row["id"] for row in db.views[view].rows())


def test_rows_leave_when_their_time_is_over(db, clock):
    db.view("today", VIEWS["today"])
    db.topic("clicks").append([click(n, n - 24) for n in (-1, 0, 1, 2)])
    db.refresh()
    assert ids(db, "today") == [1, 2]
    clock.advance("59 minutes")
    before = db.position
    db.refresh()
    assert (ids(db, "today"), db.position) == ([1, 2], before)
    clock.advance("1 minute")
    db.refresh()
    assert ids(db, "today") == [2]
    assert db.prove("today")[0].holds


def test_rows_come_when_their_time_has_come(db, clock):
    db.view("due", VIEWS["due"])
    db.topic("clicks").append([click(1, 0), click(2, 1)])
    db.refresh()
    assert ids(db, "due") == [1]
    clock.advance("1 hour")
    db.refresh()
    assert ids(db, "due") == [1, 2]


@pytest.mark.parametrize(("seed", "most"), [(1, 1), (2, 1_000_000)])
def test_views_that_ask_for_the_time_are_what_spark_says_at_it(db, clock, seed, most, monkeypatch):
    monkeypatch.setattr(schedule, "MOST_EVENTS", most)
    draw = random.Random(seed)
    for name, query in VIEWS.items():
        db.view(name, query)
    for step in range(6):
        for _ in range(draw.randrange(3)):
            rows = [click(draw.randrange(50), draw.uniform(-30, 6), draw.choice("xyz")) for _ in range(4)]
            db.topic("clicks").append(rows)
        user = {
            "k": draw.choice("xyz"),
            "name": str(step),
            "until": NOON + timedelta(hours=draw.uniform(-5, 9)),
        }
        db.topic("users").upsert(user)
        clock.advance(f"{draw.randrange(1, 300)} minutes")
        db.refresh()
        assert [proof.view for proof in db.prove() if not proof.holds] == []
    assert all("recomputed" not in str(db.explain(name)) for name in VIEWS)


def test_rows_leave_by_themselves_while_views_run(db, clock):
    db.view("today", VIEWS["today"])
    db.topic("clicks").append(click(1, -23.5))
    db.refresh()
    seen = db.views["today"].position
    over = threading.Event()
    runner = threading.Thread(target=lambda: db.run(stop=over))
    runner.start()
    try:
        clock.advance("1 hour")
        db.views["today"].wait(seen + 1, timeout=60)
    finally:
        over.set()
        runner.join()
    assert ids(db, "today") == []


def test_a_question_that_nobody_is_due_for_costs_no_commit(db, clock):
    db.view("today", VIEWS["today"])
    db.topic("clicks").append(click(1, 0))
    db.refresh()
    before = db.position
    for _ in range(3):
        clock.advance("1 minute")
        db.refresh()
    assert db.position == before


def test_only_the_last_tick_is_kept(db, clock):
    db.view("today", VIEWS["today"])
    for hours in range(3):
        db.topic("clicks").append(click(hours, hours))
        clock.advance("1 hour")
        db.refresh()
    db.maintain()
    with db.catalog.read() as tx:
        assert len(tx.all("SELECT * FROM ticks")) == 1
        assert ticks.last(tx).at == clock.now()


def test_a_dataframe_may_ask_for_the_time(db, clock):
    from pyspark.sql import functions as f

    @db.view
    def fresh(spark):
        clicks = spark.table("clicks")
        return clicks.where(clicks.at > f.now() - f.expr("INTERVAL 1 HOUR")).select("id")

    db.topic("clicks").append([click(1, 0), click(2, 2)])
    clock.advance("1 hour")
    db.refresh()
    assert ids(db, "fresh") == [2]


def test_days_are_over_within_a_minute_of_midnight(db, clock):
    db.view("by_day", VIEWS["by_day"])
    db.topic("clicks").append([click(1, 11), click(2, 13)])
    db.refresh()
    assert ids(db, "by_day") == [1, 2]
    clock.advance("12 hours")
    db.refresh()
    assert ids(db, "by_day") == [2]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now() AS t, id FROM clicks",
        "SELECT id FROM clicks WHERE at > now() OR id = 1",
        "SELECT id FROM clicks WHERE hour(at) > hour(now())",
        "SELECT c.id FROM clicks c LEFT JOIN users u ON c.k = u.k AND u.until > now() - c.length",
        "SELECT count_if(at > now()) AS n FROM clicks",
    ],
)
def test_elsewhere_the_time_is_refused(db, query):
    with pytest.raises(BadQuery, match=r"now\(\)"):
        db.view("v", query)


def test_a_view_that_asks_for_the_time_is_not_recomputed(db):
    with pytest.raises(BadQuery, match="recomputed"):
        db.view("v", VIEWS["today"], refresh="full")
