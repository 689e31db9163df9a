"""Plain Spark SQL over rows that the test itself keeps: what views must equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from tests.laws.comparing import counted, difference

from evert.epoch import spark as on_spark


class Oracle:
    """A session that knows only some Arrow tables, by their names."""

    def __init__(self, spark: Any, tables: Mapping[str, pa.Table]) -> None:
        self._session = spark.newSession()
        for name, table in tables.items():
            rows = table.combine_chunks() if table.num_rows else []
            frame = self._session.createDataFrame(rows, on_spark.struct_type(table.schema))
            frame.createOrReplaceTempView(name)

    def answer(self, query: str) -> pa.Table:
        return self._session.sql(query).toArrow()


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """The same rows as often, in any order; floating point numbers may differ in their last digits."""
    assert found.column_names == expected.column_names
    missing, unexpected = difference(counted(expected), counted(found))
    assert not missing, f"{len(missing)} rows are missing, such as {missing[:3]}"
    assert not unexpected, f"{len(unexpected)} rows are too many, such as {unexpected[:3]}"
