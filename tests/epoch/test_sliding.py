"""Windows that slide by event time, against a reference that looks at every pair of rows."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as f
from tests.epoch.orders import right

import evert

COLUMNS = "id BIGINT, phone STRING, at TIMESTAMP, value BIGINT"
QUERY = (
    "SELECT id, phone, at, count(*) OVER near AS n, sum(value) OVER near AS total FROM {} WINDOW near AS"
    " (PARTITION BY phone ORDER BY at RANGE BETWEEN {} AND {})"
)
LISTED = QUERY.replace("sum(value)", "collect_list(value)")
MINUTES = "INTERVAL 5 MINUTES PRECEDING"
FIVE = timedelta(minutes=5)
NOTHING = timedelta(0)
START = datetime(2026, 5, 4, 10, tzinfo=UTC)


def expected(rows, before, after):
    """For each row, how many of its phone's are near it and what they sum up to; NULL is near NULL."""

    def near(one, other):
        if one["phone"] != other["phone"] or (one["at"] is None) != (other["at"] is None):
            return False
        return one["at"] is None or one["at"] - before <= other["at"] <= one["at"] + after

    found = {}
    for one in rows:
        values = [other["value"] for other in rows if near(one, other)]
        total = sum(value for value in values if value is not None)
        found[one["id"]] = (len(values), total if any(value is not None for value in values) else None)
    return found


def shown(view):
    return {row["id"]: (row["n"], row["total"]) for row in view.rows()}


def tap(id, at, phone="a", value=1):
    return {"id": id, "phone": phone, "at": at, "value": value}


@pytest.fixture
def db(spark, tmp_path):
    with evert.open(tmp_path / "db", background=False) as made:
        yield made


def test_what_is_five_minutes_apart_shares_a_window_wherever_the_clock_stands(db):
    taps = db.stream("taps", COLUMNS)
    view = db.view("near", QUERY.format("taps", MINUTES, "CURRENT ROW"))
    day = START.replace(hour=0)
    taps.append([tap(1, day.replace(hour=10, minute=3, second=39)), tap(2, START, "b")])
    db.refresh(timeout=120)
    taps.append(tap(3, day.replace(hour=10, minute=8, second=12)))
    db.refresh(timeout=120)
    assert shown(view) == {1: (1, 1), 2: (1, 1), 3: (2, 2)}


def test_the_edges_of_a_window_belong_to_it(db):
    taps = db.stream("taps", COLUMNS)
    behind = db.view("behind", QUERY.format("taps", MINUTES, "CURRENT ROW"))
    around = db.view("around", QUERY.format("taps", MINUTES, "INTERVAL 5 MINUTES FOLLOWING"))
    smallest = timedelta(microseconds=1)
    rows = []
    edges = [
        START,
        datetime(1970, 1, 1, tzinfo=UTC) - FIVE,
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2262, 4, 11, 23, 47, 16, 854_775, tzinfo=UTC),
        datetime(2026, 3, 29, 1, tzinfo=UTC),
        datetime(2026, 10, 25, 0, 58, tzinfo=UTC),
    ]
    for number, edge in enumerate(edges):
        for place, at in enumerate(
            (edge, edge + FIVE, edge + FIVE + smallest, edge + FIVE + FIVE, edge, None)
        ):
            rows.append(tap(10 * number + place, at, value=10**number))
    random.Random(1).shuffle(rows)
    for start in range(0, len(rows), 12):
        taps.append(rows[start : start + 12])
        db.refresh(timeout=120)
        assert shown(behind) == expected(rows[: start + 12], FIVE, NOTHING)
        assert shown(around) == expected(rows[: start + 12], FIVE, FIVE)
    assert right(db)
    assert "[n1, incremental]" in str(db.explain("behind")).splitlines()[1]
    assert "sliding by taps.at" in str(db.explain("behind"))


def test_corrections_give_the_same_in_many_epochs_as_in_one(db, tmp_path):
    chance = random.Random(2)
    taps = db.table("taps", COLUMNS, key="id")
    db.view("behind", QUERY.format("taps", MINUTES, "CURRENT ROW"))
    db.view("around", QUERY.format("taps", MINUTES, "INTERVAL 2 MINUTES FOLLOWING"))
    db.view("ahead", QUERY.format("taps", "INTERVAL 1 MINUTE FOLLOWING", "INTERVAL 4 MINUTES FOLLOWING"))
    db.view("busiest", "SELECT phone, max(n) AS most, count(*) AS rows FROM behind GROUP BY phone")
    db.view("listed", LISTED.format("taps", MINUTES, "CURRENT ROW"))
    held = {}
    for _ in range(6):
        for row in [changed(chance) for _ in range(15)]:
            held[row["id"]] = row
            taps.upsert(row)
        for id in chance.sample(range(60), 8):
            held.pop(id, None)
            taps.delete([id])
        db.refresh(timeout=120)
        assert shown(db.views["behind"]) == expected(held.values(), FIVE, NOTHING)
        assert shown(db.views["around"]) == expected(held.values(), FIVE, timedelta(minutes=2))
    assert right(db)
    with evert.open(tmp_path / "whole", background=False) as whole:
        whole.table("taps", COLUMNS, key="id").upsert(list(held.values()))
        at_once = whole.view("listed", LISTED.format("taps", MINUTES, "CURRENT ROW"))
        whole.refresh(timeout=120)
        assert sorted(map(str, at_once.rows())) == sorted(map(str, db.views["listed"].rows()))


def changed(chance):
    at = None if chance.random() < 0.1 else START + timedelta(seconds=30 * chance.randrange(80))
    value = chance.choice([None, *range(8)])
    return tap(chance.randrange(60), at, chance.choice(["a", "b", None]), value)


def test_a_late_event_corrects_the_rows_that_it_is_near_to(db):
    taps = db.stream("taps", COLUMNS, event_time="at", lateness="1 minute")
    view = db.view("near", QUERY.format("taps", MINUTES, "CURRENT ROW"))
    rows = [tap(n, START + n * timedelta(minutes=1)) for n in range(0, 60, 2)]
    taps.append(rows)
    db.refresh(timeout=120)
    seen = view.position
    late = tap(99, START + timedelta(minutes=21))
    taps.append(late)
    db.refresh(timeout=120)
    assert shown(view) == expected([*rows, late], FIVE, NOTHING)
    (change,) = view.changes(after=seen)
    told = {(row["id"], row["_weight"]) for row in change.rows.to_pylist()}
    assert told == {(99, 1), *((id, weight) for id in (22, 24, 26) for weight in (1, -1))}


def test_the_cost_of_an_event_follows_what_is_near_it(db):
    taps = db.stream("taps", COLUMNS)
    db.view("near", QUERY.format("taps", MINUTES, "INTERVAL 5 MINUTES FOLLOWING"))
    taps.append([tap(n, START + n * timedelta(minutes=1)) for n in range(50_000)])
    db.refresh(timeout=300)
    taps.append(tap(-1, START + timedelta(days=10, seconds=30)))
    db.refresh(timeout=120)
    (epoch,) = db.profile()
    spent = {node.kind: node for node in epoch.nodes}
    assert spent["near"].state_rows == 50_001
    assert (spent["near"].rows_in, spent["near"].rows_out) == (1, 21)
    assert spent["swap"].rows_in <= 2 * 11
    assert spent["swap"].rows_out == spent["output"].rows_in == 1 + 2 * 10
    assert right(db)


def test_frames_of_a_dataframe_slide_too(db):
    taps = db.stream("taps", "id BIGINT, phone STRING, at TIMESTAMP, wall TIMESTAMP_NTZ, value DOUBLE")

    def nearby(spark):
        seconds = Window.partitionBy("phone").orderBy(f.col("at").cast("long")).rangeBetween(-300, 0)
        latest = Window.partitionBy("phone").orderBy(f.col("id").desc()).rangeBetween(-2, Window.currentRow)
        day = "sum(value) OVER (ORDER BY wall RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)"
        return spark.table("taps").select(
            "id",
            f.count("*").over(seconds).alias("n"),
            f.last("value", ignorenulls=True).over(latest).alias("last"),
            f.expr(day).alias("day"),
        )

    db.view("nearby", nearby)
    chance = random.Random(3)
    for count in (30, 1, 5):
        times = [START + timedelta(seconds=20 * chance.randrange(9000)) for _ in range(count)]
        taps.append(
            [
                tap(chance.randrange(50), at, chance.choice("ab"), chance.choice([0.5, 1e300, -1e300, None]))
                | {"wall": at.replace(tzinfo=None)}
                for at in times
            ]
        )
        db.refresh(timeout=120)
        assert right(db)
    kinds = [node.kind for node in db.profile()[0].nodes]
    assert "near" in kinds
    assert "rows" not in kinds
