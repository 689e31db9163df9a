"""Producers faster than consumers: they wait, or their rows are dropped and counted, or the disk takes them."""

from __future__ import annotations

import threading

import pytest

import evert
from evert.errors import Full
from evert.testing import ManualClock


@pytest.fixture
def db(tmp_path):
    with evert.open(tmp_path / "db", clock=ManualClock(), background=False) as made:
        yield made


def rows(count):
    return [{"n": n} for n in range(count)]


def read(topic):
    return sum(batch.num_rows for batch in topic.read())


def test_a_topic_without_consumers_is_never_full(db):
    topic = db.stream("t", "n INT", when_full="block", capacity=5, block_timeout=0)
    topic.append(rows(100))
    assert read(topic) == 100


def test_a_blocked_producer_goes_on_when_a_consumer_commits(db):
    topic = db.stream("t", "n INT", when_full="block", capacity=10)
    consumer = db.consumer("g", "t")
    topic.append(rows(10))
    producer = threading.Thread(target=topic.append, args=(rows(5),))
    producer.start()
    producer.join(0.2)
    assert producer.is_alive()
    assert read(topic) == 10
    consumer.poll()
    consumer.commit()
    producer.join(30)
    assert not producer.is_alive()
    assert read(topic) == 15
    consumer.close()


def test_a_blocked_producer_gets_an_error_when_its_time_is_over_and_nothing_is_written(db):
    topic = db.stream("t", "n INT", when_full="block", capacity=10, block_timeout="50 ms")
    with db.consumer("g", "t"):
        topic.append(rows(10))
        with pytest.raises(Full) as raised:
            topic.append(rows(1))
        assert "evert lag t" in raised.value.hint
        assert read(topic) == 10


def test_one_append_larger_than_the_capacity_is_taken_when_nobody_is_behind(db):
    topic = db.stream("t", "n INT", when_full="block", capacity=10, block_timeout=0)
    with db.consumer("g", "t"):
        topic.append(rows(50))
        assert read(topic) == 50


def test_dropped_rows_are_counted_and_the_producer_is_told(db):
    topic = db.stream("t", "n INT", when_full="drop", capacity=10)
    with db.consumer("g", "t") as consumer:
        assert topic.append(rows(10)) == 1
        assert topic.append(rows(7)) is None
        assert topic.append(rows(3)) is None
        assert topic.sizes().dropped == 10
        assert {lag.dropped for lag in db.lag("t")} == {10}
        consumer.poll()
        consumer.commit()
        assert topic.append(rows(4)) == 2
        assert read(topic) == 14


def test_a_transaction_is_dropped_as_a_whole_or_not_at_all(db):
    full = db.stream("t", "n INT", when_full="drop", capacity=1)
    other = db.stream("u", "n INT")
    with db.consumer("g", "t"):
        full.append(rows(1))
        with db.transaction() as tx:
            tx.append("t", rows(2))
            tx.append("u", rows(3))
        assert tx.position is None
        assert (read(full), read(other)) == (1, 0)
        assert (full.sizes().dropped, other.sizes().dropped) == (2, 3)


def test_offsets_are_committed_though_all_of_the_output_was_dropped(db):
    source = db.stream("source", "n INT")
    full = db.stream("full", "n INT", when_full="drop", capacity=1)
    source.append(rows(3))
    with db.consumer("other", "full"), db.consumer("g", "source") as consumer:
        full.append(rows(1))
        consumer.poll()
        with db.transaction() as tx:
            tx.append("full", rows(5))
            consumer.commit(tx)
        assert [lag.events for lag in db.lag("source", "g")] == [0]
        assert full.sizes().dropped == 5


def test_the_slowest_group_counts(db):
    topic = db.stream("t", "n INT", when_full="drop", capacity=10)
    with db.consumer("fast", "t") as fast, db.consumer("slow", "t"):
        topic.append(rows(10))
        fast.poll()
        fast.commit()
        assert topic.append(rows(1)) is None


def test_messages_that_were_taken_and_not_acknowledged_count_too(db):
    topic = db.stream("t", "n INT", when_full="drop", capacity=10)
    queue = db.queue("t", group="q")
    topic.append(rows(10))
    messages = queue.take(10)
    assert topic.append(rows(1)) is None
    queue.ack(messages)
    assert topic.append(rows(1)) is not None


def test_a_topic_takes_no_more_than_its_bytes(db):
    topic = db.stream("t", "text STRING", max_bytes=20_000)
    for _ in range(10):
        topic.append([{"text": "x" * 1_000}])
    with pytest.raises(Full) as raised:
        topic.append([{"text": "x" * 15_000}])
    assert raised.value.details["topic"] == "t"
    assert 0 < topic.sizes().bytes <= 20_000
    topic.alter(max_bytes=40_000)
    topic.append([{"text": "room again"}])
