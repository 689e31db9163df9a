"""The same query in both engines, over the same rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.once import run_once

from evert.ask import duck
from evert.ask.duck import Deadline
from evert.ask.reading import read
from evert.ask.relations import Found
from evert.ask.shapes import Around
from evert.ask.sources import Source, shown
from evert.ask.translate import Translation
from evert.ask.types import plain
from evert.epoch import spark as on_spark
from evert.errors import BadQuery, NotTranslated
from evert.plan.catalyst import Catalyst
from evert.schema.from_arrow import type_from_arrow

FAILS, UNTESTED = "fails", "untested"
TOLERANCE = 1e-9
Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Named:
    name: str


class Given:
    """Tables in the place of a catalog."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._found: dict[str, Found] = {}

    @property
    def found(self) -> list[Found]:
        return list(self._found.values())

    def find(self, name: str) -> Found:
        name = name.lower()
        schema = self._tables[name].schema
        columns = {field.name: plain(type_from_arrow(field.type, field.name)) for field in schema}
        return self._found.setdefault(name, Found(Named(name), columns, f"t{len(self._found)}"))  # type: ignore[arg-type]


def in_duckdb(sql: str, tables: Tables) -> pa.Table:
    given = Given(tables)
    query = Translation(given).query(read(sql), Around())  # type: ignore[arg-type]
    sources = {
        found.sql: Source(
            f"SELECT {shown(rows.schema)} FROM {found.sql}_rows", 0, {f"{found.sql}_rows": rows}
        )
        for found in given.found
        for rows in [tables[found.name]]
    }
    columns = list(zip(query.names, query.types, strict=True))
    return duck.run(query.sql, sources, columns, deadline=Deadline(60), max_rows=2_000_000, threads=2)


class Spark:
    """Spark alone, over tables of these names."""

    def __init__(self, session: Any, tables: Tables) -> None:
        self._session = run_once(on_spark.beside(session))
        for name, table in tables.items():
            self.give(name, table)

    def give(self, name: str, table: pa.Table) -> None:
        kind = on_spark.struct_type(table.schema)
        frame = self._session.createDataFrame(table if table.num_rows else [], kind)
        frame.createOrReplaceTempView(name)

    def run(self, sql: str) -> pa.Table:
        with Catalyst.quietly():
            return self._session.sql(sql).toArrow()


def outcome(rows: Any) -> str | None:
    """How a run ended that raised; None if it did not."""
    if isinstance(rows, NotTranslated):
        return UNTESTED
    return FAILS if isinstance(rows, Exception) else None


def attempt_duckdb(sql: str, tables: Tables) -> pa.Table | Exception:
    try:
        return in_duckdb(sql, tables)
    except BadQuery as error:
        return error


def attempt_spark(spark: Spark, sql: str) -> pa.Table | Exception:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return spark.run(sql)
    except (PySparkException, Py4JJavaError) as error:
        return error


def values(rows: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that can be compared, by position of the columns."""
    columns = [_plain(column).to_pylist() for column in rows.columns]
    return [tuple(row) for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as numbers: Python has fewer years than both engines."""
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.int64())
    return column.cast(pa.int32()) if pa.types.is_date(column.type) else column


def near(one: Any, two: Any) -> bool:
    if isinstance(one, float) and isinstance(two, float):
        if math.isnan(one) or math.isnan(two):
            return math.isnan(one) and math.isnan(two)
        return one == two or math.isclose(one, two, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(one, tuple | list) and isinstance(two, tuple | list):
        return len(one) == len(two) and all(near(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, dict) and isinstance(two, dict):
        return near(list(one.values()), list(two.values()))
    return type(one) is type(two) and bool(one == two)


def kinds(rows: pa.Table) -> list[str]:
    """The types of the columns as Spark names them."""
    return [type_from_arrow(field.type, field.name).ddl() for field in rows.schema]


def in_order(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: repr([round(x, 6) + 0.0 if isinstance(x, float) else x for x in row]))
