"""Every line of the tables of `evert.ask.functions`, and every cast, gives what Spark gives at the edges."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pyarrow as pa
import pytest
from tests.ask import edges
from tests.ask.agreeing import agree
from tests.ask.engines import Spark, in_duckdb

from evert.ask import functions
from evert.ask.casts import cast
from evert.ask.functions import AGGREGATES, OPERATORS, SCALARS, Function
from evert.ask.terms import Term
from evert.schema.schema import Schema

CAST_TYPES = [
    "BOOLEAN", "TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)", "STRING", "DATE",
    "TIMESTAMP", "TIMESTAMP_NTZ",
]  # fmt: skip
COMPARED = ["a0 = a1", "a0 <> a1", "a0 < a1", "a0 <= a1", "a0 <=> a1", "a0 IN (a1, NULL)"]
MIXED = [
    *itertools.combinations(["TINYINT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(20,5)"], 2),
    ("DATE", "TIMESTAMP"),
    ("DATE", "TIMESTAMP_NTZ"),
    ("TIMESTAMP", "TIMESTAMP_NTZ"),
]
DECIMALS = [("DECIMAL(10,2)", "DECIMAL(10,2)"), ("DECIMAL(20,5)", "DECIMAL(5,0)"), ("DECIMAL(10,2)", "INT")]


@pytest.fixture(scope="module")
def engine(spark):
    return Spark(spark, {})


def by_types(tables: Sequence[dict[str, list[Function]]]) -> dict[tuple[str, ...], list[str]]:
    """The calls of all functions, by the types of the columns that they are over."""
    found: dict[tuple[str, ...], list[str]] = {}
    for table in tables:
        for function in itertools.chain(*table.values()):
            for types, call in edges.cases(function):
                found.setdefault(tuple(types), []).append(call)
    return found


def compare(engine: Spark, types: Sequence[str], expressions: Sequence[str]) -> None:
    agree(engine, edges.table(list(types)), "i", list(dict.fromkeys(expressions)), each_row)


def each_row(expressions: Sequence[str]) -> str:
    return f"SELECT i, {', '.join(f'{one} AS x{n}' for n, one in enumerate(expressions))} FROM e"


def each_group(expressions: Sequence[str]) -> str:
    return f"SELECT g, {', '.join(f'{one} AS x{n}' for n, one in enumerate(expressions))} FROM e GROUP BY g"


FUNCTIONS = by_types([SCALARS, OPERATORS])
TOTALS = by_types([AGGREGATES])


@pytest.mark.parametrize("types", FUNCTIONS, ids=", ".join)
def test_functions_and_operators_give_what_spark_gives(engine, types):
    compare(engine, types, FUNCTIONS[types])


@pytest.mark.parametrize("kind", CAST_TYPES)
def test_casts_give_what_spark_gives(engine, kind):
    (column,) = Schema.parse(f"x {kind}").columns
    targets = [Schema.parse(f"x {to}").columns[0].type for to in CAST_TYPES]
    known = [to.ddl() for to in targets if cast(Term("x", column.type), to) is not None]
    compare(engine, [kind], [f"CAST(a0 AS {to})" for to in known])


@pytest.mark.parametrize("kind", [kind for kind in edges.VALUES if "ARRAY" not in kind])
def test_comparisons_give_what_spark_gives(engine, kind):
    compare(engine, [kind, kind], COMPARED)


@pytest.mark.parametrize("types", MIXED, ids=", ".join)
def test_values_of_two_types_meet_as_in_spark(engine, types):
    choices = [
        "coalesce(a0, a1)",
        "if(a0 > a1, a0, a1)",
        "CASE WHEN a0 = a1 THEN a0 ELSE a1 END",
        "nullif(a0, a1)",
    ]
    compare(engine, types, [*COMPARED, *choices])


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("INT", "'7'"),
        ("DOUBLE", "'1.5'"),
        ("DECIMAL(10,2)", "'2.5'"),
        ("DATE", "'2020-02-29'"),
        ("BOOLEAN", "'true'"),
    ],
)
def test_a_text_is_compared_as_what_it_is_compared_with(engine, kind, text):
    compare(engine, [kind], [f"a0 = {text}", f"{text} < a0"])


@pytest.mark.parametrize("types", DECIMALS, ids=", ".join)
def test_decimals_have_the_digits_of_spark(engine, types):
    compare(engine, types, [f"a0 {sign} a1" for sign in "+-*/%"])
    literals = ["a0 + 1", "a0 * 2", "a0 / 3", "1 - a0", "a0 / 0.7", "a0 * 1.25", "2 * a0 - 1.5", "a0 > 1"]
    compare(engine, types[:1], literals)


def test_what_is_written_out_means_what_it_does_in_spark(engine):
    written = [
        "1", "-1", "99999999999", "-2147483648", "-9223372036854775808", "99999999999999999999", "1L", "1S", "1Y",
        "1.5", "-0.10", ".5", "5.", "1e3", "1.5D", "1.5F", "2BD", "true", "NULL", "'it''s'", r"'a\nb'", r"'a\_b'",
        r"'a\qb'", r"'\u00e9\101'", "'a' 'b'", '"x"', "X'00ff'", "r'a\\n'", "DATE'2020-02-29'", "1 + NULL", "-(-1)",
        "TIMESTAMP'2020-02-29 01:02:03.5'", "TIMESTAMP_NTZ'2020-02-29'", "'a' || 'b' || NULL",
    ]  # fmt: skip
    compare(engine, ["INT"], written)


def test_like_matches_as_in_spark(engine):
    patterns = [
        "''",
        "'%'",
        "'a%'",
        "'_'",
        "'__'",
        r"'x\%\_'",
        "'x/%_' ESCAPE '/'",
        "'%,%'",
        "'é'",
        "'%\\\\%'",
    ]
    compare(engine, ["STRING"], [f"a0 {word} {one}" for one in patterns for word in ("LIKE", "NOT LIKE")])


def test_letters_of_all_scripts_change_their_case_as_in_spark(engine):
    """Or are refused: those that become several letters, and those that are newer than one of the engines."""
    letters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    rows = pa.table({"i": pa.array(range(len(letters)), pa.int64()), "a0": letters})
    for function in ("upper", "lower"):
        odd = functions.ODD_LETTERS[function].replace("\\", "\\\\")
        engine.give("e", rows)
        theirs = engine.run(f"SELECT i, IF(a0 RLIKE '{odd}', NULL, {function}(a0)) AS x FROM e ORDER BY i")
        known = rows.filter(theirs.column("x").is_valid())
        mine = in_duckdb(f"SELECT i, {function}(a0) AS x FROM e ORDER BY i", {"e": known})
        assert mine.column("x").to_pylist() == [x for x in theirs.column("x").to_pylist() if x is not None]
        assert known.num_rows > len(letters) - 800


def test_moments_move_by_intervals_as_in_spark(engine):
    units = [
        "1 DAY",
        "-3 DAYS",
        "2 WEEKS",
        "1 MONTH",
        "'13' MONTH",
        "1 YEAR",
        "5 HOURS",
        "90 MINUTES",
        "1 SECOND",
    ]
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        compare(engine, [kind, "INT"], [f"a0 {sign} INTERVAL {unit}" for unit in units for sign in "+-"])
    compare(engine, ["DATE", "INT"], ["a0 + a1", "a0 - a1", "INTERVAL 1 DAY + a0"])


def test_arrays_and_parts_of_moments_are_taken_as_in_spark(engine):
    compare(engine, ["ARRAY<INT>", "INT"], ["a0[a1]", "a0[0]", "get(a0, a1)", "a0 IS NULL", "size(a0)"])
    parts = ["YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE"]
    compare(engine, ["TIMESTAMP"], [f"EXTRACT({part} FROM a0)" for part in parts])


def test_conditions_are_evaluated_as_far_as_in_spark(engine):
    """What an earlier condition rules out is not evaluated, so it cannot fail."""
    guarded = ["a0 <> 0 AND 10 / a0 > 1", "a0 = 0 OR 10 / a0 > 1", "if(a0 = 0, 0, 10 div a0)", "NOT (a0 > 0)"]
    compare(engine, ["INT"], [*guarded, "CASE WHEN a0 <> 0 THEN 7 % a0 END", "coalesce(a0, 1 div 0)"])
    compare(
        engine, ["BOOLEAN", "BOOLEAN"], ["a0 AND a1", "a0 OR a1", "NOT a0", "a0 IS TRUE", "a0 IS NOT FALSE"]
    )


@pytest.mark.parametrize("types", TOTALS, ids=", ".join)
def test_aggregates_give_what_spark_gives(engine, types):
    """Over every edge with another one, and over those of them that a FILTER lets through."""
    rows = edges.table(list(types), few=True)
    pairs = pa.concat_tables([pair(rows, n) for n in range(rows.num_rows)])
    calls = list(dict.fromkeys(TOTALS[types]))
    filtered = [f"{call} FILTER (WHERE i % 2 = 0)" for call in calls]
    wanted = ["count"] if types[0] in ("FLOAT", "DOUBLE") else ["count", "sum", "min", "max"]
    distinct = [f"{name}(DISTINCT a0)" for name in wanted if f"{name}(a0)" in calls]
    agree(engine, pairs, "g", [*calls, *filtered, *distinct, "count(*)", "count(a0, i)"], each_group)


def pair(rows: pa.Table, n: int) -> pa.Table:
    """A row and the one after the next as a group of their own."""
    return rows.take([n, (n + 2) % rows.num_rows]).append_column("g", pa.array([n, n], pa.int64()))
