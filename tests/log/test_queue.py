"""The queue: each message to one consumer, again until it is acknowledged, and a dead letter in the end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections import Counter

import pytest
from tests.log.consuming import SCHEMA, rows, until

import evert
from evert.errors import BadOption, Expired, Fenced, Refused


def ids(messages):
    return [message.row["id"] for message in messages]


def test_a_message_carries_its_row_and_its_place(db):
    position = db.stream("jobs", SCHEMA).append(rows(7))
    (message,) = db.queue("jobs").take()
    assert message.row == {"id": 7, "word": "w7"}
    assert (message.topic, message.partition, message.offset) == ("jobs", 0, 0)
    assert (message.position, message.attempts) == (position, 1)


def test_two_consumers_never_get_the_same_message_at_once(db):
    db.stream("jobs", SCHEMA, partitions=2).append(rows(*range(10)))
    one, two = db.queue("jobs"), db.queue("jobs")
    found = [number for _ in range(3) for queue in (one, two) for number in ids(queue.take(2))]
    assert sorted(found) == list(range(10))


def test_every_group_gets_every_message(db):
    db.stream("jobs", SCHEMA).append(rows(1, 2))
    for group in ("mail", "bill"):
        assert ids(db.queue("jobs", group=group).take(5)) == [1, 2]


def test_what_is_acknowledged_never_comes_again(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1, 2))
    queue = db.queue("jobs")
    queue.ack(queue.take(5))
    clock.advance("1 day")
    assert queue.take(5) == []
    assert queue.stats().behind == 0


def test_a_message_comes_again_when_its_visibility_runs_out(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1))
    queue = db.queue("jobs", visibility="10 seconds")
    (first,) = queue.take()
    clock.advance("9 seconds")
    assert queue.take() == []
    clock.advance("1 second")
    (second,) = queue.take()
    assert (second.row, second.attempts) == (first.row, 2)
    with pytest.raises(Fenced, match="1 of 1 receipts"):
        queue.ack(first)
    queue.ack(second)


def test_a_late_acknowledgement_holds_if_nobody_has_the_message(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1))
    queue = db.queue("jobs")
    taken = queue.take()
    clock.advance("1 hour")
    queue.ack(taken)
    assert queue.take() == []


def test_extending_keeps_a_message(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1))
    queue = db.queue("jobs", visibility="10 seconds")
    taken = queue.take()
    queue.extend(taken, "1 minute")
    clock.advance("59 seconds")
    assert queue.take() == []
    clock.advance("1 second")
    assert ids(queue.take()) == [1]


def test_a_refused_message_comes_again_after_its_delay(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1, 2))
    queue = db.queue("jobs")
    first, second = queue.take(2)
    queue.refuse(first)
    assert ids(queue.take()) == [1]
    queue.refuse(second, "not yet", delay="5 seconds")
    assert queue.take() == []
    assert queue.stats().delayed == 1
    clock.advance("5 seconds")
    assert ids(queue.take()) == [2]


def test_one_bad_receipt_spoils_the_whole_acknowledgement(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1, 2))
    queue = db.queue("jobs")
    first, second = queue.take(2)
    queue.ack(first)
    with pytest.raises(Fenced, match="1 of 2 receipts"):
        queue.ack([first, second])
    assert queue.stats().in_flight == 1
    for action in (lambda: queue.refuse(first), lambda: queue.extend(first, 5)):
        with pytest.raises(Fenced):
            action()
    queue.ack(second.receipt)


def test_a_message_refused_too_often_is_a_dead_letter_with_its_reason(db):
    db.stream("jobs", SCHEMA).append(rows(1, 2))
    queue = db.queue("jobs", max_attempts=2)
    bad, good = queue.take(2)
    queue.ack(good)
    queue.refuse(bad, "first")
    assert queue.dead() == []
    queue.refuse(queue.take(), "second")
    (letter,) = queue.dead()
    assert (letter.row["id"], letter.offset, letter.attempts, letter.reason) == (1, 0, 2, "second")
    assert queue.take() == []


def test_a_message_that_times_out_too_often_is_a_dead_letter(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1))
    queue = db.queue("jobs", max_attempts=2)
    for _ in range(2):
        assert ids(queue.take()) == [1]
        clock.advance("1 minute")
    assert queue.take() == []
    (letter,) = queue.dead()
    assert letter.reason == "not acknowledged in time, delivered 2 times"
    assert queue.stats().dead == 1


def test_a_dead_letter_outlives_its_row_in_the_log_and_is_replayed(db, clock):
    jobs = db.stream("jobs", SCHEMA, retain="1 hour")
    jobs.append(rows(1, 2))
    queue = db.queue("jobs", max_attempts=1)
    queue.refuse(queue.take(2), "bad")
    clock.advance("2 hours")
    db.maintain()
    assert list(jobs.read()) == []
    assert [(letter.row["word"], letter.reason) for letter in queue.dead()] == [("w1", "bad"), ("w2", "bad")]
    assert queue.replay([1]) == 1
    (message,) = queue.take(5)
    assert (message.row["id"], message.attempts) == (2, 1)
    queue.ack(message)
    assert queue.discard_dead(queue.dead()) == 1
    assert queue.dead() == []
    assert queue.replay() == 0


def test_a_message_in_flight_outlives_its_row_in_the_log(db, clock):
    db.stream("jobs", SCHEMA, retain="1 hour").append(rows(1))
    queue = db.queue("jobs")
    queue.take()
    clock.advance("2 hours")
    db.maintain()
    assert ids(queue.take()) == [1]


def test_a_message_that_comes_again_has_the_columns_the_topic_has_now(db):
    jobs = db.stream("jobs", "id INT")
    jobs.append([{"id": 1}, {"id": 2}])
    queue = db.queue("jobs", max_attempts=1)
    first, second = queue.take(2)
    queue.refuse(first, "bad")
    db.alter("jobs", "id BIGINT, word STRING")
    jobs.append(rows(3))
    assert queue.dead()[0].row == {"id": 1, "word": None}
    queue.replay()
    assert [message.row for message in queue.take(5)] == [{"id": 1, "word": None}, {"id": 3, "word": "w3"}]
    queue.ack(second)


def test_messages_lost_to_retention_before_they_were_taken_are_an_error(db, clock):
    jobs = db.stream("jobs", SCHEMA, retain="1 hour")
    jobs.append(rows(1, 2, 3))
    queue = db.queue("jobs")
    queue.take(1)
    clock.advance("2 hours")
    db.maintain()
    jobs.append(rows(4))
    with pytest.raises(Expired, match=r"2 rows of jobs .* offsets 1 to 2"):
        queue.take(5)
    db.reset("default", "earliest", topic="jobs")
    assert sorted(ids(queue.take(5))) == [1, 4]


def test_resetting_a_queue_delivers_again_what_lies_after_the_cursor(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1, 2, 3))
    queue = db.queue("jobs", max_attempts=1)
    first, second, third = queue.take(3)
    queue.ack(first)
    queue.refuse(second, "bad")
    with pytest.raises(Refused, match="1 messages in flight"):
        db.reset("default", "earliest")
    db.reset("default", "earliest", force=True)
    with pytest.raises(Fenced):
        queue.ack(third)
    assert ids(queue.take(5)) == [1, 2, 3]
    assert queue.dead() == []


def test_an_acknowledgement_joins_the_commit_of_the_output(db):
    db.stream("jobs", SCHEMA).append(rows(1, 2))
    out = db.stream("out", "id BIGINT")
    queue = db.queue("jobs")
    for _ in range(2):
        with db.transaction() as tx:
            taken = queue.take()
            tx.append("out", [{"id": number} for number in ids(taken)])
            queue.ack(taken, tx)
    assert queue.stats().behind == 0
    assert [batch.column("id").to_pylist() for batch in out.read()] == [[1, 2]]


def test_a_transaction_with_a_bad_receipt_writes_nothing(db, clock):
    db.stream("jobs", SCHEMA).append(rows(1))
    out = db.stream("out", "id BIGINT")
    queue = db.queue("jobs")
    taken = queue.take()
    clock.advance("1 hour")
    queue.take()
    tx = db.transaction()
    tx.append("out", [{"id": 1}])
    queue.ack(taken, tx)
    with pytest.raises(Fenced):
        tx.commit()
    assert list(out.read()) == []


def test_an_ordered_queue_gives_the_messages_of_a_key_one_at_a_time(db, clock):
    jobs = db.stream("jobs", "id BIGINT, word STRING", key="word", partitions=2)
    jobs.append([{"id": number, "word": word} for number, word in enumerate("aabab")])
    queue = db.queue("jobs", ordered=True, max_attempts=2)
    taken = {m.row["word"]: m for m in queue.take(10)}
    assert {word: m.row["id"] for word, m in taken.items()} == {"a": 0, "b": 2}
    assert queue.take(10) == []
    queue.ack(taken["b"])
    assert ids(queue.take(10)) == [4]
    queue.refuse(taken["a"], "later", delay=5)
    assert queue.take(10) == []
    clock.advance(5)
    (again,) = queue.take(10)
    assert (again.row["id"], again.attempts) == (0, 2)
    queue.refuse(again, "never")
    assert ids(queue.take(10)) == [1]
    queue.replay()
    assert queue.take(10) == []


def test_a_blocked_key_does_not_hold_up_the_others(db):
    jobs = db.stream("jobs", SCHEMA, key="word")
    jobs.append([{"id": number, "word": "busy"} for number in range(3000)] + rows(9000))
    queue = db.queue("jobs", ordered=True)
    assert ids(queue.take(1)) == [0]
    assert ids(queue.take(1)) == [9000]
    assert queue.stats().held == 2999


def test_a_group_reads_a_topic_in_one_way_only(db):
    db.stream("jobs", SCHEMA, key="id")
    db.queue("jobs", group="q")
    db.consumer("g", "jobs")
    with pytest.raises(Refused, match="as a queue, not as a group of consumers"):
        db.consumer("q", "jobs")
    with pytest.raises(Refused, match="as a group of consumers, not as a queue"):
        db.queue("jobs", group="g")
    with pytest.raises(Refused):
        db.queue("jobs", group="q", ordered=True)


def test_what_makes_no_sense_is_refused(db):
    db.stream("jobs", SCHEMA)
    db.table("users", SCHEMA, key="id")
    with pytest.raises(Refused, match="users is a table"):
        db.queue("users")
    with pytest.raises(Refused, match="no key"):
        db.queue("jobs", ordered=True)
    with pytest.raises(BadOption):
        db.queue("jobs", max_attempts=0)
    for receipt in ("nonsense", "0.0.", "a.b.c"):
        with pytest.raises(BadOption):
            db.queue("jobs").ack(receipt)


def test_threads_share_a_queue(tmp_path):
    with evert.open(tmp_path / "db") as db:
        db.stream("jobs", SCHEMA, partitions=3).append(rows(*range(2000)))
        queue = db.queue("jobs")
        done: list[int] = []

        def work():
            while taken := queue.take(17):
                done.extend(ids(taken))
                queue.ack(taken)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == list(range(2000))


WORKER = """
import sys, evert

db = evert.open(sys.argv[1])
queue = db.queue("jobs", visibility="0.5 seconds", max_attempts=100)
while True:
    if taken := queue.take(10, timeout=0.1):
        with db.transaction() as tx:
            tx.append("out", [{"id": message.row["id"]} for message in taken])
            queue.ack(taken, tx)
"""


def test_a_consumer_killed_at_any_moment_loses_nothing_and_repeats_nothing(tmp_path):
    path = str(tmp_path / "db")
    with evert.open(path) as db:
        jobs, out = db.stream("jobs", SCHEMA, partitions=2), db.stream("out", "id BIGINT")
        queue = db.queue("jobs", max_attempts=100)
        workers = [subprocess.Popen([sys.executable, "-c", WORKER, path]) for _ in range(2)]
        try:
            for start in range(0, 1000, 100):
                jobs.append(rows(*range(start, start + 100)))
            until(lambda: sum(batch.num_rows for batch in out.read()) > 100)
            workers[0].send_signal(signal.SIGKILL)
            jobs.append(rows(*range(1000, 1200)))
            until(lambda: queue.stats().behind == 0)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        done = Counter(number for batch in out.read() for number in batch.column("id").to_pylist())
        assert done == Counter(range(1200))
