"""Rows that time passes by, against a twin that compares every row with the moment."""

from __future__ import annotations

import tempfile
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delta.harness import Node, canon, count, plus, table
from tests.delta.histories import BITS, LAW, Bag

from evert.delta import DataError
from evert.delta.passing import Coming, Leaving

TIME = pa.timestamp("us", "UTC")
SCHEMA = pa.schema({"k": pa.string(), "at": TIME})
MOMENT = pa.schema({"now": TIME})
START = datetime(1970, 1, 1, tzinfo=UTC)


def at(second: int | None) -> datetime | None:
    return None if second is None else START + timedelta(seconds=second)


POOL = [(k, at(second)) for k in ("x", "y", None) for second in (None, -5, 0, 1, 2, 3, 5, 8)]
STEPS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 23), st.sampled_from([1, 1, 2, -1, -2, 0])), max_size=8),
        st.sampled_from([None, 0, 0, 1, 2, 4]),
    ),
    min_size=1,
    max_size=6,
)
SHOWN = {
    (Leaving, False): lambda value, now: value > now,
    (Leaving, True): lambda value, now: value >= now,
    (Coming, False): lambda value, now: value <= now,
    (Coming, True): lambda value, now: value < now,
}


def slow(bag: Bag, kind: Any, open: bool, now: datetime) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row, weight in bag:
        if row[1] is not None and SHOWN[kind, open](row[1], now):
            found[canon(row)] += weight
    return found


def moved(before: datetime | None, now: datetime) -> pa.Table | None:
    if before == now:
        return None
    rows = [(now,)] if before is None else [(before,), (now,)]
    return table(MOMENT, rows, [-1, 1][-len(rows) :])


@LAW
@given(STEPS, st.sampled_from([Leaving, Coming]), st.booleans(), BITS, st.integers(1, 3))
def test_any_rows_and_any_moments(steps: Any, kind: Any, open: bool, bits: int, pieces: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        node = Node(kind(SCHEMA, 1, open), Path(folder), bits=bits, shards=3)
        bag, sums, before, now = Bag(SCHEMA, POOL), Counter(), None, START
        for changes, step in steps:
            delta = bag.change(changes)
            now += timedelta(seconds=step or 0)
            sums = plus(sums, count(node.epoch(delta, moved(before, now), pieces=pieces)))
            before = now
            assert sums == slow(bag, kind, open, now)
            node.restart()
        one = Node(kind(SCHEMA, 1, open), Path(folder) / "one", bits=bits)
        assert count(one.epoch(bag.whole(), moved(None, now))) == slow(bag, kind, open, now)


def test_before_the_first_moment_every_row_is_ahead(tmp_path: Path) -> None:
    leaving = Node(Leaving(SCHEMA, 1), tmp_path / "leaving")
    coming = Node(Coming(SCHEMA, 1), tmp_path / "coming")
    rows = table(SCHEMA, [("x", at(3))], [1])
    assert leaving.epoch(rows, None).num_rows == 1
    assert coming.epoch(rows, None).num_rows == 0


def test_what_has_been_left_behind_is_forgotten(tmp_path: Path) -> None:
    node = Node(Leaving(SCHEMA, 1), tmp_path)
    node.epoch(table(SCHEMA, [("x", at(1)), ("x", at(9))], [1, 1]), moved(None, at(5)))
    assert node.epoch(table(SCHEMA, [("x", at(1))], [-1]), None).num_rows == 0


def test_time_does_not_go_backwards(tmp_path: Path) -> None:
    node = Node(Leaving(SCHEMA, 1), tmp_path)
    node.epoch(None, moved(None, at(5)))
    with pytest.raises(DataError, match="backwards"):
        node.epoch(None, moved(at(5), at(4)))


def test_a_row_that_was_never_there_cannot_be_taken_back(tmp_path: Path) -> None:
    node = Node(Coming(SCHEMA, 1), tmp_path)
    with pytest.raises(DataError, match="not there"):
        node.epoch(table(SCHEMA, [("x", at(5))], [-1]), moved(None, at(9)))


def test_nothing_changes_of_what_is_final(tmp_path: Path) -> None:
    node = Node(Coming(SCHEMA, 1, final=True), tmp_path)
    node.epoch(table(SCHEMA, [("x", at(5))], [1]), moved(None, at(9)))
    with pytest.raises(DataError, match="final"):
        node.epoch(table(SCHEMA, [("x", at(5))], [-1]), None)


def test_the_clock_is_due_at_the_first_row_that_is_ahead(tmp_path: Path) -> None:
    operator = Leaving(SCHEMA, 1, shift=-2_000_000)
    node = Node(operator, tmp_path)
    node.epoch(table(SCHEMA, [("x", at(1)), ("y", at(7)), ("z", at(9))], [1, 1, 1]), moved(None, at(5)))
    due = [operator.due(node.trace(shard, "rows", operator.layout), 64) for shard in range(2)]
    assert min(one for one in due if one is not None) == 9_000_000


def test_days_pass_too(tmp_path: Path) -> None:
    schema = pa.schema({"day": pa.date32()})
    node = Node(Leaving(schema, 0), tmp_path)
    days = [(date(2262, 1, 1),), (date(1970, 1, 1),), (date(1, 1, 1),)]
    shown = node.epoch(table(schema, days, [1, 1, 1]), table(schema, [(date(1969, 12, 31),)], [1]))
    assert count(shown) == Counter({canon((day,)): 1 for (day,) in days[:2]})


def test_only_times_can_be_passed() -> None:
    with pytest.raises(ValueError, match="no time"):
        Leaving(pa.schema({"n": pa.int64()}), 0)
