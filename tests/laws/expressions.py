"""Random expressions of a kind over the columns in scope; none of them can fail on any row."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.laws.choices import Dice
from tests.laws.values import COMPARABLE

Scope = Sequence[tuple[str, str]]
"""References and their kinds."""

NULLS = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "wint": "BIGINT",
    "dbl": "DOUBLE",
    "wdbl": "DOUBLE",
    "noisy": "DOUBLE",
    "dec": "DECIMAL(10,2)",
    "wdec": "DECIMAL(38,0)",
    "str": "STRING",
    "bin": "BINARY",
    "date": "DATE",
    "ts": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "time": "TIME(6)",
    "span": "INTERVAL DAY TO SECOND",
    "ints": "ARRAY<INT>",
    "strs": "ARRAY<STRING>",
    "structs": "ARRAY<STRUCT<p: INT, q: STRING>>",
    "map": "MAP<STRING, INT>",
    "struct": "STRUCT<p: INT, q: STRING, r: DOUBLE>",
}
LITERALS = {
    "bool": ["true", "false"],
    "int": ["0", "1", "2", "-1", "5"],
    "dbl": ["0.0D", "-0.0D", "1.5D", "double('NaN')"],
    "dec": ["1.50", "-0.01", "0"],
    "str": ["''", "'a'", "'ab'", "'é'"],
    "date": ["DATE'1970-01-01'", "DATE'2026-02-28'"],
    "ts": ["TIMESTAMP'2026-03-29 01:30:00'"],
    "ntz": ["TIMESTAMP_NTZ'2026-03-29 01:30:00'"],
    "bin": ["X'00'", "X'61'"],
}
MADE: dict[str, list[str]] = {
    "int": [
        "CAST({int} AS BIGINT) + CAST({int} AS BIGINT)",
        "CAST({int} AS BIGINT) - CAST({int} AS BIGINT)",
        "try_multiply({int} % 1000, {int} % 1000)",
        "CAST({int} AS BIGINT) % 4",
        "CAST(try_divide({int}, {int}) AS BIGINT)",
        "length({str})",
        "size({ints})",
        "year({date})",
        "try_cast({str} AS INT)",
        "coalesce({int}, 0)",
        "greatest({int}, {int})",
        "CAST({bool} AS INT)",
        "get({ints}, 0)",
        "datediff({date}, DATE'2020-01-01')",
    ],
    "dec": ["{dec} + {dec}", "{dec} - {dec}", "round({dec}, 1)", "coalesce({dec}, 0)", "-({dec})"],
    "dbl": [
        "{dbl} + {dbl}",
        "{dbl} * 0.5D",
        "-({dbl})",
        "abs({dbl})",
        "nanvl({dbl}, 1.0D)",
        "CAST({int} AS DOUBLE)",
    ],
    "noisy": ["try_divide({dbl}, {dbl})", "{noisy} * 2", "CAST({dec} AS DOUBLE)"],
    "str": [
        "upper({str})",
        "concat({str}, {str})",
        "concat_ws('-', {str}, {str})",
        "substr({str}, 1, 1)",
        "trim({str})",
        "reverse({str})",
        "CAST({int} AS STRING)",
        "CAST({dec} AS STRING)",
        "CAST({date} AS STRING)",
        "CAST({ts} AS STRING)",
        "regexp_replace({str}, 'a', 'aa')",
        "substring(coalesce({str}, 'none'), 1, 3)",
    ],
    "bool": [
        "{int} > {int}",
        "{int} IS NULL",
        "{str} = {str}",
        "{str} LIKE '%a%'",
        "{dbl} < {dbl}",
        "{dbl} = {dbl}",
        "{dec} >= {dec}",
        "{wint} <=> {wint}",
        "{wdec} > {dec}",
        "NOT ({bool})",
        "({bool}) AND ({bool})",
        "({bool}) OR ({bool})",
        "{str} IN ('a', 'b', '')",
        "{int} NOT IN (1, 2)",
        "{date} BETWEEN DATE'1950-01-01' AND DATE'2026-03-01'",
        "{bin} IS NOT NULL",
        "{ts} > {ts}",
        "isnan({dbl})",
    ],
    "date": ["date_add({date}, 1)", "last_day({date})", "CAST({ts} AS DATE)"],
    "ts": ["{ts} + INTERVAL 1 HOUR", "date_trunc('DAY', {ts})", "CAST({date} AS TIMESTAMP)"],
    "ntz": ["{ntz} + INTERVAL 1 DAY"],
    "span": ["{span} + {span}", "-({span})"],
    "bin": ["CAST({str} AS BINARY)"],
    "wint": ["try_add({wint}, {wint})", "try_subtract({wint}, {int})"],
    "wdec": ["try_add({wdec}, {wdec})"],
    "ints": ["array({int} % 1000, {int} % 10)", "filter({ints}, x -> x > 0)", "sort_array({ints})"],
    "strs": ["split({str}, 'a')", "transform({strs}, x -> upper(x))", "array({str}, {str})"],
    "structs": ["array(named_struct('p', try_cast({int} AS INT), 'q', {str}))"],
    "map": ["map('a', try_cast({int} AS INT))"],
    "struct": ["named_struct('p', try_cast({int} AS INT), 'q', {str}, 'r', {dbl})"],
}


def expression(dice: Dice, kind: str, scope: Scope, depth: int = 2) -> str:
    """A term of the kind."""
    columns = [name for name, other in scope if other == kind]
    options: list[Callable[[], str]] = [lambda: dice.pick(columns)] * (4 if columns else 0)
    if depth > 0 and kind in MADE:
        options += [lambda: _made(dice, kind, scope, depth)] * 3
    if depth > 0 and kind not in ("noisy", "struct", "map"):
        options.append(lambda: _case(dice, kind, scope, depth))
    if kind in LITERALS:
        options.append(lambda: dice.pick(LITERALS[kind]))
    return dice.pick(options)() if options else f"CAST(NULL AS {NULLS[kind]})"


def _made(dice: Dice, kind: str, scope: Scope, depth: int) -> str:
    made = dice.pick(MADE[kind])
    while (start := made.find("{")) >= 0:
        end = made.index("}", start)
        made = made[:start] + expression(dice, made[start + 1 : end], scope, depth - 1) + made[end + 1 :]
    return made


def _case(dice: Dice, kind: str, scope: Scope, depth: int) -> str:
    when, then, other = (expression(dice, k, scope, depth - 1) for k in ("bool", kind, kind))
    return f"CASE WHEN {when} THEN {then} ELSE {other} END"


def condition(dice: Dice, scope: Scope) -> str:
    return expression(dice, "bool", scope, 2)


def comparable(scope: Scope) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in scope if kind in COMPARABLE]
