"""Consumer groups: members share partitions, the dead are replaced, a commit counts once or not at all."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.log.consuming import SCHEMA, drain, ids, rows

import evert
from evert.errors import BadOption, Fenced, UnknownTopic


def owned(*consumers):
    return [sum(len(parts) for parts in consumer.assignment.values()) for consumer in consumers]


def test_a_consumer_gets_the_rows_from_the_beginning_and_then_the_new_ones(db):
    clicks = db.stream("clicks", SCHEMA)
    clicks.append(rows(1, 2))
    consumer = db.consumer("g", "clicks")
    assert ids(consumer.poll(0)) == [1, 2]
    clicks.append(rows(3))
    assert ids(consumer.poll(0)) == [3]
    assert consumer.poll(0) == []


def test_a_group_that_starts_at_the_latest_skips_what_is_there_and_nothing_else(db):
    clicks = db.stream("clicks", SCHEMA)
    clicks.append(rows(1))
    consumer = db.consumer("g", "click*", start="latest")
    clicks.append(rows(2))
    db.stream("clicks_too", SCHEMA).append(rows(3))
    assert drain(consumer) == [2, 3]


def test_what_was_not_committed_comes_again_to_the_next_member(db):
    db.stream("clicks", SCHEMA).append(rows(1, 2, 3))
    with db.consumer("g", "clicks") as consumer:
        assert ids(consumer.poll(0, max_rows=1)) == [1]
        consumer.commit()
        assert ids(consumer.poll(0, max_rows=1)) == [2]
    with db.consumer("g", "clicks") as consumer:
        assert drain(consumer) == [2, 3]


def test_two_groups_get_all_rows_each(db):
    db.stream("clicks", SCHEMA, partitions=2).append(rows(*range(10)))
    for group in ("one", "two"):
        with db.consumer(group, "clicks") as consumer:
            assert drain(consumer) == list(range(10))


def test_two_members_share_four_partitions_a_third_joins_and_one_dies(db, clock):
    clicks = db.stream("clicks", SCHEMA, key="id", partitions=4)
    a, b = db.consumer("g", "clicks", member="a"), db.consumer("g", "clicks", member="b")
    assert owned(a, b) == [2, 2]
    before = {"a": a.assignment, "b": b.assignment}
    c = db.consumer("g", "clicks", member="c")
    assert sorted(owned(a, b, c)) == [1, 1, 2]
    kept = [set(before[m.member]["clicks"]) & set(m.assignment["clicks"]) for m in (a, b)]
    assert sum(map(len, kept)) == 3
    clicks.append(rows(*range(100)))
    seen = {m.member: ids(m.poll(0)) for m in (a, b, c)}
    assert sorted(number for found in seen.values() for number in found) == list(range(100))
    b.commit()
    c.commit()
    clock.advance("20 seconds")
    b.poll(0)
    c.poll(0)
    clock.advance("20 seconds")
    again = ids(b.poll(0)) + ids(c.poll(0))
    assert sorted(again) == seen["a"]
    assert owned(b, c) == [2, 2]
    with pytest.raises(Fenced) as caught:
        a.commit()
    assert "poll again" in caught.value.hint


def test_a_member_that_leaves_gives_its_partitions_up_at_once(db):
    db.stream("clicks", SCHEMA, partitions=4)
    a, b = db.consumer("g", "clicks"), db.consumer("g", "clicks")
    a.close()
    assert b.assignment == {"clicks": [0, 1, 2, 3]}


def test_polling_keeps_a_member_alive(db, clock):
    db.stream("clicks", SCHEMA, partitions=2)
    a, b = db.consumer("g", "clicks"), db.consumer("g", "clicks")
    for _ in range(10):
        clock.advance("14 seconds")
        a.poll(0)
        b.poll(0)
    assert owned(a, b) == [1, 1]


def test_a_late_member_may_commit_as_long_as_nobody_took_its_partitions(db, clock):
    db.stream("clicks", SCHEMA).append(rows(1))
    consumer = db.consumer("g", "clicks")
    consumer.poll(0)
    clock.advance("1 hour")
    consumer.commit()
    assert db.lag()[0].events == 0


def test_a_fenced_commit_stores_nothing_and_the_rows_come_again(db):
    db.stream("clicks", SCHEMA, partitions=2).append(rows(*range(10)))
    a = db.consumer("g", "clicks", member="a")
    assert drain(a) == list(range(10))
    b = db.consumer("g", "clicks", member="b")
    with pytest.raises(Fenced):
        a.commit()
    assert sum(lag.events for lag in db.lag()) == 10
    assert sorted(drain(a) + drain(b)) == list(range(10))
    a.commit()
    b.commit()
    assert sum(lag.events for lag in db.lag()) == 0


def test_a_new_consumer_of_a_members_name_fences_the_old_one(db):
    db.stream("clicks", SCHEMA).append(rows(1))
    old = db.consumer("g", "clicks", member="a")
    old.poll(0)
    new = db.consumer("g", "clicks", member="a")
    with pytest.raises(Fenced):
        old.commit()
    with pytest.raises(Fenced, match="another consumer has joined"):
        old.poll(0)
    old.close()
    assert drain(new) == [1]


def test_output_and_offsets_move_in_one_commit(db):
    db.stream("clicks", SCHEMA).append(rows(1, 2))
    out = db.stream("out", "id BIGINT")
    consumer = db.consumer("g", "clicks")
    with db.transaction() as tx:
        tx.append("out", [{"id": number} for number in ids(consumer.poll(0))])
        consumer.commit(tx)
        assert db.lag()[0].events == 2
    assert db.lag()[0].events == 0
    assert sum(batch.num_rows for batch in out.read()) == 2
    assert consumer.poll(0) == []


def test_rows_of_a_transaction_that_failed_are_polled_again(db):
    db.stream("clicks", SCHEMA).append(rows(1, 2))
    consumer = db.consumer("g", "clicks")

    def work():
        with db.transaction() as tx:
            consumer.poll(0)
            consumer.commit(tx)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert ids(consumer.poll(0)) == [1, 2]
    consumer.commit()
    assert consumer.poll(0) == []


def test_a_transaction_of_a_fenced_member_writes_nothing(db):
    db.stream("clicks", SCHEMA, partitions=2).append(rows(*range(8)))
    out = db.stream("out", "id BIGINT")
    a = db.consumer("g", "clicks", member="a")
    tx = db.transaction()
    tx.append("out", [{"id": number} for number in ids(a.poll(0))])
    a.commit(tx)
    db.consumer("g", "clicks", member="b")
    with pytest.raises(Fenced):
        tx.commit()
    assert list(out.read()) == []
    assert len(drain(a)) < 8


def test_topics_that_match_a_pattern_join_at_the_next_poll(db):
    consumer = db.consumer("g", "click*")
    assert consumer.poll(0) == []
    db.stream("clicks", SCHEMA).append(rows(1))
    db.stream("Clicks2", SCHEMA).append(rows(2))
    db.stream("users", SCHEMA).append(rows(3))
    assert drain(consumer) == [1, 2]
    db.drop("clicks")
    assert drain(consumer) == []
    assert consumer.assignment == {"Clicks2": [0]}


def test_members_with_different_topics_share_only_what_both_want(db):
    for name in ("one", "two", "three"):
        db.stream(name, SCHEMA, partitions=2)
    a = db.consumer("g", ["one", "two"], member="a")
    b = db.consumer("g", ["two", "three"], member="b")
    assert a.assignment["one"] == [0, 1]
    assert b.assignment["three"] == [0, 1]
    assert owned(a, b) == [3, 3]


def test_iterating_gives_batches_and_commits_what_was_taken_out(db):
    db.stream("one", SCHEMA).append(rows(1))
    db.stream("two", SCHEMA).append(rows(2))
    consumer = db.consumer("g", ["one", "two"])
    for _ in consumer:
        consumer.commit()
        break
    assert sum(lag.events for lag in db.lag()) == 1
    for _ in consumer:
        consumer.commit()
        consumer.close()
    assert sum(lag.events for lag in db.lag()) == 0


def test_groups_are_listed_with_members_assignments_and_leases(db, clock):
    db.stream("clicks", SCHEMA, partitions=2)
    db.consumer("g", "clicks", member="a", lease="10 seconds")
    clock.advance("4 seconds")
    db.queue("clicks", group="q")
    group, queue = db.groups()
    assert (group.group, group.kind, group.topics) == ("g", "consumer", ("clicks",))
    assert (group.members[0].member, group.members[0].lease_left) == ("a", 6.0)
    assert group.members[0].assignment == {"clicks": [0, 1]}
    assert (queue.group, queue.kind, queue.members) == ("q", "queue", ())


def test_what_makes_no_sense_is_refused(db):
    db.stream("clicks", SCHEMA)
    with pytest.raises(UnknownTopic):
        db.consumer("g", "cliks")
    with pytest.raises(BadOption):
        db.consumer("g", "clicks", start="middle")
    with pytest.raises(BadOption):
        db.consumer("g", [])
    assert db.groups() == []


def test_a_poll_wakes_up_when_rows_come(tmp_path):
    with evert.open(tmp_path / "db") as db:
        db.stream("clicks", SCHEMA)
        consumer = db.consumer("g", "clicks")
        code = "import sys, evert; evert.open(sys.argv[1]).topic('clicks').append([{'id': 1, 'word': 'w'}])"
        other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "db")])
        assert ids(consumer.poll(30)) == [1]
        assert other.wait(30) == 0
