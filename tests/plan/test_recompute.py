"""What is not incremental yet is recomputed, with the reason."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as f
from tests.plan.queries import RECOMPUTED
from tests.plan.relations import World


@pytest.mark.parametrize("reason", RECOMPUTED)
def test_the_reason_names_what_is_not_incremental(planner, reason):
    plan = planner.plan(RECOMPUTED[reason])
    assert plan.recomputes == reason
    assert [node.kind for node in plan.nodes] == ["output"]
    assert plan.output.operator.replace
    assert plan.output.ports == ((),)
    assert str(plan).splitlines()[1] == f"  recomputed: {reason}"


def test_a_python_function_is_recomputed(planner):
    twice = f.udf(lambda x: x and x * 2, "bigint")
    plan = planner.plan(lambda session: session.table("bid").select(twice("price").alias("p")))
    assert plan.recomputes == "a Python UDF"
    assert [leaf.name for leaf in plan.reads] == ["bid"]


def test_a_map_over_batches_is_recomputed(planner):
    plan = planner.plan(
        lambda session: session.table("person").mapInArrow(lambda batches: batches, "id bigint")
    )
    assert plan.recomputes == "the operator MapInArrow"


def test_the_frame_of_a_plan_runs_on_a_session_with_the_data(planner, spark):
    world, session = World(3), spark.newSession()
    world.epoch()
    session.createDataFrame(world.tables()["bid"]).createOrReplaceTempView("bid")
    plan = planner.plan("select price from bid order by price desc nulls last limit 1")
    highest = max(row[2] for row in world.bids if row[2] is not None)
    assert plan.frame(session).collect()[0][0] == highest


def test_a_declared_key_is_kept_when_recomputing(planner):
    plan = planner.plan("select id, name from person limit 5", key=["ID"])
    assert plan.key == ("id",)
    assert plan.output.operator.declared
