"""What cannot be kept is recomputed, with the reason."""

from __future__ import annotations

import re

import pytest
from tests.plan.queries import RECOMPUTED
from tests.plan.relations import World

from evert.errors import BadQuery


@pytest.mark.parametrize("reason", RECOMPUTED)
def test_the_reason_names_what_is_not_incremental(planner, reason):
    plan = planner.plan(RECOMPUTED[reason])
    assert plan.recomputes == reason
    assert [node.kind for node in plan.nodes] == ["output"]
    assert plan.output.operator.replace
    assert plan.output.ports == ((),)
    assert str(plan).splitlines()[1] == f"  recomputed: {reason}"


def test_a_map_over_batches_is_recomputed(planner):
    plan = planner.plan(
        lambda session: session.table("person").mapInArrow(lambda batches: batches, "id bigint")
    )
    assert plan.recomputes == "the operator MapInArrow"
    assert [leaf.name for leaf in plan.reads] == ["person"]


def test_a_map_over_groups_is_recomputed(planner):
    plan = planner.plan(
        lambda session: session.table("person").groupBy("state").applyInPandas(lambda rows: rows, "id bigint")
    )
    assert plan.recomputes == "the operator FlatMapGroupsInPandas"


def test_what_could_be_kept_is_recomputed_if_that_is_asked_for(planner):
    plan = planner.plan("select id from person", refresh="full")
    assert plan.recomputes == plan.reads_all_again == "REFRESH POLICY FULL"
    assert [node.kind for node in plan.nodes] == ["output"]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select sum(reserve) over () as s from auction", "window sum(auction.reserve) [n2]"),
        ("select median(reserve) as m from auction", "aggregate percentile(auction.reserve, 0.5D, 1L) [n2]"),
        ("select min(tags) as m from bid", "aggregate min(bid.tags) [n1]"),
    ],
)
def test_what_reads_all_again_is_named_and_refused_if_that_is_asked_for(planner, query, reason):
    assert planner.plan(query).reads_all_again == reason
    with pytest.raises(BadQuery, match=re.escape(f"it would be recomputed: {reason}")):
        planner.plan(query, refresh="strict")


def test_what_reads_the_rows_of_the_keys_that_changed_is_strict_enough(planner):
    query = "select median(reserve) as m from auction group by category"
    assert planner.plan(query, refresh="strict").fingerprint == planner.plan(query).fingerprint


def test_the_frame_of_a_plan_runs_on_a_session_with_the_data(planner, spark):
    world, session = World(3), spark.newSession()
    world.epoch()
    session.createDataFrame(world.tables()["bid"]).createOrReplaceTempView("bid")
    plan = planner.plan("select price from bid order by price desc nulls last limit 1")
    highest = max(row[2] for row in world.bids if row[2] is not None)
    assert plan.frame(session).collect()[0][0] == highest


def test_a_declared_key_is_kept_when_recomputing(planner):
    plan = planner.plan("select id, name from person limit 5", key=["ID"], refresh="full")
    assert plan.key == ("id",)
    assert plan.output.operator.declared
