"""Retention: old segments go, space comes back, and no reader skips rows unseen."""

from __future__ import annotations

import pytest
from tests.log.logs import append, column, make_log, rows_of

from evert.errors import Expired
from evert.log.topic import define


@pytest.fixture
def log(tmp_path, clock):
    made, close = make_log("tiny", tmp_path / "db", clock)
    yield made
    close()


def fill(log, clock, days, size=3):
    for day in range(days):
        append(log, "clicks", [{"n": day}] * size)
        log.keeper.keep(seal_all=True)
        clock.advance("1 day")


def test_rows_older_than_the_retention_go_and_younger_ones_stay(log, clock):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain": "3 days"}))
    fill(log, clock, 6)
    log.keeper.keep()
    assert column(log, "clicks", "n") == [3] * 3 + [4] * 3 + [5] * 3


def test_retention_reaches_rows_that_were_still_in_the_tail(log, clock):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain": "3 days"}))
    append(log, "clicks", [{"n": 1}])
    clock.advance("4 days")
    append(log, "clicks", [{"n": 2}])
    log.keeper.keep()
    assert column(log, "clicks", "n") == [2]


def test_offsets_and_positions_of_what_stays_do_not_change(log, clock):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain": "2 days"}))
    fill(log, clock, 5)
    log.keeper.keep()
    rows = rows_of(log, "clicks")
    assert [(row["_position"], row["_offset"]) for row in rows] == [
        (4, 9),
        (4, 10),
        (4, 11),
        (5, 12),
        (5, 13),
        (5, 14),
    ]
    assert append(log, "clicks", [{"n": 9}]) == 6
    assert rows_of(log, "clicks")[-1]["_offset"] == 15


def test_a_topic_is_kept_below_its_size(log, clock, tmp_path):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain_bytes": 4_000}))
    fill(log, clock, 20, size=30)
    log.keeper.keep()
    size = sum(path.stat().st_size for path in (tmp_path / "db" / "log").rglob("*.parquet"))
    assert 0 < size <= 4_000
    numbers = column(log, "clicks", "n")
    assert numbers == sorted(numbers)
    assert numbers[-1] == 19


def test_a_reader_whose_place_is_gone_is_told_what_is_lost(log, clock):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain": "2 days"}))
    fill(log, clock, 5)
    log.keeper.keep()
    with pytest.raises(Expired) as raised:
        list(log.read(["clicks"], after=1))
    assert raised.value.details["kept_after"] == 3
    assert raised.value.hint
    assert [b.first for b in log.read(["clicks"], after=3)] == [4, 5]


def test_a_reader_that_retention_overtakes_is_told_and_does_not_skip(log, clock):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain": "10 days"}))
    fill(log, clock, 5)
    reading = log.read(["clicks"])
    assert next(reading).first == 1
    clock.advance("9 days")
    log.keeper.keep()
    with pytest.raises(Expired):
        list(reading)


def test_a_reader_in_the_middle_of_a_segment_finishes_it_though_the_file_is_removed(log, clock):
    log.create(define("clicks", "stream", "n BIGINT", options={"retain": "10 days"}))
    append(log, "clicks", [{"n": n} for n in range(30)])
    reading = log.read(["clicks"])
    first = next(reading)
    clock.advance("20 days")
    log.keeper.keep()
    assert first.rows.column("n").to_pylist() == list(range(30))
    assert list(reading) == []
    assert column(log, "clicks", "n") == []


def test_freed_space_goes_back_to_the_disk(log, tmp_path):
    log.create(define("clicks", "stream", "text STRING"))
    for _ in range(50):
        append(log, "clicks", [{"text": "x" * 100_000}] * 2)
    catalog = tmp_path / "db" / "catalog.sqlite"
    log.keeper.keep(seal_all=True)
    assert catalog.stat().st_size < 1_000_000
