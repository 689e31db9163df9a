"""The law of the queue: every message is acknowledged once or dead, and never with two consumers at once."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import evert
from evert.errors import Fenced
from evert.testing import ManualClock

VISIBILITY = 10
MOST = 3


@dataclass
class Expected:
    """What the model knows of a message: `new`, `taken`, `waiting`, `dead` or `acked`."""

    key: str
    place: tuple[int, int] | None = None
    state: str = "new"
    receipt: str = ""
    due: int = 0
    attempts: int = 0


class QueueMachine(RuleBasedStateMachine):
    """Random work on two handles of one queue, beside a model that is a list of messages."""

    ordered = False

    @initialize(partitions=st.integers(1, 3))
    def begin(self, partitions):
        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.now = 0
        self.model: list[Expected] = []
        self.loans = []
        self.open()
        self.db.stream("jobs", "id BIGINT, word STRING", key="word", partitions=partitions)
        self.reopen()

    def open(self):
        self.db = evert.open(self.folder.name, clock=self.clock, background=False)

    @rule()
    def reopen(self):
        self.db.close()
        self.open()
        options = {"ordered": self.ordered, "visibility": VISIBILITY, "max_attempts": MOST}
        self.queues = [self.db.queue("jobs", **options) for _ in range(2)]

    @rule(words=st.lists(st.sampled_from("abc"), min_size=1, max_size=6))
    def append(self, words):
        first = len(self.model)
        self.db.topic("jobs").append([{"id": first + i, "word": word} for i, word in enumerate(words)])
        self.model += [Expected(word) for word in words]

    @rule(which=st.integers(0, 1), n=st.integers(1, 4))
    def take(self, which, n):
        self.expire()
        able = self.able()
        taken = self.queues[which].take(n)
        assert bool(taken) == bool(able)
        assert len(taken) <= n if self.ordered else len(taken) == min(n, len(able))
        assert len({message.row["id"] for message in taken}) == len(taken)
        for message in taken:
            expected = self.model[message.row["id"]]
            assert message.row["id"] in able
            assert message.row["word"] == expected.key
            assert expected.place in (None, (message.partition, message.offset))
            expected.place = (message.partition, message.offset)
            expected.state, expected.receipt = "taken", message.receipt
            expected.due = self.now + VISIBILITY
            expected.attempts += 1
            assert message.attempts == expected.attempts
            self.loans.append(message)

    def able(self):
        """The messages that may be handed out now."""
        able = {i for i, e in enumerate(self.model) if e.state == "new" or self.is_due(e)}
        if not self.ordered:
            return able
        active = {e.key for e in self.model if e.state in ("taken", "waiting") and e.attempts}
        firsts: dict[str, int] = {}
        for number, expected in enumerate(self.model):
            if expected.state in ("new", "waiting") and expected.key not in active:
                firsts.setdefault(expected.key, number)
        return {i for i in able if self.model[i].attempts and self.model[i].state != "new"} | set(
            firsts.values()
        )

    def is_due(self, expected):
        return expected.state in ("taken", "waiting") and expected.due <= self.now

    def expire(self):
        for expected in self.model:
            if expected.state == "taken" and expected.due <= self.now and expected.attempts >= MOST:
                expected.state, expected.receipt = "dead", ""

    def settle(self, picked, action, change):
        """Do something with loans, some of which may be old; the model says whether all of them hold."""
        messages = list({m.receipt: m for m in picked}.values())
        holds = all(self.model[m.row["id"]].receipt == m.receipt for m in messages)
        if holds:
            action(messages)
            for message in messages:
                change(self.model[message.row["id"]])
        else:
            with pytest.raises(Fenced):
                action(messages)

    @precondition(lambda self: self.loans)
    @rule(data=st.data(), which=st.integers(0, 1))
    def ack(self, data, which):
        def change(expected):
            expected.state, expected.receipt = "acked", ""

        self.settle(self.pick(data), self.queues[which].ack, change)

    @precondition(lambda self: self.loans)
    @rule(data=st.data(), which=st.integers(0, 1), delay=st.sampled_from([0, 0, 7]))
    def refuse(self, data, which, delay):
        def change(expected):
            expected.state = "dead" if expected.attempts >= MOST else "waiting"
            expected.receipt, expected.due = "", self.now + delay

        self.settle(self.pick(data), lambda m: self.queues[which].refuse(m, "no", delay), change)

    @precondition(lambda self: self.loans)
    @rule(data=st.data(), by=st.integers(1, 20))
    def extend(self, data, by):
        def change(expected):
            expected.due = self.now + by

        self.settle(self.pick(data), lambda m: self.queues[0].extend(m, by), change)

    def pick(self, data):
        return data.draw(st.lists(st.sampled_from(self.loans[-8:]), min_size=1, max_size=3))

    @rule(seconds=st.integers(1, 15))
    def advance(self, seconds):
        self.clock.advance(seconds)
        self.now += seconds

    @rule()
    def replay(self):
        self.queues[0].stats()
        self.expire()
        dead = [expected for expected in self.model if expected.state == "dead"]
        assert self.queues[0].replay() == len(dead)
        for expected in dead:
            expected.state, expected.attempts, expected.due = "waiting", 0, self.now

    @rule()
    def maintain(self):
        self.db.maintain()

    @invariant()
    def the_counts_agree(self):
        if not hasattr(self, "queues"):
            return
        stats = self.queues[0].stats()
        self.expire()
        states = [expected.state for expected in self.model]
        assert stats.dead == states.count("dead")
        assert stats.behind == len(states) - states.count("dead") - states.count("acked")
        flying = sum(e.state == "taken" and e.due > self.now for e in self.model)
        assert stats.in_flight == flying
        if not self.ordered:
            assert stats.delayed == sum(e.state == "waiting" and e.due > self.now for e in self.model)
            assert stats.ready == len(self.able())

    def teardown(self):
        if not hasattr(self, "queues"):
            return
        try:
            self.finish()
        finally:
            self.db.close()
            self.folder.cleanup()

    def finish(self):
        """Work on until nothing is left: then everything is acknowledged or dead."""
        for _ in range(100 + 10 * len(self.model)):
            if not self.queues[0].stats().behind:
                break
            self.take(0, 4)
            for message in [m for m in self.loans if self.model[m.row["id"]].receipt == m.receipt][:2]:
                self.queues[0].ack(message)
                self.model[message.row["id"]].state, self.model[message.row["id"]].receipt = "acked", ""
            self.advance(5)
        self.expire()
        assert {expected.state for expected in self.model} <= {"acked", "dead"}
        letters = sorted(letter.row["id"] for letter in self.queues[1].dead())
        assert letters == [i for i, e in enumerate(self.model) if e.state == "dead"]


class OrderedQueueMachine(QueueMachine):
    """The same, one message of a key at a time and in order."""

    ordered = True


_SETTINGS = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
QueueMachine.TestCase.settings = _SETTINGS
OrderedQueueMachine.TestCase.settings = _SETTINGS
TestQueueLaw = QueueMachine.TestCase
TestOrderedQueueLaw = OrderedQueueMachine.TestCase
