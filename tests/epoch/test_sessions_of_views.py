"""Sessions as Spark understands them: at their edges, out of order, over streams and over what changes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from tests.epoch.orders import right

import evert

START = datetime(2026, 3, 29, 0, 59, 50, tzinfo=UTC)
SESSIONS = (
    "SELECT user, session_window.start AS begins, session_window.end AS ends, count(*) AS n, sum(value) AS total,"
    " max(value) AS most FROM {} GROUP BY user, session_window(at, {})"
)


def tap(user, second, value=1):
    return {"user": user, "at": START + timedelta(seconds=second), "value": value}


def test_rows_that_are_exactly_a_gap_apart_are_as_in_spark(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as db:
        taps = db.stream("taps", "user STRING, at TIMESTAMP, value BIGINT")
        view = db.view("sessions", SESSIONS.format("taps", "'10 seconds'"))
        for rows in (
            [tap("a", 0), tap("b", 0)],
            [tap("a", 10)],
            [tap("b", 10.000001)],
            [tap("a", 20), tap("a", 40)],
        ):
            taps.append(rows)
            db.refresh(timeout=120)
            assert right(db)
        assert sorted((row["user"], row["n"]) for row in view.rows()) == [
            ("a", 1),
            ("a", 3),
            ("b", 1),
            ("b", 1),
        ]
        assert db.explain("sessions").recomputes is None


def test_rows_come_in_any_order(spark, tmp_path):
    chance = random.Random(4)
    gap = "CASE WHEN value > 6 THEN '9 seconds' WHEN value > 5 THEN '0 seconds' ELSE '2 seconds' END"
    with evert.open(tmp_path / "db", background=False) as db:
        taps = db.stream("taps", "user STRING, at TIMESTAMP, value BIGINT")
        table = db.table("changing", "id BIGINT, user STRING, at TIMESTAMP, value BIGINT", key="id")
        db.view("sessions", SESSIONS.format("taps", "'3 seconds'"))
        db.view("by_row", SESSIONS.format("taps", gap))
        db.view("corrected", SESSIONS.format("changing", "'3 seconds'"))
        db.view("longest", "SELECT user, max(n) AS most, count(*) AS sessions FROM sessions GROUP BY user")
        for _ in range(4):
            rows = [
                tap(chance.choice(["a", "b", None]), chance.randrange(200), chance.randrange(9))
                for _ in range(40)
            ]
            taps.append(rows)
            table.upsert([row | {"id": chance.randrange(60)} for row in rows])
            table.delete(chance.sample(range(60), 10))
            db.refresh(timeout=120)
            assert right(db)


def test_sessions_of_what_a_subquery_takes_back_are_right(spark, tmp_path):
    query = (
        "SELECT user, session_window.start AS begins,"
        " count(*) FILTER (WHERE value < (SELECT max(value) FROM other)) AS n FROM taps"
        " GROUP BY user, session_window(at, '3 seconds')"
    )
    with evert.open(tmp_path / "db", background=False) as db:
        for name in ("taps", "other"):
            db.stream(name, "user STRING, at TIMESTAMP, value BIGINT").append(
                [tap("a", n, n) for n in range(5)]
            )
        view = db.view("below", query)
        for value in (2, 9):
            db.topic("other").append(tap("a", 0, value))
            db.refresh(timeout=120)
            assert view.state == "live"
            assert right(db)
        assert db.explain("below").recomputes is not None
