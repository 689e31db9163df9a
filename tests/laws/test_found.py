"""What the law found to be wrong once, as small as it got."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

import evert


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        yield made


def test_moments_flow_through_every_level(db):
    moment = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    db.stream("events", "at TIMESTAMP, local TIMESTAMP_NTZ")
    db.view("last", "SELECT max(at) AS at, count(local) AS n FROM events")
    db.view("later", "SELECT at + INTERVAL 1 HOUR AS at FROM last")
    db.topic("events").append({"at": moment, "local": moment.replace(tzinfo=None)})
    db.refresh()
    assert db.view("last").rows() == [{"at": moment, "n": 1}]
    assert db.view("later").rows() == [{"at": moment.replace(hour=2)}]


def test_the_key_of_a_stream_is_no_key_of_its_views(db):
    db.stream("clicks", "session STRING, page STRING", key="session")
    view = db.view("seen", "SELECT session, page FROM clicks")
    db.topic("clicks").append([{"session": "a", "page": "x"}, {"session": "a", "page": "y"}])
    db.refresh()
    assert (view.state, view.key, view.count()) == ("live", None, 2)


def test_a_refresh_beside_a_run_in_the_same_process_waits_for_it(db):
    db.stream("events", "n INT")
    view = db.view("total", "SELECT sum(n) AS n FROM events")
    stop = threading.Event()
    thread = threading.Thread(target=db.run, kwargs={"stop": stop})
    thread.start()
    try:
        db.topic("events").append({"n": 1})
        db.refresh(timeout=60)
        assert view.rows() == [{"n": 1}]
    finally:
        stop.set()
        thread.join()


def test_a_recomputed_view_over_a_view_is_built_from_a_long_log(db, monkeypatch):
    monkeypatch.setattr("evert.epoch.schedule.MOST_EVENTS", 1)
    db.stream("events", "n INT")
    db.view("seen", "SELECT n FROM events")
    ranked = db.view("ranked", "SELECT rank() OVER (ORDER BY n) AS place FROM seen JOIN events USING (n)")
    for number in range(3):
        db.topic("events").append({"n": number})
    db.refresh()
    assert sorted(row["place"] for row in ranked.rows()) == [1, 2, 3]


def test_a_view_that_names_another_without_needing_its_rows_is_in_its_group(db):
    topic = db.stream("events", "n INT")
    db.view("apart", "SELECT n FROM events", group="apart")
    never = db.view("never", "SELECT n FROM apart WHERE n > CAST(NULL AS INT)")
    beside = db.view("beside", "SELECT sum(n) AS n FROM events")
    for n in (1, 2):
        topic.append({"n": n})
        db.refresh(timeout=60)
    assert (never.rows(), beside.rows()) == ([], [{"n": 3}])
    assert never.position == beside.position == db.position


def test_a_column_that_a_window_is_given_twice_is_one(db):
    topic = db.stream("events", "n INT")
    db.view("same", "SELECT n FROM events")
    over = "OVER (PARTITION BY s.n ORDER BY s.n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)"
    db.view("first", f"SELECT s.n AS n, hash(first_value(s.n) {over}) AS place FROM same s")
    db.view("parts", "SELECT n, (SELECT max(n) FROM events) AS most FROM same EXCEPT SELECT 7, 7 FROM events")
    topic.append([{"n": 1}, {"n": 1}, {"n": 2}])
    db.refresh(timeout=60)
    assert all(proof.holds for proof in db.prove())


def test_a_query_that_spark_itself_cannot_plan_stops_its_view_alone(db):
    db.stream("a", "n INT")
    db.stream("b", "n INT")
    counted = db.view("counted", "SELECT count(*) AS n FROM a")
    ranked = "SELECT rank() OVER (PARTITION BY n ORDER BY n) AS place FROM b"
    both = "SELECT n FROM a UNION ALL SELECT n + 1 FROM a"
    query = f"SELECT n, (SELECT count(*) FROM ({ranked}) r WHERE r.place = s.n) AS m FROM ({both}) s"
    view = db.view("beyond", query)
    db.topic("a").append({"n": 1})
    db.refresh(timeout=120)
    assert counted.rows() == [{"n": 1}]
    assert (view.state, view.error["error"]) == ("stopped", "failed")
    assert "key not found" in view.error["message"]


def test_a_subquery_in_a_subquery_may_refer_to_it(db):
    for name in "abc":
        db.stream(name, "x INT, y INT")
    view = db.view(
        "found",
        "SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND EXISTS (SELECT 1 FROM c WHERE b.y = 2))",
    )
    assert db.explain("found").recomputes is None
    for name in "abc":
        db.topic(name).append([{"x": 1, "y": 1}, {"x": 2, "y": 2}])
    db.refresh(timeout=120)
    assert view.rows() == [{"x": 2}]
