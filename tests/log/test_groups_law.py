"""The laws of consumer groups: nothing is lost and nothing counts twice, whoever dies."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.log.consuming import SCHEMA, rows, until

import evert
from evert.errors import Fenced
from evert.log.assignment import spread
from evert.testing import ManualClock

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
            until(lambda: sum(batch.num_rows for batch in out.read()) > 200)
            workers[0].send_signal(signal.SIGKILL)
            clicks.append(rows(*range(2000, 2500)))
            until(lambda: sum(lag.events for lag in db.lag()) == 0)
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        done = Counter(number for batch in out.read() for number in batch.column("id").to_pylist())
        assert done == Counter(range(2500))


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
COMMON = (
    st.tuples(st.just("append"), st.integers(1, 6)),
    st.tuples(st.just("poll"), MEMBERS, st.integers(1, 8)),
    st.tuples(st.just("commit"), MEMBERS),
)
RARE = (
    st.tuples(st.just("fail"), MEMBERS),
    st.tuples(st.just("kill"), MEMBERS),
    st.tuples(st.just("close"), MEMBERS),
    st.tuples(st.just("advance"), st.integers(1, 40)),
    st.tuples(st.just("maintain")),
)
OFTEN = st.integers(0, 3).flatmap(lambda n: st.one_of(*COMMON) if n else st.one_of(*RARE))
STEPS = st.lists(OFTEN, min_size=12, max_size=30)


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


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_every_row_is_delivered_and_counts_once_whoever_dies(steps):
    with tempfile.TemporaryDirectory() as folder:
        group = Group(folder, ManualClock())
        group.append(20)
        for name, *arguments in steps:
            getattr(group, name)(*arguments)
            done = Counter(row["id"] for row in group.results())
            assert all(count == 1 for count in done.values())
        group.clock.advance("1 hour")
        group.members.clear()
        for _ in range(group.made + 1):
            group.poll("last", 5)
            group.commit("last")
            if not sum(lag.events for lag in group.db.lag(topic="clicks")):
                break
        results = group.results()
        assert sorted(row["id"] for row in results) == list(range(group.made))
        assert group.delivered == set(range(group.made))
        for part in range(3):
            offsets = [row["off"] for row in results if row["part"] == part]
            assert offsets == sorted(offsets)
        group.db.close()
