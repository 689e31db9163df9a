"""Topics that change, go or come again while others read, compact, take and retry."""

from __future__ import annotations

import sqlite3

import pytest

import evert
from evert.errors import Conflict, Corrupt, Expired, RequestReused
from evert.log import compaction, reader


@pytest.fixture
def db(tmp_path, clock):
    with evert.open(tmp_path / "db", clock=clock, direct_rows=20, background=False) as made:
        yield made


def rows(topic, **options):
    return [row for batch in topic.read(**options) for row in batch.to_pylist()]


def test_a_schema_that_is_widened_while_compaction_runs_loses_no_column(db, monkeypatch):
    table = db.table("t", "id INT, a INT", key="id")
    table.upsert([{"id": 1, "a": 1}])
    table.upsert([{"id": 1, "a": 2}])
    judge = compaction._judge

    def meanwhile(*arguments):
        monkeypatch.undo()
        table.alter("id INT, a BIGINT, b STRING")
        table.upsert({"id": 2, "a": 2**40, "b": "kept"})
        return judge(*arguments)

    monkeypatch.setattr(compaction, "_judge", meanwhile)
    with pytest.raises(Conflict):
        table.compact()
    table.compact()
    assert [(row["id"], row["a"], row["b"]) for row in rows(table)] == [(1, 2, None), (2, 2**40, "kept")]


def test_a_read_beside_compaction_gives_every_key(db, monkeypatch):
    monkeypatch.setattr(reader, "BATCH_ROWS", 10)
    table = db.table("t", "id INT, v INT", key="id")
    for start in range(0, 40, 10):
        table.upsert([{"id": n, "v": 1} for n in range(start, start + 10)])
    reading = table.read()
    keys = next(reading).column("id").to_pylist()
    table.upsert({"id": 35, "v": 2})
    table.compact()
    keys += [n for batch in reading for n in batch.column("id").to_pylist()]
    assert sorted(set(keys)) == list(range(40))


def test_a_table_cannot_be_read_as_of_a_position_that_compaction_has_passed(db):
    table = db.table("t", "id INT, v INT", key="id")
    seen = table.upsert([{"id": 1, "v": 1}, {"id": 2, "v": 1}])
    table.upsert({"id": 1, "v": 2})
    assert len(rows(table, upto=seen)) == 2
    table.compact()
    with pytest.raises(Expired) as raised:
        rows(table, upto=seen)
    assert "history" in raised.value.hint


def test_with_history_a_table_can_be_read_as_of_positions_within_it(db, clock):
    table = db.table("t", "id INT, v INT", key="id", history="1 day")
    seen = table.upsert([{"id": 1, "v": 1}, {"id": 2, "v": 1}])
    clock.advance("1 hour")
    table.upsert({"id": 1, "v": 2})
    table.compact()
    assert {row["id"]: row["v"] for row in rows(table, upto=seen)} == {1: 1, 2: 1}


def test_a_queue_over_a_topic_that_was_made_anew_delivers_the_new_rows(db):
    db.stream("t", "n INT").append([{"n": n} for n in range(3)])
    queue = db.queue("t")
    assert queue.take()[0].row == {"n": 0}
    db.drop("t")
    db.stream("t", "n INT").append([{"n": n} for n in range(10, 13)])
    assert [message.row["n"] for message in queue.take(5)] == [10, 11, 12]


def test_a_follower_is_told_that_its_topic_was_dropped(db):
    topic = db.stream("t", "n INT")
    topic.append({"n": 1})
    following = topic.read(follow=True, timeout=5)
    next(following)
    db.drop("t")
    db.stream("t", "n INT").append({"n": 2})
    with pytest.raises(Expired, match="dropped"):
        next(following)


def test_a_request_id_used_for_a_topic_of_the_same_name_before_is_not_taken_for_done(db):
    topic = db.stream("t", "n INT")
    topic.append({"n": 1}, request_id="r")
    db.drop("t")
    db.stream("t", "n INT")
    with pytest.raises(RequestReused):
        topic.append({"n": 1}, request_id="r")


def test_a_poll_across_a_change_of_schema_gives_all_rows(db):
    topic = db.stream("t", "n INT")
    topic.append([{"n": n} for n in range(3)])
    with db.consumer("g", "t") as consumer:
        assert consumer.poll(max_rows=1)[0].rows.num_rows == 1
        topic.alter("n BIGINT, note STRING")
        topic.append({"n": 2**40, "note": "new"})
        found = []
        while batches := consumer.poll(timeout=0):
            found += [n for batch in batches for n in batch.rows.column("n").to_pylist()]
        assert found == [1, 2, 2**40]


def test_a_guard_sees_rows_that_retention_and_compaction_have_removed(db, clock):
    topic = db.stream("t", "n INT", retain="1 hour")
    seen = topic.append({"n": 1})
    topic.append({"n": 2})
    clock.advance("2 hours")
    db.maintain()
    assert rows(topic) == []
    with pytest.raises(Conflict):
        topic.append({"n": 3}, unmoved_since=seen)


@pytest.mark.parametrize(
    ("kind", "key", "asked"),
    [
        ("CHAR(5)", "ab", "ab"),
        ("DOUBLE", float("nan"), float("nan")),
        ("DOUBLE", 0.0, -0.0),
        ("DATE", "2026-01-02", "2026-01-02"),
        ("DECIMAL(5,2)", "1.50", "1.5"),
        ("TIMESTAMP", "2026-01-02T03:04:05Z", "2026-01-02T04:04:05+01:00"),
        ("BINARY", b"\x00", b"\x00"),
    ],
)
def test_a_guard_on_a_key_takes_the_key_as_an_append_does(db, kind, key, asked):
    table = db.table("t", f"id {kind}, v INT", key="id")
    table.upsert({"id": key, "v": 1})
    with pytest.raises(Conflict):
        table.upsert({"id": key, "v": 2}, unmoved_since=0, unmoved_key=asked)


@pytest.mark.parametrize("history", [None, "1 hour"])
@pytest.mark.parametrize(("written", "deleted"), [(0.0, -0.0), (-0.0, 0.0), (float("nan"), float("nan"))])
def test_a_deleted_float_key_stays_deleted(db, clock, history, written, deleted):
    table = db.table("t", "k DOUBLE", key="k", tombstones="1 minute", history=history)
    table.upsert([{"k": written}, {"k": 9.0}])
    table.delete([deleted])
    clock.advance("1 day")
    table.compact()
    assert [row["k"] for row in rows(table)] == [9.0]


def test_a_retention_that_was_raised_meanwhile_is_respected(db, clock, monkeypatch):
    topic = db.stream("t", "n INT", retain="1 hour")
    topic.append({"n": 1})
    clock.advance("2 hours")
    keep = db.log.keeper._keep_topic

    def meanwhile(*arguments, **options):
        topic.alter(retain="365 days")
        return keep(*arguments, **options)

    monkeypatch.setattr(db.log.keeper, "_keep_topic", meanwhile)
    db.maintain()
    assert len(rows(topic)) == 1


def test_trouble_with_one_topic_keeps_no_other_from_being_looked_after(db, tmp_path):
    for name in ("a", "b"):
        db.stream(name, "n INT").append({"n": 1})
    with sqlite3.connect(tmp_path / "db" / "catalog.sqlite") as connection:
        connection.execute("UPDATE tail SET at = at + 1 WHERE topic = 1")
    connection.close()
    with pytest.raises(Corrupt, match="tail of a"):
        db.maintain()
    assert (db.topic("a").sizes().segments, db.topic("b").sizes().segments) == (0, 1)


def test_a_lease_from_a_clock_that_ran_ahead_does_not_stop_upkeep(db, clock):
    db.stream("t", "n INT").append({"n": 1})
    now = clock.now()
    clock._now = now + 10 * 365 * 86_400_000_000
    from evert.catalog import acquire

    assert acquire(db.catalog, "keeper", "another", 60_000_000)
    clock._now = now
    db.maintain()
    assert db.topic("t").sizes().segments == 1


def test_damage_that_comes_after_a_file_was_verified_is_noticed_too(db, tmp_path):
    topic = db.stream("t", "n BIGINT")
    topic.append([{"n": n * 10**12 + n} for n in range(50)])
    assert len(rows(topic)) == 50
    (file,) = (tmp_path / "db").rglob("*.parquet")
    content = bytearray(file.read_bytes())
    content[120] ^= 1
    with file.open("r+b") as damaged:
        damaged.write(content)
    with pytest.raises(Corrupt):
        rows(topic)
