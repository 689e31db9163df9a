"""How far a frame reaches, where days are not alike, and where numbers end."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pyarrow as pa
import pytest
from tests.plan.harness import Running, plain
from tests.plan.relations import BID, planner

DAYS = (
    "select auction, at, price, count(*) over (partition by auction order by at range between interval 1 day"
    " preceding and current row) as n, sum(price) over (partition by auction order by at range between interval"
    " 25 hours preceding and interval 24 hours following) as s from bid"
)
HOUR = 3_600_000_000


def near(plan):
    (found,) = (node.operator for node in plan.nodes if node.kind == "near")
    return found


def bids(chance, about, count):
    """Bids on two auctions within some days, at full and half hours or just beside them."""
    rows = []
    for number in range(count):
        at = about + timedelta(
            minutes=30 * chance.randrange(-120, 120), microseconds=chance.choice([0, 0, 1])
        )
        rows.append({"auction": chance.randrange(2), "at": at, "price": number})
    return rows


def delta(rows):
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in BID]
    names = [f"c{at}" for at in range(len(BID))]
    return pa.table([*arrays, pa.array([1] * len(rows), pa.int64())], names=[*names, "__w"])


@pytest.mark.parametrize(
    ("zone", "about"),
    [
        ("Europe/Zurich", datetime(2026, 3, 29, 1, tzinfo=UTC)),
        ("Europe/Zurich", datetime(2026, 10, 25, 1, tzinfo=UTC)),
        ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
        ("America/Juneau", datetime(1867, 10, 19, tzinfo=UTC)),
    ],
)
def test_a_day_is_as_long_as_it_is_in_the_time_zone(spark, tmp_path, zone, about):
    session, chance = spark.newSession(), random.Random(zone)
    session.conf.set("spark.sql.session.timeZone", zone)
    plan = planner(session).plan(DAYS)
    assert (near(plan).before, near(plan).after) == ((25 + 36) * HOUR, (24 + 36) * HOUR)
    running, rows = Running([plan], session, tmp_path), bids(chance, about, 120)
    for start, stop in pairwise((0, *range(112, 121))):
        running.epoch({"t1": delta(rows[start:stop])})
    arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in BID]
    assert running.rows[0] == plain(session, {"bid": pa.table(arrays, schema=BID)}, DAYS)


def test_less_than_a_day_is_the_same_everywhere(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Europe/Zurich")
    query = "select count(*) over (order by at range between interval 23 hours preceding and current row) from bid"
    plan = planner(session).plan(query.replace(" from", " as n from"))
    assert (near(plan).before, near(plan).after) == (23 * HOUR, 0)


def test_descending_frames_reach_the_other_way(spark):
    query = (
        "select count(*) over (order by price desc range between 3 preceding and 1 following) as n from bid"
    )
    found = near(planner(spark).plan(query))
    assert (found.before, found.after) == (1, 3)


@pytest.mark.parametrize(
    "frame",
    [
        "price range between 9223372036854775807 preceding and 9223372036854775807 following",
        "date(at) range between 1000000000 preceding and current row",
        "date(at) range between interval 400000 days preceding and current row",
    ],
)
def test_a_frame_may_reach_as_far_as_numbers_go(spark, frame):
    found = near(planner(spark).plan(f"select count(*) over (order by {frame}) as n from bid"))
    assert max(found.before, found.after) in (2**63 - 1, 10**9, 400_000)


@pytest.mark.parametrize(
    "frame",
    [
        "date(at) range between 2000000000 preceding and current row",
        "price range between current row and unbounded following",
        "price rows between 3 preceding and current row",
        "price, at range between current row and current row",
        "at range between interval 1 month preceding and current row",
        "amount range between 1 preceding and current row",
        "score range between 1 preceding and current row",
    ],
)
def test_what_reaches_further_or_elsewhere_is_kept_per_key(spark, frame):
    plan = planner(spark).plan(f"select count(*) over (partition by auction order by {frame}) as n from bid")
    assert [node.how for node in plan.nodes if node.kind == "rows"] == ["per key"]


def test_where_numbers_wrap_around_frames_do_not_slide(spark):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    frame = "order by {} range between {} preceding and current row"
    query = "select count(*) over (partition by auction {}) as n from bid"
    made = planner(session)
    assert made.plan(query.format(frame.format("price", 1))).nodes[0].kind == "rows"
    near(made.plan(query.format(frame.format("at", "interval 1 hour"))))


def test_a_partition_by_what_is_ordered_is_kept_per_key(spark):
    frame = "partition by price order by price range between 1 preceding and 1 following"
    plan = planner(spark).plan(f"select count(*) over ({frame}) as n from bid")
    assert "near" not in [node.kind for node in plan.nodes]
