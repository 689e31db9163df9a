"""Windows and joins within an hour against what a plain program makes of the same times."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pytest

import evert

SECOND = timedelta(seconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EDGES = [
    EPOCH,
    EPOCH - SECOND,
    EPOCH + timedelta(microseconds=1),
    datetime(2026, 5, 4, 10, 3, 39, tzinfo=UTC),
    datetime(2026, 5, 4, 10, 8, 12, tzinfo=UTC),
    datetime(2026, 5, 4, 10, 3, tzinfo=UTC),
    datetime(2026, 5, 4, 10, 7, 59, tzinfo=UTC),
    datetime(2026, 5, 4, 10, 8, tzinfo=UTC),
    datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC),  # summer time begins
    datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    datetime(2026, 10, 25, 1, 30, tzinfo=UTC),  # and ends
    datetime(2262, 4, 11, 23, 47, tzinfo=UTC),
]
GAP = timedelta(minutes=5)


@pytest.fixture(scope="module")
def db(spark, tmp_path_factory):
    with evert.open(tmp_path_factory.mktemp("windows") / "db") as db:
        db.stream("e", "k STRING, at TIMESTAMP, n BIGINT")
        db.table("t", "id BIGINT, k STRING, at TIMESTAMP", key="id")
        for source in ("e", "t"):
            db.view(
                f"tumbling_{source}",
                f"SELECT k, window.start AS s, count(*) AS n FROM {source} GROUP BY k, window(at, '5 minutes')",
            )
            db.view(
                f"hopping_{source}",
                f"SELECT k, window.start AS s, count(*) AS n FROM {source}"
                " GROUP BY k, window(at, '5 minutes', '1 minute')",
            )
            db.view(
                f"sessions_{source}",
                f"SELECT k, session_window.start AS s, session_window.end AS e, count(*) AS n FROM {source}"
                " GROUP BY k, session_window(at, '5 minutes')",
            )
        db.view(
            "within",
            "SELECT a.n AS a, b.n AS b FROM e a JOIN e b"
            " ON a.k = b.k AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR AND a.n <> b.n",
        )
        draw = random.Random(5)
        times = list(EDGES)
        for edge in EDGES:
            around = (GAP, GAP - SECOND, GAP + SECOND, timedelta(hours=1), timedelta(hours=1, seconds=1))
            times += [edge - one if edge.year > 2200 else edge + one for one in around]
        times += [EDGES[3] + timedelta(seconds=draw.uniform(-9000, 9000)) for _ in range(60)]
        db.events = [(draw.choice("xy"), at, number) for number, at in enumerate(times)]
        draw.shuffle(db.events)
        db.rows = {}
        for start in range(0, len(db.events), 25):
            some = db.events[start : start + 25]
            db.topic("e").append([{"k": k, "at": at, "n": n} for k, at, n in some])
            for k, at, n in some:
                db.rows[n % 40] = (k, at)
                db.topic("t").upsert({"id": n % 40, "k": k, "at": at})
            if draw.random() < 0.3:
                gone = draw.choice(list(db.rows))
                del db.rows[gone]
                db.topic("t").delete(gone)
            db.refresh()
        yield db


def events_of(db, source):
    return [(k, at) for k, at, _ in db.events] if source == "e" else list(db.rows.values())


def found(db, view):
    return Counter(tuple(row.values()) for row in db.views[view].rows())


def begin(at: datetime, step: timedelta) -> datetime:
    return EPOCH + (at - EPOCH) // step * step


@pytest.mark.parametrize("source", ["e", "t"])
def test_a_tumbling_window_has_what_happened_from_its_start_until_before_its_end(db, source):
    counts = Counter((k, begin(at, GAP)) for k, at in events_of(db, source))
    assert found(db, f"tumbling_{source}") == Counter((k, start, n) for (k, start), n in counts.items())


@pytest.mark.parametrize("source", ["e", "t"])
def test_an_event_is_in_every_hopping_window_that_covers_it(db, source):
    step, counts = timedelta(minutes=1), Counter()
    for k, at in events_of(db, source):
        counts.update((k, begin(at, step) - step * number) for number in range(5))
    assert found(db, f"hopping_{source}") == Counter((k, start, n) for (k, start), n in counts.items())


@pytest.mark.parametrize("source", ["e", "t"])
def test_a_session_goes_on_as_long_as_the_next_event_is_no_later_than_the_gap(db, source):
    by_key, sessions = defaultdict(list), Counter()
    for k, at in events_of(db, source):
        by_key[k].append(at)
    for k, times in by_key.items():
        open_: list[datetime] = []
        for at in [*sorted(times), None]:
            if open_ and (at is None or at > open_[-1] + GAP):
                sessions[k, open_[0], open_[-1] + GAP, len(open_)] += 1
                open_ = []
            if at is not None:
                open_.append(at)
    assert found(db, f"sessions_{source}") == sessions


def test_a_join_within_an_hour_pairs_what_happened_up_to_an_hour_later(db):
    hour = timedelta(hours=1)
    pairs = Counter(
        (a, b)
        for ka, at_a, a in db.events
        for kb, at_b, b in db.events
        if ka == kb and a != b and at_a <= at_b <= at_a + hour
    )
    assert found(db, "within") == pairs
