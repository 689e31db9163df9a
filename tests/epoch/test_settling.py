"""Joins within an interval and frames that are final: shown once nothing can change them, and never changed."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evert
from evert.errors import BadQuery

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
WITHIN = "s.who = c.who AND c.at BETWEEN s.at AND s.at + INTERVAL 10 MINUTES"
VIEWS = {
    "inner_join": f"SELECT s.id, c.id AS click FROM searches s JOIN clicks c ON {WITHIN}",
    "left_join": f"SELECT s.id, c.id AS click FROM searches s LEFT JOIN clicks c ON {WITHIN}",
    "right_join": f"SELECT s.id, c.id AS click, c.at FROM searches s RIGHT JOIN clicks c ON {WITHIN}",
    "full_join": f"SELECT s.*, c.id AS click, c.at AS clicked FROM searches s FULL JOIN clicks c ON {WITHIN}",
    "frame": "SELECT id, who, sum(id) OVER (PARTITION BY who ORDER BY at"
    " RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND INTERVAL 2 MINUTES FOLLOWING) AS s FROM searches",
}


def opened(folder, **options):
    db = evert.open(folder)
    for topic in ("searches", "clicks"):
        db.stream(
            topic, "id BIGINT, who STRING, at TIMESTAMP", event_time="at", lateness="1 minute", **options
        )
    return db


@pytest.fixture
def db(spark, tmp_path):
    with opened(tmp_path / "db") as made:
        yield made


def event(id, minute, who="w"):
    return {"id": id, "who": who, "at": NOON + timedelta(minutes=minute)}


def shown(db, view):
    db.refresh()
    return sorted((tuple(row.values()) for row in db.views[view].rows()), key=repr)


def feed(db, view):
    return [row["_weight"] for change in db.views[view].changes(after=0) for row in change.rows.to_pylist()]


def test_a_row_without_a_match_is_shown_when_none_can_come_any_more(db):
    db.view("v", VIEWS["left_join"], emit="close")
    db.topic("searches").append([event(1, 0), event(2, 0, who="x")])
    db.topic("clicks").append(event(7, 5))
    assert shown(db, "v") == [(1, 7)]
    db.topic("clicks").append(event(8, 11))
    assert shown(db, "v") == [(1, 7)]
    db.topic("clicks").append(event(9, 11.01))
    assert shown(db, "v") == [(1, 7), (2, None)]
    db.topic("clicks").append(event(10, 3, who="x"))
    assert shown(db, "v") == [(1, 7), (2, None)]
    assert set(feed(db, "v")) == {1}
    (late,) = db.views["v.late"].rows()
    assert (late["stream"], late["at"]) == ("clicks", NOON + timedelta(minutes=3))
    assert '"id":10' in late["event"]
    assert all(proof.holds for proof in db.prove())


def test_a_frame_is_shown_when_the_watermark_is_beyond_it(db):
    db.view("v", VIEWS["frame"], emit="close")
    db.topic("searches").append([event(1, 0), event(2, 3)])
    assert shown(db, "v") == []
    db.topic("searches").append([event(4, 2.5), event(0, 3.1)])
    assert shown(db, "v") == [(1, "w", 1)]
    db.topic("searches").append(event(8, 6.1))
    assert shown(db, "v") == [(1, "w", 1), (2, "w", 7), (4, "w", 7)]
    assert all(proof.holds for proof in db.prove())
    assert set(feed(db, "v")) == {1}


REFUSED = {
    "SELECT id FROM searches GROUP BY id": "the operator Aggregate",
    "SELECT s.id FROM searches s LEFT JOIN clicks c ON s.who = c.who": "until when a match may come",
    "SELECT s.id FROM searches s LEFT JOIN clicks c ON s.who = c.who AND c.at >= s.at": "until when a match",
    "SELECT id, row_number() OVER (PARTITION BY who ORDER BY at) AS n FROM searches": "a window function without",
    "SELECT id FROM searches WHERE id NOT IN (SELECT id FROM clicks)": "the operator Filter",
    "SELECT 1 AS one": "a query that reads no stream with event time",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_never_final_is_refused(db, query):
    with pytest.raises(BadQuery) as caught:
        db.view("v", query, emit="close")
    assert REFUSED[query] in caught.value.message
    assert list(db.views) == []


def test_what_is_joined_with_a_table_is_never_final(db):
    db.table("users", "who STRING, name STRING", key="who")
    with pytest.raises(BadQuery, match="rows of users may change later"):
        db.view("v", "SELECT s.id, name FROM searches s JOIN users u ON s.who = u.who", emit="close")


@pytest.mark.timeout(900)
@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**20))
def test_what_is_shown_is_right_and_never_changes(spark, tmp_path_factory, seed):
    draw = random.Random(seed)
    with opened(tmp_path_factory.mktemp("settling") / "db") as db:
        for name, query in VIEWS.items():
            db.view(name, query, emit="close")
        for number in range(14):
            for place in range(draw.randrange(1, 6)):
                minute, who = 2 * number + draw.randint(-8, 3), draw.choice("abcd")
                db.topic(draw.choice(("searches", "clicks"))).append(event(100 * number + place, minute, who))
            if draw.random() < 0.7:
                db.refresh()
        db.refresh()
        assert [proof.view for proof in db.prove() if not proof.holds] == []
        for name in VIEWS:
            assert set(feed(db, name)) == {1}
