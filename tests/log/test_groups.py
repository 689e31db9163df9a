"""Consumer groups: members share partitions, the dead are replaced, and a commit counts once or not at all."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evert
from evert.errors import BadOption, Expired, Fenced, NotFound, Refused, UnknownTopic
from evert.log.assignment import spread
from evert.testing import ManualClock

SCHEMA = "id BIGINT, word STRING"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def db(tmp_path, clock):
    with evert.open(tmp_path / "db", clock=clock, background=False) as made:
        yield made


def rows(*ids):
    return [{"id": number, "word": f"w{number}"} for number in ids]


def ids(batches):
    return sorted(number for batch in batches for number in batch.rows.column("id").to_pylist())


def drain(consumer):
    found = []
    while batches := consumer.poll(0):
        found += ids(batches)
    return sorted(found)


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


def test_one_large_commit_is_polled_in_pieces_and_resumed_in_the_middle(db):
    db.stream("clicks", SCHEMA, partitions=3).append(rows(*range(500)))
    seen = []
    while len(seen) < 500:
        with db.consumer("g", "clicks") as consumer:
            found = ids(consumer.poll(0, max_rows=37)) + ids(consumer.poll(0, max_rows=5))
            consumer.commit()
        seen += found
    assert sorted(seen) == list(range(500))


def test_sealing_between_two_polls_changes_nothing(db):
    clicks = db.stream("clicks", SCHEMA, partitions=2)
    for number in range(20):
        clicks.append(rows(number))
    consumer = db.consumer("g", "clicks")
    first = ids(consumer.poll(0, max_rows=7))
    db.maintain()
    assert sorted(first + drain(consumer)) == list(range(20))


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
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        consumer.poll(0)
        consumer.commit(tx)
        raise ZeroDivisionError
    assert ids(consumer.poll(0)) == [1, 2]
    consumer.commit()
    assert consumer.poll(0) == []


def test_a_transaction_of_a_fenced_member_writes_nothing(db):
    db.stream("clicks", SCHEMA, partitions=2).append(rows(*range(8)))
    out = db.stream("out", "id BIGINT")
    a = db.consumer("g", "clicks", member="a")
    with pytest.raises(Fenced), db.transaction() as tx:
        tx.append("out", [{"id": number} for number in ids(a.poll(0))])
        a.commit(tx)
        db.consumer("g", "clicks", member="b")
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


def test_rows_that_retention_took_are_an_error_that_says_which(db, clock):
    clicks = db.stream("clicks", SCHEMA, retain="1 day")
    clicks.append(rows(1))
    consumer = db.consumer("g", "clicks", lease="30 days")
    consumer.poll(0)
    consumer.commit()
    clicks.append(rows(2, 3, 4))
    clock.advance("2 days")
    db.maintain()
    clicks.append(rows(5))
    with pytest.raises(Expired, match=r"3 rows of clicks .* partition 0, offsets 1 to 3") as caught:
        consumer.poll(0)
    assert caught.value.details["lost"] == 3
    assert "evert groups reset g --to earliest --topic clicks" in caught.value.hint
    db.reset("g", "earliest", force=True)
    assert drain(consumer) == [5]


def test_a_group_that_has_read_everything_does_not_mind_retention(db, clock):
    clicks = db.stream("clicks", SCHEMA, retain="1 day", partitions=2)
    clicks.append(rows(1, 2, 3))
    consumer = db.consumer("g", "clicks", lease="30 days")
    drain(consumer)
    consumer.commit()
    clock.advance("2 days")
    db.maintain()
    clicks.append(rows(4))
    assert drain(consumer) == [4]


def test_gaps_of_a_compacted_table_are_normal(db):
    users = db.table("users", SCHEMA, key="id")
    for turn in range(5):
        users.upsert([{"id": number, "word": str(turn)} for number in range(4)])
    consumer = db.consumer("g", "users")
    assert len(ids(consumer.poll(0, max_rows=3))) == 3
    consumer.commit()
    users.compact()
    again = db.consumer("g", "users", member="again")
    consumer.close()
    assert {number: word for batch in again.poll(0) for number, word in _pairs(batch)} == dict.fromkeys(
        range(4), "4"
    )
    again.commit()
    assert again.poll(0) == []


def _pairs(batch):
    return zip(batch.rows.column("id").to_pylist(), batch.rows.column("word").to_pylist(), strict=True)


def test_seek_polls_from_an_offset(db):
    clicks = db.stream("clicks", SCHEMA)
    for number in range(10):
        clicks.append(rows(number))
        if number == 4:
            db.maintain()
    consumer = db.consumer("g", "clicks")
    drain(consumer)
    for offset in (7, 2, 10):
        consumer.seek("clicks", 0, offset)
        assert drain(consumer) == list(range(offset, 10))
    with pytest.raises(Expired, match="offsets 0 to 10"):
        consumer.seek("clicks", 0, 11)
    with pytest.raises(Refused):
        consumer.seek("clicks", 1, 0)


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


@pytest.mark.parametrize("partitions", [1, 3])
def test_reset_moves_a_group_to_an_end_a_position_or_a_time(db, clock, partitions):
    clicks = db.stream("clicks", SCHEMA, partitions=partitions)
    times, positions = [], []
    for number in range(6):
        times.append(timedelta(microseconds=clock.now()))
        positions.append(clicks.append(rows(10 * number, 10 * number + 1)))
        clock.advance("1 minute")
        if number == 3:
            db.maintain()
    consumer = db.consumer("g", "clicks")
    drain(consumer)
    consumer.commit()
    with pytest.raises(Refused, match="1 live members"):
        db.reset("g", "earliest")
    consumer.close()
    epoch = evert.log.progress._EPOCH
    everything = [10 * n + extra for n in range(6) for extra in (0, 1)]
    for to, left in (
        ("earliest", everything),
        ("latest", []),
        (positions[1], everything[4:]),
        (positions[4], everything[10:]),
        (epoch + times[2], everything[4:]),
        (epoch + times[2] + timedelta(seconds=1), everything[6:]),
        (epoch + timedelta(days=90_000), []),
    ):
        db.reset("g", to)
        with db.consumer("g", "clicks") as again:
            assert drain(again) == left, to
    with pytest.raises(BadOption):
        db.reset("g", "somewhere")
    with pytest.raises(NotFound):
        db.reset("nobody", "earliest")


def test_a_forced_reset_fences_live_members(db):
    db.stream("clicks", SCHEMA).append(rows(1, 2))
    consumer = db.consumer("g", "clicks")
    drain(consumer)
    db.reset("g", "latest", force=True)
    with pytest.raises(Fenced):
        consumer.commit()
    assert consumer.poll(0) == []


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


WORKER = """
import sys, evert
from evert.errors import Fenced

db = evert.open(sys.argv[1])
consumer = db.consumer("g", "clicks", lease="0.5 seconds")
while True:
    try:
        with db.transaction() as tx:
            for batch in consumer.poll(0.05, max_rows=20):
                tx.append("out", [{"id": number} for number in batch.rows.column("id").to_pylist()])
            consumer.commit(tx)
    except Fenced:
        continue
"""


def test_a_member_killed_at_any_moment_loses_nothing_and_repeats_nothing(tmp_path):
    path = str(tmp_path / "db")
    with evert.open(path) as db:
        clicks = db.stream("clicks", SCHEMA, partitions=4)
        out = db.stream("out", "id BIGINT")
        workers = [subprocess.Popen([sys.executable, "-c", WORKER, path]) for _ in range(2)]
        try:
            for start in range(0, 2000, 100):
                clicks.append(rows(*range(start, start + 100)))
            _until(lambda: sum(batch.num_rows for batch in out.read()) > 200)
            workers[0].send_signal(signal.SIGKILL)
            clicks.append(rows(*range(2000, 2500)))
            _until(lambda: sum(lag.events for lag in db.lag()) == 0)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        done = Counter(number for batch in out.read() for number in batch.column("id").to_pylist())
        assert done == Counter(range(2500))


def _until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@given(
    st.dictionaries(st.tuples(st.integers(1, 3), st.integers(0, 5)), st.sampled_from("abcde")),
    st.sets(st.sampled_from("abcde"), min_size=1),
)
def test_the_spread_is_even_and_moves_no_more_than_it_has_to(owners, members):
    wanted = {slot: tuple(sorted(members)) for slot in owners}
    result = spread(owners, wanted)
    load = Counter(result.values())
    assert result.keys() == owners.keys()
    assert max(load[m] for m in members) - min(load[m] for m in members) <= 1
    before = Counter(member for member in owners.values() if member in members)
    low, extra = divmod(len(owners), len(members))
    over = sorted((before[m] for m in members), reverse=True)
    must = sum(max(0, n - low - (index < extra)) for index, n in enumerate(over))
    orphans = sum(member not in members for member in owners.values())
    assert sum(owners[slot] != result[slot] for slot in owners) == must + orphans
    assert spread(result, wanted) == result


MEMBERS = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("poll"), MEMBERS, st.integers(1, 8)),
        st.tuples(st.just("commit"), MEMBERS),
        st.tuples(st.just("fail"), MEMBERS),
        st.tuples(st.just("kill"), MEMBERS),
        st.tuples(st.just("close"), MEMBERS),
        st.tuples(st.just("advance"), st.integers(1, 40)),
        st.tuples(st.just("maintain")),
    ),
    max_size=30,
)


class Group:
    """Members that write what they polled into `out`, and may stop between any two steps."""

    def __init__(self, folder, clock):
        self.clock = clock
        self.db = evert.open(folder, clock=clock, background=False)
        self.clicks = self.db.stream("clicks", SCHEMA, key="id", partitions=3)
        self.out = self.db.stream("out", "id BIGINT, part INT, off BIGINT")
        self.members, self.pending, self.made, self.delivered = {}, {}, 0, set()

    def member(self, name):
        if name not in self.members:
            self.members[name], self.pending[name] = self.db.consumer("g", "clicks", member=name), []
        return self.members[name]

    def append(self, count):
        self.clicks.append(rows(*range(self.made, self.made + count)))
        self.made += count

    def poll(self, name, most):
        for batch in self.member(name).poll(0, max_rows=most):
            columns = (batch.rows.column(c).to_pylist() for c in ("id", "_partition", "_offset"))
            found = [{"id": i, "part": p, "off": o} for i, p, o in zip(*columns, strict=True)]
            self.pending[name] += found
            self.delivered.update(row["id"] for row in found)

    def commit(self, name, fail=False):
        member = self.member(name)
        try:
            with self.db.transaction() as tx:
                tx.append("out", self.pending[name])
                member.commit(tx)
                if fail:
                    raise ZeroDivisionError
        except (Fenced, ZeroDivisionError):
            member.rewind()
        self.pending[name] = []

    def fail(self, name):
        self.commit(name, fail=True)

    def kill(self, name):
        self.members.pop(name, None)

    def close(self, name):
        if member := self.members.pop(name, None):
            member.close()

    def advance(self, seconds):
        self.clock.advance(seconds)

    def maintain(self):
        self.db.maintain()

    def results(self):
        return [row for batch in self.out.read() for row in batch.to_pylist()]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_every_row_is_delivered_and_counts_once_whoever_dies(steps):
    with tempfile.TemporaryDirectory() as folder:
        group = Group(folder, ManualClock())
        for name, *arguments in steps:
            getattr(group, name)(*arguments)
            done = Counter(row["id"] for row in group.results())
            assert all(count == 1 for count in done.values())
        group.clock.advance("1 hour")
        group.members.clear()
        while sum(lag.events for lag in group.db.lag(topic="clicks")) or not group.db.groups():
            group.poll("last", 5)
            group.commit("last")
        results = group.results()
        assert sorted(row["id"] for row in results) == list(range(group.made))
        assert group.delivered == set(range(group.made))
        for part in range(3):
            offsets = [row["off"] for row in results if row["part"] == part]
            assert offsets == sorted(offsets)
        group.db.close()
