"""What is late, and where watermarks are, by the plainest means: an event after the other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

import evert
from evert.log import watermarks
from evert.testing import ManualClock

START = datetime(1970, 1, 1, tzinfo=UTC)
SOURCES = ("a", "b", "c", None)

events = st.lists(
    st.tuples(st.sampled_from(SOURCES), st.one_of(st.none(), st.integers(-20, 60))), min_size=1, max_size=6
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), events),
        st.tuples(
            st.just("promise"), st.tuples(st.sampled_from((*SOURCES[:3], "all")), st.integers(-20, 60))
        ),
        st.tuples(st.just("pause"), st.integers(1, 40)),
    ),
    max_size=12,
)
options = st.fixed_dictionaries(
    {
        "lateness": st.integers(0, 15),
        "late": st.sampled_from(("correct", "drop")),
        "idle_after": st.one_of(st.none(), st.integers(1, 50)),
        "forget_after": st.one_of(st.none(), st.integers(0, 20)),
    }
)


class Plain:
    """Marks as a dictionary, and every event looked at alone."""

    def __init__(self, lateness, late, idle_after, forget_after):
        self.lateness, self.late, self.idle_after, self.forget_after = (
            lateness,
            late,
            idle_after,
            forget_after,
        )
        self.marks, self.seen, self.idle = {}, {}, set()
        self.floor = self.watermark = self.horizon = None
        self.kept, self.aside, self.counts = [], [], {}

    def mark(self, source):
        known = [m for m in (self.marks.get(source), self.floor, self.horizon) if m is not None]
        return max(known, default=None)

    def append(self, rows, now):
        before = {source: self.mark(source) for source, _ in rows}
        for source, time in rows:
            mark = before[source]
            late = time is not None and mark is not None and time < mark
            old = late and self.forget_after is not None and time < mark - self.forget_after
            old |= late and self.horizon is not None and time < self.horizon
            gone = old or (late and self.late == "drop")
            (self.aside if gone else self.kept).append((source, time))
            if time is not None:
                counts = self.counts.setdefault(source or "", [0, 0, 0])
                for place, one in enumerate((True, late, gone)):
                    counts[place] += one
        for source, time in rows:
            if time is not None:
                self.raised(source, time - self.lateness, now)
        if any(time is not None for _, time in rows):
            self.settle(now)

    def promise(self, source, time, now):
        if source == "all":
            self.floor = time if self.floor is None else max(self.floor, time)
            self.marks = {name: max(mark, time) for name, mark in self.marks.items()}
        else:
            known = self.mark(source)
            self.raised(source, time if known is None else max(time, known), now)
        self.settle(now)

    def raised(self, source, mark, now):
        self.marks[source] = max(self.marks.get(source, mark), mark)
        self.seen[source] = now
        self.idle.discard(source)

    def settle(self, now):
        if self.idle_after is not None:
            self.idle |= {name for name, seen in self.seen.items() if seen <= now - self.idle_after}
        active = [mark for name, mark in self.marks.items() if name not in self.idle]
        value = min(active) if active else max(self.marks.values(), default=self.floor)
        if value is not None:
            self.watermark = value if self.watermark is None else max(self.watermark, value)
            if self.forget_after is not None:
                self.horizon = self.watermark - self.forget_after


def moment(seconds):
    return None if seconds is None else START + timedelta(seconds=seconds)


@settings(deadline=None)
@given(options, steps)
def test_the_log_parts_and_counts_events_as_one_would_by_hand(tmp_path_factory, given_options, script):
    clock, now = ManualClock(), 0
    folder = tmp_path_factory.mktemp("law")
    plain, marks = Plain(**given_options), []
    with evert.open(folder, clock=clock, background=False) as db:
        stream = db.stream("s", "who STRING, at TIMESTAMP", event_time="at", source="who", **given_options)
        for kind, what in script:
            if kind == "append":
                stream.append([{"who": who, "at": moment(time)} for who, time in what])
                plain.append(what, now)
            elif kind == "promise":
                source, time = what
                stream.no_more_before(moment(time), source=None if source == "all" else source)
                plain.promise(source, time, now)
            else:
                clock.advance(what)
                now += what
                db.maintain()
                plain.settle(now)
            marks.append((db.position, stream.watermark))
            assert stream.watermark == moment(plain.watermark)
        assert rows(db, "s") == plain.kept
        if "s.late" in db.topics:
            assert rows(db, "s.late") == plain.aside
        assert {s.name: [s.events, s.late, s.dropped] for s in stream.sources() if s.events} == plain.counts
        topic = db.definition("s")
        with db.catalog.read() as tx:
            for position, value in marks:
                found = watermarks.watermark(tx, topic.id, position)
                assert (None if found is None else START + timedelta(microseconds=found)) == value


def rows(db, name):
    return [
        (row["who"], None if row["at"] is None else int(row["at"].timestamp()))
        for batch in db.topic(name).read()
        for row in batch.to_pylist()
    ]
