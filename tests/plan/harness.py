"""Runs plans epoch by epoch: chains in Spark, those that are expressions as one projection a level, operators in
this process."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from tests.delta.harness import Node

from evert.plan.catalyst import Catalyst
from evert.plan.graph import Plan

Source = tuple[int | None, str]


class Running:
    """Views over shared leaves, and their rows so far."""

    def __init__(self, plans: list[Plan], spark, folder: Path) -> None:
        self.plans = plans
        self.rows: list[Counter] = [Counter() for _ in plans]
        self._spark = spark
        self._catalyst = Catalyst(spark)
        self._first = True
        self._kernels = {}
        self._levels: dict[int, list[tuple[int, object]]] = {}
        for number, plan in enumerate(plans):
            level: dict[str, int] = {leaf.id: 0 for leaf in plan.leaves}
            for node in plan.nodes:
                level[node.id] = 1 + max(level[chain.source] for port in node.ports for chain in port)
                self._levels.setdefault(level[node.id], []).append((number, node))
                place = folder / f"{number}-{node.id}"
                place.mkdir()
                self._kernels[number, node.id] = Node(node.operator, place)

    def epoch(self, leaves: dict[str, pa.Table]) -> None:
        deltas: dict[Source, pa.Table] = {(None, name): delta for name, delta in leaves.items()}
        for number, plan in enumerate(self.plans):
            for leaf in plan.leaves:
                if leaf.rows is not None and self._first:
                    deltas[number, leaf.id] = leaf.rows
        self._first = False
        for level in sorted(self._levels):
            inputs = self._evaluate(level, deltas)
            for number, node in self._levels[level]:
                ports = [inputs.get((number, node.id, port)) for port in range(len(node.ports))]
                kernel = self._kernels[number, node.id]
                deltas[number, node.id] = kernel.epoch(*ports)
                if node is self.plans[number].output:
                    self._add(number, deltas[number, node.id])

    def _add(self, number: int, delta: pa.Table) -> None:
        for row in delta.to_pylist():
            weight = row.pop("__w")
            self.rows[number][comparable(list(row.values()))] += weight
        self.rows[number] = Counter({row: count for row, count in self.rows[number].items() if count})

    def _source(self, number: int, name: str) -> Source:
        shared = name[0] in "tv"
        return (None if shared else number), name

    def _evaluate(self, level: int, deltas: dict[Source, pa.Table]) -> dict[tuple, pa.Table]:
        chains = [
            (number, node, port, chain)
            for number, node in self._levels[level]
            for port, feeding in enumerate(node.ports)
            for chain in feeding
            if self._source(number, chain.source) in deltas
        ]
        used = list(dict.fromkeys(self._source(number, chain.source) for number, _, _, chain in chains))
        if not used:
            return {}
        wide = self._wide([deltas[source] for source in used])
        catalyst = self._catalyst
        terms, operated = [], {}
        for at, (number, _, _, chain) in enumerate(chains):
            attribute = catalyst.attribute(wide, f"s{used.index(self._source(number, chain.source))}")
            if chain.over is None:
                terms.append((f"o{at}", catalyst.guarded(attribute, chain.build(attribute))))
            else:
                plan = chain.over(catalyst.analysed(wide), attribute)
                operated[f"o{at}"] = catalyst.frame(plan).toArrow().column("row")
        answers = catalyst.project(wide, terms).toArrow() if terms else pa.table({})
        inputs: dict[tuple, list[pa.Table]] = {}
        for at, (number, node, port, chain) in enumerate(chains):
            name = f"o{at}"
            made = (operated[name] if name in operated else answers.column(name)).combine_chunks()
            if chain.many:
                made = made.flatten()
            made = made.filter(made.is_valid())
            schema = node.operator.inputs[port].append(pa.field("__w", pa.int64()))
            assert [made.type.field(i).name for i in range(made.type.num_fields)] == schema.names
            assert all(made.type.field(i).nullable for i in range(made.type.num_fields - 1))
            table = pa.table(made.flatten(), names=schema.names).cast(schema)
            inputs.setdefault((number, node.id, port), []).append(table)
        return {where: pa.concat_tables(tables) for where, tables in inputs.items()}

    def _wide(self, tables: list[pa.Table]):
        columns = []
        for at, table in enumerate(tables):
            kind = pa.struct(list(table.schema))
            parts = [pa.nulls(other.num_rows, kind) for other in tables[:at]]
            parts.append(pa.array(table.to_pylist(maps_as_pydicts=None), kind))
            parts += [pa.nulls(other.num_rows, kind) for other in tables[at + 1 :]]
            columns.append(pa.chunked_array(parts, kind).combine_chunks())
        return frame(self._spark, pa.table(columns, names=[f"s{at}" for at in range(len(columns))]))


def frame(spark, table: pa.Table):
    """The table in Spark's types, a timestamp without a zone staying one."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def comparable(value):
    """A value that compares as prove does: floats within 1e-9, NaN equal to NaN."""
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else f"{value + 0.0:.9g}")
    if isinstance(value, Decimal):
        return ("decimal", str(value))
    if isinstance(value, dict):
        return tuple((name, comparable(one)) for name, one in value.items())
    if isinstance(value, list | tuple):
        return tuple(comparable(one) for one in value)
    return value


def plain(spark, tables: dict[str, pa.Table], query) -> Counter:
    """The answer of Spark itself over these tables."""
    from evert.plan.relations import run

    for name, table in tables.items():
        frame(spark, table).createOrReplaceTempView(f"`{name}`")
    return Counter(comparable(list(row.values())) for row in run(query, spark).toArrow().to_pylist())
