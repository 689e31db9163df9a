"""Random tables of few rows, and random queries over them of what may be asked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.laws.choices import Dice

from evert.schema.schema import Schema

inf, nan = float("inf"), float("nan")
TYPES = {
    "int": "INT",
    "big": "BIGINT",
    "dbl": "DOUBLE",
    "dec": "DECIMAL(10,2)",
    "str": "STRING",
    "bool": "BOOLEAN",
    "date": "DATE",
    "ts": "TIMESTAMP",
}
POOL: dict[str, list[Any]] = {
    "int": [-3, -1, 0, 1, 2, 7],
    "big": [-(10**12), -1, 0, 5, 10**12],
    "dbl": [nan, inf, -0.0, 0.0, 1.5, -2.25],
    "dec": [Decimal(x) for x in ("-1.50", "-0.01", "0.00", "2.50", "1234.56")],
    "str": ["", "a", "A", "ab", "é", "𝄞", " a", "x%_", "12"],
    "bool": [True, False],
    "date": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1899, 12, 31)],
    "ts": [
        dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
    ],
}
LITERALS = {
    "int": ["0", "1", "-2", "5"],
    "big": ["3L", "10000000000"],
    "dbl": ["0.5D", "1e1"],
    "dec": ["1.50", "-0.01"],
    "str": ["''", "'a'", "'B'", "'é'"],
    "bool": ["true", "false"],
    "date": ["DATE'2024-02-29'"],
    "ts": ["TIMESTAMP'2026-03-29 01:30:00'"],
}
MADE = {
    "int": [
        "{int} + {int}",
        "{int} - {int}",
        "{int} * {int}",
        "abs({int})",
        "length({str})",
        "year({date})",
        "-({int})",
        "month({date})",
        "datediff({date}, {date})",
        "coalesce({int}, 0)",
        "if({bool}, {int}, {int})",
        "hour({ts})",
        "{int} % 3",
        "greatest({int}, {int})",
        "nullif({int}, {int})",
        "instr({str}, {str})",
        "CAST({bool} AS INT)",
        "CAST({dec} AS INT)",
        "dayofweek({date})",
    ],
    "big": [
        "{big} + {int}",
        "{int} div 2",
        "{big} * {int}",
        "CAST({int} AS BIGINT)",
        "floor({int})",
        "{big} % 7",
    ],
    "dbl": [
        "{dbl} + {dbl}",
        "{dbl} * 2",
        "{int} / 4",
        "-({dbl})",
        "abs({dbl})",
        "CAST({dec} AS DOUBLE)",
        "nanvl({dbl}, 1.5D)",
        "coalesce({dbl}, 0D)",
        "{int} / nullif({int}, 0)",
        "round({dbl}, 1)",
        "least({dbl}, {int})",
        "sqrt({dbl})",
    ],
    "dec": [
        "CAST({dec} + {dec} AS DECIMAL(10,2))",
        "CAST({dec} * 2 AS DECIMAL(10,2))",
        "abs({dec})",
        "-({dec})",
        "CAST({dec} / 3 AS DECIMAL(10,2))",
        "CAST({int} AS DECIMAL(10,2))",
        "coalesce({dec}, 0.00)",
    ],
    "str": [
        "upper({str})",
        "lower({str})",
        "{str} || {str}",
        "substring({str}, {int}, 2)",
        "trim({str})",
        "concat({str}, 'x')",
        "replace({str}, 'a', 'bb')",
        "CAST({int} AS STRING)",
        "CAST({dec} AS STRING)",
        "CAST({date} AS STRING)",
        "coalesce({str}, 'none')",
        "if({bool}, {str}, {str})",
        "left({str}, 1)",
        "repeat({str}, 2)",
    ],
    "bool": [
        "{int} > {int}",
        "{big} <= {int}",
        "{dbl} < {dbl}",
        "{dbl} = {dbl}",
        "{dec} >= {dec}",
        "{str} = {str}",
        "{str} < {str}",
        "{str} LIKE 'a%'",
        "{str} NOT LIKE '%\\\\%%'",
        "{int} IS NULL",
        "{bool} AND {bool}",
        "{bool} OR {bool}",
        "NOT ({bool})",
        "{int} IN (1, 2, NULL)",
        "{int} BETWEEN -1 AND 5",
        "{date} > {date}",
        "{ts} <= {ts}",
        "{dec} > {int}",
        "{int} <=> {int}",
        "isnan({dbl})",
        "contains({str}, 'a')",
        "{date} = {ts}",
    ],
    "date": [
        "date_add({date}, {int})",
        "last_day({date})",
        "CAST({ts} AS DATE)",
        "{date} + INTERVAL 1 MONTH",
    ],
    "ts": ["date_trunc('DAY', {ts})", "{ts} + INTERVAL 90 MINUTES", "CAST({date} AS TIMESTAMP)"],
}
TOTALS = [
    "count(*)",
    "count({str})",
    "sum({int})",
    "sum({dec})",
    "avg({int})",
    "avg({dec})",
    "min({str})",
    "max({date})",
    "min({dec})",
    "max({int})",
    "count(DISTINCT {str})",
    "sum({big}) FILTER (WHERE {bool})",
    "bool_or({bool})",
    "count_if({bool})",
    "stddev({int})",
    "count(DISTINCT {int}, {bool})",
    "max({dbl})",
]
OVERS = [
    "row_number() OVER (PARTITION BY {str} ORDER BY k)",
    "rank() OVER (ORDER BY {int})",
    "sum({int}) OVER (ORDER BY k)",
    "lag({str}) OVER (ORDER BY k)",
    "count(*) OVER (PARTITION BY {bool})",
    "dense_rank() OVER (ORDER BY {str} DESC)",
    "max({dec}) OVER (PARTITION BY {bool} ORDER BY k ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
]
JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
Scope = Sequence[tuple[str, str]]


def table(dice: Dice, rows: int) -> pa.Table:
    """A column of every kind, and a key that tells rows apart."""
    schema = Schema.parse("k INT, " + ", ".join(f"c_{kind} {type}" for kind, type in TYPES.items())).arrow
    columns: list[list[Any]] = [list(range(rows))]
    for kind in TYPES:
        columns.append([None if dice.chance(20) else dice.pick(POOL[kind]) for _ in range(rows)])
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def scope(alias: str) -> list[tuple[str, str]]:
    return [(f"{alias}.c_{kind}", kind) for kind in TYPES]


def expression(dice: Dice, kind: str, names: Scope, depth: int = 2) -> str:
    columns = [name for name, other in names if other == kind]
    if depth <= 0 or dice.chance(35):
        return dice.pick(columns) if dice.chance(75) else dice.pick(LITERALS[kind])
    if dice.chance(15):
        when, then, other = (expression(dice, one, names, depth - 1) for one in ("bool", kind, kind))
        return f"CASE WHEN {when} THEN {then} ELSE {other} END"
    return "(" + filled(dice, dice.pick(MADE[kind]), names, depth - 1) + ")"


def filled(dice: Dice, template: str, names: Scope, depth: int) -> str:
    while (start := template.find("{")) >= 0:
        end = template.index("}", start)
        inner = expression(dice, template[start + 1 : end], names, depth)
        template = template[:start] + inner + template[end + 1 :]
    return template


def query(dice: Dice) -> str:
    """A query over the tables t and u."""
    names = scope("t")
    source = "t"
    if dice.chance(50):
        names = [*names, *scope("u")]
        kind = dice.pick(["int", "str", "date", "bool"])
        source = f"t {dice.pick(JOINS)} u ON t.c_{kind} = u.c_{kind}"
    where = f" WHERE {expression(dice, 'bool', names)}" if dice.chance(50) else ""
    shape = dice.number(0, 4)
    if shape == 0:
        return _grouped(dice, names, source, where)
    if shape == 1 and source == "t":
        overs = [filled(dice, one, names, 1).replace("BY k", "BY t.k") for one in dice.some(OVERS, 1, 3)]
        return f"SELECT {_listed([*overs, 't.k'])} FROM {source}{where}"
    if shape == 2:
        return _combined(dice)
    items = [expression(dice, dice.pick(list(TYPES)), names, 3) for _ in range(dice.number(1, 5))]
    if shape == 3:
        return f"SELECT DISTINCT {_listed(items)} FROM {source}{where}"
    some = f"{_subquery(dice)}" if dice.chance(50) else ""
    condition = f"{where or ' WHERE true'}{some}"
    return f"SELECT {_listed(items)} FROM {source}{condition}"


def _grouped(dice: Dice, names: Scope, source: str, where: str) -> str:
    keys = [
        expression(dice, dice.pick(["int", "str", "bool", "date"]), names, 1)
        for _ in range(dice.number(1, 2))
    ]
    keys = [key for key in dict.fromkeys(keys) if "." in key] or ["t.c_str"]
    totals = [filled(dice, one, names, 1) for one in dice.some(TOTALS, 1, 4)]
    group = dice.pick(
        [", ".join(keys), ", ".join(keys), f"ROLLUP ({', '.join(keys)})", f"CUBE ({', '.join(keys)})"]
    )
    having = " HAVING count(*) > 1" if dice.chance(30) else ""
    return f"SELECT {_listed([*keys, *totals])} FROM {source}{where} GROUP BY {group}{having}"


def _combined(dice: Dice) -> str:
    kinds = [dice.pick(list(TYPES)) for _ in range(dice.number(1, 3))]
    sides = [
        f"SELECT {_listed([expression(dice, kind, scope(name), 2) for kind in kinds])} FROM {name}"
        for name in "tu"
    ]
    word = dice.pick(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"])
    return f" {word} ".join(sides)


def _subquery(dice: Dice) -> str:
    kind = dice.pick(["int", "str", "date"])
    inner = f"SELECT c_{kind} FROM u WHERE {expression(dice, 'bool', scope('u'), 1)}"
    return dice.pick(
        [
            f" AND t.c_{kind} IN ({inner})",
            f" AND t.c_{kind} NOT IN ({inner})",
            f" AND EXISTS (SELECT 1 FROM u AS v WHERE v.c_{kind} = t.c_{kind})",
            f" AND t.c_int > (SELECT avg(c_int) FROM u AS v WHERE v.c_{kind} = t.c_{kind})",
        ]
    )


def _listed(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS x{i}" for i, item in enumerate(items))
