"""The law of questions: a random query over random tables has in DuckDB the rows that it has in Spark."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ask.engines import (
    UNTESTED,
    Spark,
    attempt_duckdb,
    attempt_spark,
    in_order,
    kinds,
    near,
    outcome,
    values,
)
from tests.ask.queries import query, table
from tests.laws.choices import Dice

QUERIES = 5


@pytest.fixture(scope="module")
def engine(spark):
    return Spark(spark, {})


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_random_queries_give_what_spark_gives(engine, seed):
    check(engine, seed)


@pytest.mark.slow
@settings(max_examples=1000, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32))
def test_many_random_queries_give_what_spark_gives(engine, seed):
    check(engine, seed)


def check(engine: Spark, seed: int) -> None:
    dice = Dice(seed)
    tables = {name: table(dice, dice.number(0, 8)) for name in "tu"}
    for name, rows in tables.items():
        engine.give(name, rows)
    for _ in range(QUERIES):
        sql = query(dice)
        mine, theirs = attempt_duckdb(sql, tables), attempt_spark(engine, sql)
        if outcome(mine) == UNTESTED:
            continue
        said = f"{sql}\n{tables['t'].to_pylist()}\n{tables['u'].to_pylist()}\n"
        assert outcome(mine) == outcome(theirs), f"{said}{mine!r} here, {theirs!r} in Spark"
        if outcome(mine) is None:
            assert kinds(mine) == kinds(theirs), said
            found, wanted = in_order(values(mine)), in_order(values(theirs))
            assert len(found) == len(wanted), said
            for one, two in zip(found, wanted, strict=True):
                assert near(one, two), f"{said}{one} here, {two} in Spark"
