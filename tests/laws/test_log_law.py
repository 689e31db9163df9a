"""The law of the log: what is read is what was acknowledged, in order, whatever happens in between.

Random appends, transactions, upserts and deletes go to the embedded log and to the model in memory, with
sealing, compaction, retention, sweeps, evolution and restarts at random places. After every step both are read.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.log.logs import begin, make_log, rows_of

from evert.errors import Conflict, RequestReused
from evert.log.protocol import Request
from evert.log.topic import define
from evert.testing import ManualClock, MemoryLog

small = st.integers(0, 4)
texts = st.one_of(st.none(), st.text(max_size=5), st.just("x" * 700))
facts = st.lists(st.tuples(small, texts), min_size=0, max_size=30)
changes = st.lists(st.tuples(small, texts, st.booleans()), min_size=1, max_size=25)
writes = st.tuples(st.just("write"), facts, facts, st.lists(changes, max_size=1))
requests = st.tuples(st.just("request"), small, facts)
guarded = st.tuples(st.just("guarded"), st.integers(0, 12), st.one_of(st.none(), small), facts)
upkeep = st.tuples(st.sampled_from(["seal", "keep", "sweep", "reopen", "compact", "widen"]))
pauses = st.tuples(st.just("pause"), st.integers(1, 40))
steps = st.lists(st.one_of(writes, writes, requests, guarded, upkeep, pauses), max_size=25)

TOPICS = (
    define("a", "stream", "k INT, v STRING", key="k", partitions=3),
    define("b", "stream", "k INT, v STRING"),
    define("t", "table", "k INT, v STRING", key="k", options={"tombstones": "1 hour"}),
)
WIDER = "k BIGINT, v STRING, extra STRING"


class Pair:
    """The embedded log and its model, side by side."""

    def __init__(self, folder):
        self.folder = folder
        self.clock = ManualClock()
        self.log, self.close = make_log("tiny", folder, self.clock)
        self.model = MemoryLog(clock=self.clock)
        self.wide = False
        self.compacted = False
        for topic in TOPICS:
            self.log.create(topic)
            self.model.create(topic)

    def both(self, fill, request=None):
        """Do the same to both; they agree on the position or on the error."""
        outcomes = []
        for log in (self.log, self.model):
            tx = begin(log, request)
            fill(tx)
            try:
                outcomes.append(tx.commit())
            except (Conflict, RequestReused) as error:
                outcomes.append(type(error))
        assert outcomes[0] == outcomes[1]

    def step(self, step):
        kind, *given_ = step
        if kind == "write":
            first, second, tables = given_

            def fill(tx):
                tx.append("a", [{"k": k, "v": v} for k, v in first])
                tx.append("b", [{"k": k, "v": v} for k, v in second])
                for table in tables:
                    for k, v, deleted in table:
                        if deleted:
                            tx.delete("t", [k])
                        else:
                            tx.upsert("t", [{"k": k, "v": v}])

            self.both(fill)
        elif kind == "request":
            number, rows = given_
            self.both(lambda tx: tx.append("b", [{"k": k, "v": v} for k, v in rows]), Request(str(number)))
        elif kind == "guarded":
            since, key, rows = given_

            def fill(tx):
                tx.append("a", [{"k": k, "v": v} for k, v in rows])
                tx.require_unmoved("a", since, key=key)

            self.both(fill)
        elif kind == "seal":
            self.log.keeper.seal("a")
        elif kind == "keep":
            self.log.keeper.keep(seal_all=True)
        elif kind == "sweep":
            self.log.files.sweep()
        elif kind == "compact":
            self.log.keeper.compact("t")
            self.compacted = True
        elif kind == "pause":
            self.clock.advance(f"{given_[0]} minutes")
        elif kind == "widen" and not self.wide:
            self.wide = True
            for log in (self.log, self.model):
                for topic in TOPICS:
                    log.alter(topic.name, schema=WIDER)
        elif kind == "reopen":
            self.close()
            self.log, self.close = make_log("tiny", self.folder, self.clock)

    def check(self):
        assert self.log.head() == self.model.head()
        middle = self.model.head() // 2
        for options in ({}, {"after": middle}, {"upto": middle}):
            assert rows_of(self.log, "a", "b", **options) == rows_of(self.model, "a", "b", **options)
        if self.compacted:
            assert latest(rows_of(self.log, "t")) == latest(rows_of(self.model, "t"))
        else:
            assert rows_of(self.log, "t") == rows_of(self.model, "t")


def latest(rows):
    table = {}
    for row in rows:
        table[row["k"]] = row
    return {key: row for key, row in table.items() if not row["_deleted"]}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_what_is_read_is_what_was_acknowledged_in_order(tmp_path_factory, steps):
    run(tmp_path_factory.mktemp("law"), steps)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_what_is_read_is_what_was_acknowledged_for_long(tmp_path_factory, steps):
    run(tmp_path_factory.mktemp("law"), steps)


def run(folder, steps):
    pair = Pair(folder)
    try:
        for step in steps:
            pair.step(step)
            pair.check()
    finally:
        pair.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), facts), st.tuples(st.just("pause"), st.integers(1, 20)), upkeep
        )
    )
)
def test_retention_removes_a_prefix_and_nothing_that_is_young(tmp_path_factory, steps):
    clock = ManualClock()
    log, close = make_log("tiny", tmp_path_factory.mktemp("law"), clock)
    log.create(define("s", "stream", "k INT, v STRING", options={"retain": "30 minutes"}))
    written = []
    try:
        for kind, *given_ in steps:
            if kind == "append" and given_[0]:
                with begin(log) as tx:
                    tx.append("s", [{"k": k, "v": v} for k, v in given_[0]])
                written += [(tx.position, clock.now(), k, v) for k, v in given_[0]]
            elif kind == "pause":
                clock.advance(f"{given_[0]} minutes")
            elif kind in ("seal", "keep"):
                log.keeper.keep(seal_all=kind == "seal")
            read = [(r["_position"], r["k"], r["v"]) for r in rows_of(log, "s")]
            expected = [(p, k, v) for p, _, k, v in written]
            assert expected[len(expected) - len(read) :] == read
            young = [row for row in written if row[1] >= clock.now() - 30 * 60_000_000]
            assert len(read) >= len(young)
    finally:
        close()
