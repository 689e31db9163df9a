"""Lag: how far groups are behind, and how long until retention reaches them."""

from __future__ import annotations

import pytest
from tests.log.consuming import SCHEMA, drain, rows

from evert.errors import Full, UnknownTopic
from evert.log import flow


def test_lag_counts_rows_and_the_age_of_the_first_unread_one(db, clock):
    clicks = db.stream("clicks", SCHEMA)
    consumer = db.consumer("g", "clicks")
    for number in range(5):
        clicks.append(rows(number))
        clock.advance("10 seconds")
    consumer.poll(0, max_rows=2)
    consumer.commit()
    (lag,) = db.lag()
    assert (lag.group, lag.topic, lag.partition) == ("g", "clicks", 0)
    assert (lag.committed, lag.end, lag.events, lag.seconds) == (2, 5, 3, 30.0)
    assert (lag.expires_in, lag.warning, lag.dropped) == (None, None, 0)


@pytest.mark.parametrize("partitions", [1, 4])
def test_lag_is_the_same_in_tail_and_segments(db, clock, partitions):
    clicks = db.stream("clicks", SCHEMA, key="id", partitions=partitions, retain="1 day")
    consumer = db.consumer("g", "clicks", lease="1 day")
    for number in range(40):
        clicks.append(rows(number))
        clock.advance("1 second")
    consumer.poll(0, max_rows=13)
    consumer.commit()
    before = db.lag()
    db.maintain()
    assert db.lag() == before
    assert sum(lag.events for lag in before) == 27
    assert max(lag.seconds for lag in before) == 27.0


def test_a_group_that_has_read_everything_is_not_behind(db, clock):
    db.stream("clicks", SCHEMA, retain="1 day").append(rows(1, 2))
    consumer = db.consumer("g", "clicks", lease="30 days")
    drain(consumer)
    consumer.commit()
    clock.advance("5 days")
    db.maintain()
    (lag,) = db.lag()
    assert (lag.events, lag.seconds, lag.expires_in, lag.warning) == (0, 0.0, None, None)


def test_lag_warns_before_retention_and_says_what_was_lost_after_it(db, clock):
    db.stream("clicks", SCHEMA, retain="4 hours").append(rows(1, 2, 3))
    db.consumer("g", "clicks")
    assert (db.lag()[0].expires_in, db.lag()[0].warning) == (4 * 3600.0, None)
    clock.advance("3 hours 30 minutes")
    assert db.lag()[0].expires_in == 1800.0
    assert "in 1800 seconds" in db.lag()[0].warning
    clock.advance("1 hour")
    assert db.lag()[0].expires_in == 0.0
    db.maintain()
    assert db.lag()[0].warning == "3 rows were removed before they were read: offsets 0 to 2"
    assert db.lag()[0].events == 0


def test_lag_warns_when_little_room_is_left_before_the_size_bound(db):
    clicks = db.stream("clicks", SCHEMA, retain_bytes=20_000)
    db.consumer("g", "clicks")
    held = 0
    while held < 18_000:
        (lag,) = db.lag()
        assert (lag.warning is not None) == (held > 15_000)
        clicks.append(rows(*range(20)))
        with db.catalog.read() as tx:
            held = flow.stored_bytes(tx, clicks.definition)
    assert (
        db.lag()[0].warning == f"the first unread row will be removed after about {20_000 - held} more bytes"
    )


def test_lag_is_told_apart_by_topic_and_group(db):
    for name in ("one", "two"):
        db.stream(name, SCHEMA, partitions=2).append(rows(1, 2, 3, 4))
    db.consumer("a", ["one", "two"])
    db.consumer("b", "one")
    assert [(lag.group, lag.topic, lag.partition) for lag in db.lag()] == [
        ("a", "one", 0),
        ("a", "one", 1),
        ("a", "two", 0),
        ("a", "two", 1),
        ("b", "one", 0),
        ("b", "one", 1),
    ]
    assert {lag.group for lag in db.lag(topic="two")} == {"a"}
    assert {lag.topic for lag in db.lag(group="b")} == {"one"}
    with pytest.raises(UnknownTopic):
        db.lag(topic="three")


def test_a_queue_is_behind_by_what_is_not_acknowledged(db, clock):
    clicks = db.stream("clicks", SCHEMA)
    clicks.append(rows(1, 2))
    queue = db.queue("clicks")
    clock.advance("5 seconds")
    clicks.append(rows(3))
    taken = queue.take(2)
    assert (db.lag()[0].events, db.lag()[0].seconds) == (3, 5.0)
    queue.ack(taken)
    assert (db.lag()[0].events, db.lag()[0].seconds) == (1, 0.0)


def test_dropped_rows_are_counted(db):
    clicks = db.stream("clicks", SCHEMA, when_full="drop", capacity=2)
    db.consumer("g", "clicks")
    clicks.append(rows(1, 2))
    assert clicks.append(rows(3)) is None
    assert db.lag()[0].dropped == 1


def test_flow_control_counts_messages_until_they_are_acknowledged(db):
    clicks = db.stream("clicks", SCHEMA, when_full="block", capacity=2, block_timeout="10 ms")
    queue = db.queue("clicks")
    clicks.append(rows(1, 2))
    taken = queue.take(2)
    with pytest.raises(Full):
        clicks.append(rows(3))
    queue.ack(taken)
    clicks.append(rows(3))
