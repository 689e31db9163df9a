"""What is forgotten of a trace, against plain Python."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from evert.trace.horizon import DAY, Limit, alive

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIME = pa.timestamp("us", "UTC")
WINDOW = pa.struct([("start", TIME), ("end", TIME)])
numbers = st.one_of(st.none(), st.integers(-50, 50))


def at(micros):
    return None if micros is None else EPOCH + timedelta(microseconds=micros)


@settings(deadline=None)
@given(st.lists(numbers), st.integers(-50, 50))
def test_rows_with_a_time_before_the_limit_go_and_those_without_one_stay(times, before):
    rows = pa.table({"c0": pa.array(map(at, times), TIME), "c1": pa.array(times, pa.int64())})
    kept = alive(rows, [Limit("c0", None, before)])
    assert kept.column("c1").to_pylist() == [time for time in times if time is None or time >= before]


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), st.tuples(numbers, numbers))), st.integers(-50, 50))
def test_a_field_of_a_window_decides(windows, before):
    values = [None if one is None else {"start": at(one[0]), "end": at(one[1])} for one in windows]
    rows = pa.table({"c0": pa.array(values, WINDOW), "c1": pa.array(range(len(values)), pa.int64())})
    kept = alive(rows, [Limit("c0", 1, before)])
    expected = [n for n, one in enumerate(windows) if one is None or one[1] is None or one[1] >= before]
    assert kept.column("c1").to_pylist() == expected


def test_a_date_is_the_begin_of_its_day():
    rows = pa.table({"c0": pa.array([date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 2), None])})
    assert alive(rows, [Limit("c0", None, 1)]).num_rows == 2
    assert alive(rows, [Limit("c0", None, 0)]).num_rows == 3
    assert alive(rows, [Limit("c0", None, DAY + 1)]).num_rows == 1


def test_each_limit_is_enough():
    rows = pa.table({"c0": pa.array([1, 5, 9]).cast(TIME), "c1": pa.array([9, 5, 1]).cast(TIME)})
    assert alive(rows, [Limit("c0", None, 2), Limit("c1", None, 2)]).column("c0").cast(
        "int64"
    ).to_pylist() == [5]
