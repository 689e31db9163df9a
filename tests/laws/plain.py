"""What the topics hold, kept in Python, and what Spark alone makes of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import ArithmeticException
from tests.laws.cases import Case, Commit, View
from tests.laws.comparing import counted

from evert.epoch import spark as on_spark

Answers = dict[str, Counter | None]
SPARKS_OWN = "java.util.NoSuchElementException: key not found"
"""How Spark 4.2 fails to push a projection with a correlated subquery through a union."""


@dataclass
class Model:
    """What the topics hold, in Python."""

    case: Case
    streams: dict[str, list[dict]] = field(default_factory=dict)
    tables: dict[str, dict[tuple, dict]] = field(default_factory=dict)

    def apply(self, commit: Commit) -> None:
        topics = {topic.name: topic for topic in self.case.topics}
        for write in commit.writes:
            topic = topics[write.topic]
            for row in write.rows:
                if write.kind == "append":
                    self.streams.setdefault(write.topic, []).append(row)
                    continue
                table = self.tables.setdefault(write.topic, {})
                key = tuple(_key(row[name]) for name in topic.key)
                if write.kind == "delete":
                    table.pop(key, None)
                else:
                    table[key] = row

    def rows(self, name: str) -> list[dict]:
        return self.streams.get(name) or list(self.tables.get(name, {}).values())


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


class Plain:
    """Spark alone."""

    def __init__(self, spark: Any, case: Case) -> None:
        self._spark = spark
        self._case = case

    def answers(self, model: Model, views: dict[str, View], schemas: dict[str, pa.Schema]) -> Answers:
        """The rows of every view; None where Spark fails on the data, or on those of a view that is read.

        A view is not among them if Spark fails to plan it, or one that it reads: it has nothing to say of it then.
        """
        session = self._spark.newSession()
        for topic in self._case.topics:
            schema = schemas[topic.name]
            rows = model.rows(topic.name)
            arrays = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
            table = pa.Table.from_arrays(arrays, schema=pa.schema([f.with_nullable(True) for f in schema]))
            frame = session.createDataFrame(table if rows else [], on_spark.struct_type(table.schema))
            frame.createOrReplaceTempView(topic.name)
        found: Answers = {}
        unplanned: set[str] = set()
        for name, view in views.items():
            frame = session.sql(view.query)
            frame.createOrReplaceTempView(name)
            read = [other for other in views if re.search(rf"\b{other}\b", view.query) and other != name]
            if any(other in unplanned for other in read):
                unplanned.add(name)
                continue
            if any(found.get(other, True) is None for other in read):
                found[name] = None
                continue
            try:
                found[name] = counted(frame.toArrow())
            except ArithmeticException:
                found[name] = None
            except Py4JJavaError as error:
                if SPARKS_OWN not in str(error):
                    raise
                unplanned.add(name)
        return found
