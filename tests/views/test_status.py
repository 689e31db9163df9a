"""What `db.status()` tells."""

from __future__ import annotations

import pytest
from tests.views.engine import Engine, open_database

from evert.testing import ManualClock
from evert.views.definition import Read


@pytest.fixture
def shop(tmp_path):
    clock = ManualClock()
    with open_database(tmp_path / "db", clock=clock) as db:
        db.stream("clicks", "n INT")
        db.stream("other", "n INT")
        yield db, Engine(db), clock


def reads(db, name):
    topic = db.definition(name)
    return [Read("stream", topic.id, name, topic.version)]


def test_the_lag_counts_what_the_topics_of_a_view_have_after_its_position(shop):
    db, engine, clock = shop
    view = engine.view("sold")
    engine.plan_reads("sold", reads(db, "clicks"))
    engine.view("above")
    engine.plan_reads("above", [Read("view", view.definition.id, "sold")])
    (sold, above) = db.status()
    assert (sold.lag_commits, sold.lag_events, sold.lag_seconds) == (0, 0, 0.0)
    db.topic("clicks").append([{"n": 1}, {"n": 2}])
    clock.advance(10)
    db.topic("clicks").append([{"n": 3}])
    db.topic("other").append([{"n": 3}] * 5)
    clock.advance(5)
    (sold, above) = db.status()
    assert (sold.lag_commits, sold.lag_events, sold.lag_seconds) == (3, 3, 15.0)
    assert (above.lag_commits, above.lag_events, above.lag_seconds) == (3, 3, 15.0)
    engine.epoch(1, {"sold": {("a", 1): 2, ("b", 1): 1}})
    (sold, above) = db.status()
    assert (sold.position, sold.lag_events, sold.lag_seconds) == (1, 1, 5.0)
    assert (sold.epoch_ms, sold.changed, sold.rows, sold.state) == (1.5, 2, 3, "live")
    assert sold.bytes > 0
    db.log.keep()
    assert [one.lag_events for one in db.status()] == [2, 3]


def test_a_view_that_stopped_or_is_being_built_says_so(shop):
    db, engine, _ = shop
    engine.view("sold")
    engine.stop("sold", "too large")
    engine.define("new")
    engine.define("sold", "SELECT 2", replace=True)
    sold, replacement, new = db.status()
    assert (sold.name, sold.state, sold.error["message"], sold.rows) == ("sold", "stopped", "too large", None)
    assert (replacement.name, replacement.replacing, replacement.state) == ("sold", True, "building")
    assert (new.name, new.state, new.position, new.rows, new.epoch_ms) == ("new", "building", -1, None, None)


def test_a_database_without_views_has_no_status(shop):
    assert shop[0].status() == []
