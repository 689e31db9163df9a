"""A plan run on deltas gives what Spark gives on the whole."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as f
from tests.once import run_once
from tests.plan import udfs
from tests.plan.harness import Running, plain
from tests.plan.queries import INCREMENTAL
from tests.plan.relations import World, planner

EPOCHS = 4
PARTS = 6
"""Queries are run together, but not all of them."""


def counted(spark):
    frame = spark.table("bid").where("price > 2").withColumn("tag", f.explode("tags"))
    return (
        frame.groupBy(f.upper("tag").alias("u"))
        .agg(f.avg("price"), f.count_distinct("auction") > 0)
        .drop("(count(DISTINCT auction) > 0)")
    )


def joined(spark):
    bids, auctions = spark.table("bid"), spark.table("auction")
    found = bids.join(auctions, bids.auction == auctions.id)
    return (
        found.withColumn("over", f.col("price") > f.col("reserve"))
        .groupBy("over")
        .agg(f.count("*").alias("n"))
    )


def unioned(spark):
    people = spark.table("person")
    return people.select("id").unionByName(people.select((f.col("id") + 1).alias("id"))).dropDuplicates()


def differences(spark, queries, folder, seed):
    made = planner(spark)
    plans = [made.plan(query) for query in queries]
    assert [plan.recomputes for plan in plans] == [None] * len(plans)
    running, world, other = Running(plans, spark, folder), World(seed), run_once(spark.newSession())
    other.conf.set("spark.sql.ansi.enabled", spark.conf.get("spark.sql.ansi.enabled"))
    found = []
    for epoch in range(EPOCHS):
        running.epoch(world.epoch())
        if epoch < EPOCHS - 1:
            continue
        tables = world.tables()
        for number, query in enumerate(queries):
            expected = plain(other, tables, query)
            tables = {}
            if running.rows[number] != expected:
                found.append((query, expected - running.rows[number], running.rows[number] - expected))
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_query_that_is_kept_equals_spark_after_many_epochs(spark, tmp_path, part):
    assert differences(spark, list(INCREMENTAL.values())[part::PARTS], tmp_path, seed=11) == []


@pytest.mark.timeout(900)
def test_functions_in_python_are_called_for_what_changed_and_give_what_spark_gives(spark, tmp_path):
    assert differences(spark, list(udfs.KEPT), tmp_path, seed=14) == []


def test_functions_over_frames_are_planned_as_queries_are(spark, tmp_path):
    assert differences(spark, [counted, joined, unioned], tmp_path, seed=12) == []


def test_without_ansi_sums_wrap_and_bad_casts_are_null(spark, tmp_path):
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", "false")
    queries = [
        "select sum(9223372036854775807 - price) as s from bid",
        "select cast(channel as int) as n, 1 / (price - 3) as d from bid",
    ]
    assert differences(session, queries, tmp_path, seed=13) == []
