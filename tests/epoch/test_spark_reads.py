"""Spark reads from the log what Python reads from it."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import evert
from evert.epoch.spark import latest, read_topic

EVERYTHING = """
    b BOOLEAN, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, f32 FLOAT, f64 DOUBLE, d DECIMAL(20,3),
    s STRING, v VARCHAR(5), c CHAR(4), raw BINARY, day DATE, t TIME(6), at TIMESTAMP, local TIMESTAMP_NTZ,
    span INTERVAL DAY TO SECOND, list ARRAY<STRUCT<x: INT, y: STRING>>, map MAP<STRING, BIGINT>,
    `odd ``name` STRUCT<deep: ARRAY<ARRAY<DATE>>>
"""
FULL = {
    "b": True,
    "i8": -128,
    "i16": 32767,
    "i32": -(2**31),
    "i64": 2**63 - 1,
    "f32": 0.5,
    "f64": -0.0,
    "d": Decimal("12345678901234567.125"),
    "s": "é\0x",
    "v": "abcde",
    "c": "ab  ",
    "raw": b"\x00\xff",
    "day": date(9999, 12, 31),
    "t": time(23, 59, 59, 999999),
    "at": datetime(1, 1, 1, tzinfo=UTC),
    "local": datetime(2026, 2, 28, 1, 2, 3, 4),
    "span": timedelta(days=-3, microseconds=7),
    "list": [{"x": 1, "y": None}, None],
    "map": [("k", 1), ("", None)],
    "odd `name": {"deep": [[date(2000, 1, 1)], None, []]},
}


@pytest.fixture
def db(tmp_path):
    with evert.open(tmp_path / "db", background=False, direct_rows=50) as made:
        yield made


def in_order(table):
    return table.sort_by([("_partition", "ascending"), ("_offset", "ascending")]).to_pylist()


def python_reads(db, name, **options):
    topic = db.topic(name)
    return in_order(pa.Table.from_batches(list(topic.read(**options)), topic.definition.readable(None)))


def test_every_type_comes_out_of_tail_and_segments_as_it_went_in(spark, db):
    topic = db.stream("t", EVERYTHING)
    topic.append([FULL, {}])
    for _ in range(2):
        rows = in_order(read_topic(spark, db, "t").toArrow())
        assert [rows[0][name] for name in FULL] == list(FULL.values())
        assert all(rows[1][name] is None for name in FULL)
        db.maintain()


@pytest.mark.parametrize("partitions", [1, 3])
def test_positions_and_offsets_are_the_same_in_small_and_large_appends(spark, db, partitions):
    topic = db.stream("t", "k INT, v STRING", key="k", partitions=partitions)
    for size in (3, 60, 1, 80, 2):
        topic.append([{"k": n % 7, "v": f"{size}-{n}"} for n in range(size)])
    for _ in range(2):
        assert in_order(read_topic(spark, db, "t").toArrow()) == python_reads(db, "t")
        cut = read_topic(spark, db, "t", after=1, upto=4).toArrow()
        assert in_order(cut) == python_reads(db, "t", after=1, upto=4)
        db.maintain()


def test_rows_of_an_older_schema_are_read_under_the_present_one(spark, db):
    topic = db.stream("t", "n INT")
    topic.append([{"n": n} for n in range(60)])
    topic.append({"n": 1})
    db.maintain()
    topic.alter("n BIGINT, note STRING")
    topic.append({"n": 2**40, "note": "new"})
    assert in_order(read_topic(spark, db, "t").toArrow()) == python_reads(db, "t")


def test_an_empty_topic_has_its_columns(spark, db):
    db.stream("t", "n INT")
    frame = read_topic(spark, db, "t")
    assert frame.columns == ["n", "_position", "_partition", "_offset", "_ingested_at"]
    assert frame.count() == 0


def test_the_latest_rows_of_a_table_are_those_that_were_not_replaced_or_deleted(spark, db):
    users = db.table("users", "id INT, name STRING", key="id", partitions=2)
    users.upsert([{"id": n, "name": "old"} for n in range(70)])
    users.upsert([{"id": 1, "name": "first"}, {"id": 1, "name": "second"}])
    users.delete([2, 99])
    frame = latest(read_topic(spark, db, "users"), users.definition)
    rows = {row["id"]: row["name"] for row in frame.toArrow().to_pylist()}
    assert rows == {n: "second" if n == 1 else "old" for n in range(70) if n != 2}


def test_a_view_is_brought_to_the_head_of_the_log_and_read_without_spark(spark, db):
    orders = db.stream("orders", "customer INT, amount INT")
    customers = db.table("customers", "id INT, country STRING", key="id")
    query = (
        "SELECT country, sum(amount) AS total FROM orders JOIN customers ON customer = id GROUP BY country"
    )
    view = db.view("revenue", query)
    customers.upsert([{"id": 1, "country": "CH"}, {"id": 2, "country": "DE"}])
    orders.append([{"customer": 1, "amount": 5}, {"customer": 2, "amount": 7}])
    assert db.refresh() == db.position == view.position
    assert sorted(map(str, view.rows())) == sorted(
        map(str, [{"country": "CH", "total": 5}, {"country": "DE", "total": 7}])
    )
    customers.upsert({"id": 1, "country": "DE"})
    db.refresh()
    assert view.rows() == [{"country": "DE", "total": 12}]
    assert db.views["revenue"].query == query
