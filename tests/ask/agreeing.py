"""Whether both engines give the same for expressions over rows, of which some may fail.

DuckDB is quick, so it finds the rows on which an expression fails. Spark is asked once for all the others, and of
those that fail for a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from tests.ask.engines import (
    FAILS,
    Spark,
    attempt_duckdb,
    attempt_spark,
    in_duckdb,
    kinds,
    near,
    outcome,
    values,
)

SAMPLED = 2
Query = Callable[[Sequence[str]], str]


def agree(spark: Spark, rows: pa.Table, key: str, expressions: Sequence[str], query: Query) -> None:
    """`query` makes a query of expressions over `e`; its first column is the key, which tells results apart."""
    in_duckdb(query(expressions), {"e": rows.slice(0, 0)})
    spark.give("e", rows)
    sound, failing = [], []
    for expression in expressions:
        bad = _outcomes(rows, key, query([expression]))
        (failing if bad else sound).append((expression, bad))
    if sound:
        _same(spark, rows, key, [expression for expression, _ in sound], query)
    for expression, bad in failing:
        good = rows.filter(pc.invert(pc.is_in(rows.column(key), pa.array(list(bad), pa.int64()))))
        if good.num_rows:
            spark.give("e", good)
            _same(spark, good, key, [expression], query)
        for number in [number for number, how in bad.items() if how == FAILS][:SAMPLED]:
            alone = rows.filter(pc.equal(rows.column(key), number))
            spark.give("e", alone)
            theirs = attempt_spark(spark, query([expression]))
            assert outcome(theirs) == FAILS, f"{expression} of {alone.to_pylist()} does not fail in Spark"


def _outcomes(rows: pa.Table, key: str, sql: str) -> dict[int, str]:
    """The keys of the rows on which a query fails in DuckDB, and how."""
    how = outcome(attempt_duckdb(sql, {"e": rows}))
    keys = sorted(set(rows.column(key).to_pylist()))
    if how is None:
        return {}
    if len(keys) <= 1:
        return dict.fromkeys(keys, how)
    found: dict[int, str] = {}
    for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
        found |= _outcomes(rows.filter(pc.is_in(rows.column(key), pa.array(half, pa.int64()))), key, sql)
    return found


def _same(spark: Spark, rows: pa.Table, key: str, expressions: Sequence[str], query: Query) -> None:
    sql = query(expressions)
    mine, theirs = in_duckdb(sql, {"e": rows}), spark.run(sql)
    assert kinds(mine) == kinds(theirs), expressions
    by = {row[0]: row for row in values(theirs)}
    found = values(mine)
    assert len(found) == len(by)
    for row in found:
        for expression, one, two in zip([key, *expressions], row, by[row[0]], strict=True):
            assert near(one, two), (
                f"{expression} of {_given(rows, key, row[0])}: {one!r} here, {two!r} in Spark"
            )


def _given(rows: pa.Table, key: str, value: Any) -> list[dict[str, Any]]:
    return [row for row in rows.to_pylist() if row[key] == value]
