"""Sealing beside readers: what lies where is never noticed."""

from __future__ import annotations

import pytest
from tests.log.logs import append, column, make_log, upsert

from evert.log import reader
from evert.log.topic import define
from evert.testing import ManualClock


@pytest.fixture
def log(tmp_path):
    made, close = make_log("tiny", tmp_path / "db", ManualClock())
    yield made
    close()


def test_a_read_goes_on_where_it_was_when_its_rows_are_sealed_between_two_batches(log, monkeypatch):
    monkeypatch.setattr(reader, "BATCH_ROWS", 2)
    log.create(define("clicks", "stream", "n BIGINT", key="n", partitions=2))
    for n in range(12):
        append(log, "clicks", [{"n": n}])
    read = []
    for batch in log.read(["clicks"]):
        read += batch.rows.column("n").to_pylist()
        log.keeper.keep(seal_all=True)
        append(log, "clicks", [{"n": 99}])
    assert read == list(range(12))


def test_a_read_goes_on_where_it_was_when_a_table_is_compacted_between_two_batches(log, monkeypatch):
    monkeypatch.setattr(reader, "BATCH_ROWS", 2)
    log.create(define("users", "table", "id BIGINT, v BIGINT", key="id"))
    for n in range(12):
        upsert(log, "users", [{"id": n % 3, "v": n}])
    state = {}
    for batch in log.read(["users"]):
        for row in batch.rows.to_pylist():
            state[row["id"]] = row["v"]
        log.keeper.compact("users")
    assert state == {0: 9, 1: 10, 2: 11}


def test_sealing_never_covers_the_positions_of_a_segment_that_lies_between(log):
    log.create(define("clicks", "stream", "n BIGINT"))
    append(log, "clicks", [{"n": 0}])
    append(log, "clicks", [{"n": n} for n in range(1, 31)])
    append(log, "clicks", [{"n": 31}])
    log.keeper.keep(seal_all=True)
    assert column(log, "clicks", "n") == list(range(32))
    with log._catalog.read() as tx:
        spans = tx.all("SELECT first, last FROM segments ORDER BY first")
    assert spans == [(1, 1), (2, 2), (3, 3)]


def test_rows_of_two_schema_versions_are_sealed_apart(log):
    log.create(define("clicks", "stream", "n INT"))
    append(log, "clicks", [{"n": 1}])
    log.alter("clicks", schema="n BIGINT")
    append(log, "clicks", [{"n": 2**40}])
    log.keeper.keep(seal_all=True)
    assert column(log, "clicks", "n") == [1, 2**40]
