"""The law of time: what views show depends on the events, not on when and in which pieces they are processed.

Any cuts of one log into epochs, with restarts and pauses between them, give the same views, late counts and sums of
change feeds. Any order in which the same events arrive gives the same views in the end, where stragglers correct.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evert
from evert.epoch import schedule
from evert.testing import ManualClock

START = datetime(2026, 3, 28, 23, tzinfo=UTC)
OPTIONS = {"event_time": "at", "lateness": "2 minutes", "source": "who", "idle_after": "20 minutes"}
CHANGING = {
    "tumbling": "SELECT window, who, count(*) AS n FROM e GROUP BY window(at, '5 minutes'), who",
    "hopping": "SELECT window, sum(v) AS s FROM e GROUP BY window(at, '6 minutes', '2 minutes')",
    "sessions": "SELECT who, session_window AS w, count(*) AS n, max(v) AS m FROM e"
    " GROUP BY who, session_window(at, '3 minutes')",
    "sliding": "SELECT at, who, v, sum(v) OVER (PARTITION BY who ORDER BY at"
    " RANGE BETWEEN INTERVAL 4 MINUTES PRECEDING AND CURRENT ROW) AS s FROM e",
    "pairs": "SELECT a.v AS a, b.v AS b, a.at FROM e a JOIN e b ON a.who = b.who"
    " AND b.at > a.at AND b.at <= a.at + INTERVAL 2 MINUTES",
}
CLOSED = {"closed": CHANGING["tumbling"], "ended": CHANGING["sessions"]}
LAW = settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))

SEEDS = st.integers(0, 2**20)


def commits_of(draw: random.Random) -> list[tuple[list[Any], int]]:
    """Events of three sources within half an hour, by commit, and the minutes that pass before each."""

    def event() -> tuple[str, int, int]:
        return draw.choice("abc"), draw.randrange(60 * 30), draw.randrange(10)

    return [
        ([event() for _ in range(draw.randrange(7))], draw.randrange(26)) for _ in range(draw.randint(4, 7))
    ]


def rows_of(events: list[Any]) -> list[dict[str, Any]]:
    return [{"who": who, "at": START + timedelta(seconds=second), "v": v} for who, second, v in events]


class Kept:
    """A database of the views, kept in some way."""

    def __init__(self, folder: Path, late: str, views: dict[str, str], closed: dict[str, str]) -> None:
        self._folder, self._views, self._closed = folder, views, closed
        self.clock = ManualClock()
        self.db = evert.open(folder, clock=self.clock)
        self.db.stream("e", "who STRING, at TIMESTAMP, v BIGINT", late=late, **OPTIONS)

    def define(self) -> None:
        for name, query in self._views.items():
            self.db.view(name, query)
        for name, query in self._closed.items():
            self.db.view(name, query, emit="close")

    def restart(self) -> None:
        self.db.close()
        self.db = evert.open(self._folder, clock=self.clock)

    def answers(self) -> dict[str, Any]:
        """All that must be the same: rows, sums of changes, and what came late."""
        found: dict[str, Any] = {"late": [(t.late, t.dropped, t.watermark) for t in self.db.times()]}
        for name in self.db.views:
            view, sums = self.db.views[name], Counter()
            for change in view.changes(after=0):
                for row in change.rows.to_pylist():
                    weight = row.pop("_weight")
                    sums[repr(sorted(row.items()))] += weight
            found[name] = sorted(map(repr, view.rows()))
            assert Counter({row: n for row, n in sums.items() if n}) == Counter(
                repr(sorted(row.items())) for row in view.rows()
            )
        return found


@pytest.mark.timeout(900)
@LAW
@given(late=st.sampled_from(["correct", "drop"]), seed=SEEDS)
def test_cuts_restarts_and_pauses_make_no_difference(spark, tmp_path_factory, late, seed):
    draw = random.Random(seed)
    commits = commits_of(draw)
    folder = tmp_path_factory.mktemp("time")
    steps, once, cut = (Kept(folder / name, late, CHANGING, CLOSED) for name in ("steps", "once", "cut"))
    steps.define()
    for events, pause in commits:
        for kept in (steps, once, cut):
            kept.clock.advance(f"{pause} minutes")
            kept.db.topic("e").append(rows_of(events))
        if draw.random() < 0.6:
            steps.db.refresh()
        if draw.random() < 0.3:
            steps.restart()
    steps.db.refresh()
    for kept in (once, cut):
        kept.define()
    once.db.refresh()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "MOST_EVENTS", 3)
        cut.db.refresh()
    assert steps.answers() == once.answers() == cut.answers()
    assert [proof.view for proof in steps.db.prove() if not proof.holds] == []
    for kept in (steps, once, cut):
        kept.db.close()


@pytest.mark.timeout(900)
@LAW
@given(seed=SEEDS)
def test_events_may_arrive_in_any_order_where_stragglers_correct(spark, tmp_path_factory, seed):
    draw = random.Random(seed)
    folder = tmp_path_factory.mktemp("order")
    events = [event for some, _ in commits_of(draw) for event in some]
    first, second = (Kept(folder / name, "correct", CHANGING, {}) for name in ("first", "second"))
    for kept in (first, second):
        kept.define()
        draw.shuffle(events)
        for start in range(0, len(events), 7):
            kept.db.topic("e").append(rows_of(events[start : start + 7]))
            if draw.random() < 0.5:
                kept.db.refresh()
        kept.db.refresh()
    mine, theirs = first.answers(), second.answers()
    assert {name: mine[name] for name in CHANGING} == {name: theirs[name] for name in CHANGING}
    for kept in (first, second):
        kept.db.close()


WITHIN = "a.who = b.who AND b.at >= a.at - INTERVAL 1 MINUTE AND b.at < a.at + INTERVAL 2 MINUTES"
FORGETTING = {
    **CHANGING,
    "left": f"SELECT a.v, a.at, b.v AS x FROM e a LEFT JOIN f b ON {WITHIN}",
    "full": f"SELECT a.v, b.v AS x, b.at FROM e a FULL JOIN f b ON {WITHIN}",
    "anti": f"SELECT a.v, a.who FROM e a WHERE NOT EXISTS (SELECT 1 FROM f b WHERE {WITHIN})",
    "counted": "SELECT window(at, '3 minutes') AS w, count(*) AS n, max(x) AS m, count(DISTINCT who) AS d FROM"
    f" (SELECT a.at, a.who, b.v AS x FROM e a LEFT JOIN f b ON {WITHIN}) GROUP BY 1",
    "windows": "SELECT x.w, x.n, y.n AS m FROM"
    " (SELECT window(at, '3 minutes') AS w, count(*) AS n FROM e GROUP BY 1) x FULL JOIN"
    " (SELECT window(at, '3 minutes') AS w, max(v) AS n FROM f GROUP BY 1) y ON x.w = y.w",
    "best": "SELECT at, who, v FROM (SELECT window(at, '3 minutes') AS w, at, who, v FROM e)"
    " QUALIFY row_number() OVER (PARTITION BY w ORDER BY v DESC) <= 2",
    "median": "SELECT date_trunc('MINUTE', at) AS m, median(v) AS v FROM e GROUP BY 1",
    "days": "SELECT CAST(at AS DATE) AS d, count(*) AS n, min(v) AS m FROM e GROUP BY 1",
}


@pytest.mark.timeout(900)
@LAW
@given(seed=SEEDS, late=st.sampled_from(["correct", "drop"]))
def test_what_is_forgotten_is_never_missed(spark, tmp_path_factory, seed, late):
    draw = random.Random(seed)
    forget = draw.randrange(240)
    options = {"event_time": "at", "lateness": "1 minute", "late": late, "forget_after": f"{forget} seconds"}
    with evert.open(tmp_path_factory.mktemp("forgetting")) as db:
        for name in "ef":
            db.stream(name, "who STRING, at TIMESTAMP, v BIGINT", **options)
        for name, query in FORGETTING.items():
            db.view(name, query)
        for number in range(20):
            some = [
                (draw.choice("abc"), 60 * number + draw.randint(-600, 120), draw.randrange(10))
                for _ in range(draw.randrange(1, 9))
            ]
            db.topic(draw.choice("ef")).append(rows_of(some))
            if number % 2:
                db.refresh()
        db.refresh()
        assert [proof.view for proof in db.prove() if not proof.holds] == []
