"""Clauses, joins, groups, windows and subqueries give the same rows in both engines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.ask.engines import Spark, in_duckdb, in_order, kinds, near, values
from tests.ask.small import TABLES

FILE = Path(__file__).parent / "constructs.sql"
QUERIES = [one.strip() for one in re.sub(r"--.*", "", FILE.read_text()).split(";") if one.strip()]


@pytest.fixture(scope="module")
def engine(spark):
    return Spark(spark, TABLES)


@pytest.mark.parametrize("sql", QUERIES)
def test_a_query_gives_the_rows_that_spark_gives(engine, sql):
    mine, theirs = in_duckdb(sql, TABLES), engine.run(sql)
    assert kinds(mine) == kinds(theirs)
    found, wanted = values(mine), values(theirs)
    outer = sql.rsplit(")", 1)[-1]
    if "ORDER BY" not in outer or "OVER" in sql:
        found, wanted = in_order(found), in_order(wanted)
    assert len(found) == len(wanted)
    for one, two in zip(found, wanted, strict=True):
        assert near(one, two), f"{one} here, {two} in Spark"
