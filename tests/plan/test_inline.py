"""What workers evaluate themselves is what Spark gives, over the edges of all types, or an error."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.delta.harness import canon, rows_of

from evert.delta.functions import FUNCTIONS
from evert.plan.catalyst import Catalyst
from evert.plan.chains import Pipe, Select, Where
from evert.plan.expressions import unnamed
from evert.plan.inline import inlined

EDGES = {
    "a": ("int", [0, 1, -1, 3, 2**31 - 1, -(2**31), None, 7]),
    "b": ("int", [1, 0, 2, -3, 5, -1, 4, None]),
    "k": ("bigint", [0, 1, -1, 2**63 - 1, -(2**63), None, 10, -7]),
    "s": ("smallint", [0, 1, -1, 2**15 - 1, -(2**15), None, 10, -7]),
    "t": ("string", ["", "a", "ab", "ä", "Z", None, "\U0001f600", "a "]),
    "u": ("string", ["a", "a", "B", "z", None, None, "é", "a"]),
    "f": ("boolean", [True, False, None, True, False, None, True, False]),
    "g": ("boolean", [True, True, True, False, False, False, None, None]),
    "d": ("date", [date(1970, 1, 1), date(1, 1, 1), None, date(9999, 12, 31), *([date(2026, 2, 3)] * 4)]),
    "at": (
        "timestamp",
        [
            datetime(1970, 1, 1, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
            datetime(2262, 4, 12, tzinfo=UTC),
            None,
            datetime(1, 1, 1, tzinfo=UTC),
            datetime(2026, 11, 16, 10, 3, 39, 1, UTC),
            datetime(2026, 11, 16, 10, 3, 40, 0, UTC),
            datetime(2026, 3, 29, 1, 30, 0, 0, UTC),
        ],
    ),
    "wall": (
        "timestamp_ntz",
        [
            None,
            datetime(1, 1, 1),
            datetime(9999, 12, 31, 23, 59, 59, 999999),
            *([datetime(2026, 3, 29, 2, 30)] * 5),
        ],
    ),
    "n": ("decimal(20,0)", [Decimal(n) for n in (0, 1, -1, 2**53, -(2**53), 99)] + [None, Decimal(-7)]),
    "w": ("string", ["", "http://a/b", None, "x=1&id=9&y", "id=", "ID=5", "//", "a&id=b\nc&id=d"]),
    "m": ("decimal(38,0)", [Decimal(n) for n in (0, 1, -1, 2**62, -(2**63), 2**31)] + [None, Decimal(5)]),
    "c": ("string collate UTF8_LCASE", ["a", "A", None, "b", "B", "", "c", "a"]),
    "p": (
        "decimal(15,2)",
        [Decimal(n) for n in ("0", "0.01", "-0.01", "9999999999999.99", "-9999999999999.99")]
        + [None, Decimal("0.05"), Decimal("24")],
    ),
    "q": (
        "decimal(38,2)",
        [Decimal(n) for n in ("0", "1.01", "-0.01", "999.99", "-999.99")]
        + [None, Decimal("7"), Decimal("24")],
    ),
    "e": (
        "decimal(32,4)",
        [Decimal(n) for n in ("0", "0.0001", "-1.5", "1234567890.9999", "-0.0050")]
        + [None, Decimal("1"), Decimal("2")],
    ),
    "y": (
        "string",
        [
            "special requests",
            "a special\nthing requests",
            "PROMO",
            "promo",
            "%",
            None,
            "_😀x",
            "PROMO requests",
        ],
    ),
    "x": ("double", [0.0, -0.0, float("nan"), 1.5, float("inf"), None, -1.0, 2.0]),
    "v": ("struct<p: int, q: string>", [{"p": 1, "q": "z"}, None, {"p": None, "q": None}] * 2 + [None] * 2),
}
TERMS = [
    "a, k, s, t, f, d, at, m, x, v",
    "1, 'x', true, cast(null as int), cast(null as string)",
    "f and g, f or g, not f, f = g, f <=> g, f is null, f is not null, f < g",
    "a < b, a <= b, a > b, a >= b, a = b, a <> b, a <=> b, a is null, a between b and 3",
    "t < u, t <= u, t > u, t = u, t <=> u, t = 'a', t > ''",
    "d < d, d = d, at <= at, at is null, x is null, v is null, v is not null",
    "m = m, m < m, m <=> m, p < p, p = 0.05, p between 0.01 and 24, q > 7, p <= q, e < 1.5, p <> 24.00",
    "d < date'2026-02-04', d >= date'1970-01-01', d = date'0001-01-01'",
    "d between date'1000-01-01' and date'9999-12-31'",
    "year(d), month(d), day(d), quarter(d)",
    "p + q, p - q, 1 - p, p + 1, p * 0.2, p * p, p * (1 - p), e * (1 + p), - p, e - p, e * p, q + q",
    "cast(p as decimal(21,7)), cast(q as decimal(25,2)), cast(p as decimal(15,2)), cast(e as decimal(38,6))",
    "case when y like 'PROMO%' then p * (1 - p) else 0 end, p * 1.0000",
    "y like '%special%requests%', y not like 'PROMO%', y like '%o', y like '%ial%', y like '_', y like '_%x'",
    "y like 'PROMO', y like '%', y like '%a%i%', y like '(PROMO)', y like '_special%'",
    "startswith(y, 'PRO'), endswith(y, 'requests'), contains(y, 'spec'), startswith(y, ''), contains(t, '😀')",
    "substring(y, 1, 2), substr(y, 3), left(t, 1), substring(y, 2, 0), substring(y, 1, 2) in ('sp', 'PR', '_😀')",
    "a in (1, 3), a in (1, cast(null as int)), t in ('a', 'Z', ''), a not in (7)",
    "coalesce(a, b), coalesce(a, 5), coalesce(t, u, 'none'), ifnull(k, 0L), nullif(a, 1)",
    "if(f, a, b), if(a > b, t, u), case when f then 1 when g then 2 end, case when a > 1 then t else u end",
    "cast(a as bigint), cast(s as int), cast(s as bigint), cast(m as bigint)",
    "cast(a as bigint) + b, cast(a as bigint) * b, cast(a as bigint) - b, - cast(a as bigint)",
    "a % 7, cast(a as bigint) % 10, b % 3, k % 10000000L",
    "window(at, '10 seconds').start, window(at, '10 seconds').end, a",
    "window(at, '7 days')",
    "window(at, '1 hour', '1 hour', '7 minutes').start",
    "date_format(at, 'yyyy-MM-dd'), date_format(at, 'HH:mm'), date_format(at, 'dd/MM/yyyy HH:mm:ss'), hour(at)",
    "wall + interval 10 seconds, at + interval 1 day",
    "at - interval '1 02:03:04.000005' day to second, wall - interval 3 hours, session_window(at, '10 seconds')",
    "cast(a as double), cast(s as double), cast(a as double) / 4, x / 2",
    "floor(cast(a as double) / 3), floor(cast(n as double) / 7)",
    "n * 0.908, cast(a as decimal(10,0)) * 1.50, cast(k as decimal(20,0)) * 2.5",
    "length(t), length(u), replace(t, 'a', 'xyz'), replace(w, '/', ''), lower(w), upper(w)",
    "split_part(w, '/', 1), split_part(w, '/', 3), split_part(t, 'a', 2), split_part(w, '//', 2)",
    "regexp_extract(w, '(&|^)id=([^&]*)', 2), regexp_extract(w, '(&|^)id=([^&]*)', 1)",
    "regexp_extract(w, '([a-z]+)', 1), regexp_extract(t, '([a-z ]+)', 1)",
    "struct(a, t), named_struct('p', k, 'q', at), struct(a, t).a",
]
BY_SPARK = [
    "x = 1.0D",
    "x + 1",
    "cast(x as bigint)",
    "date_format(at, 'EEE')",
    "date_format(at, 'dd MMMM yyyy')",
    "regexp_extract(t, '([a-z&&b]+)', 1)",
    "date_format(at, t)",
    "regexp_extract(t, 'a$', 0)",
    "regexp_extract(t, '(.)', 1)",
    "regexp_extract(t, '(a)', 2 - a)",
    "split_part(t, u, 1)",
    "at + interval 1 month",
    "element_at(split(t, 'a'), 1)",
    "cast(m as double) * 2",
    "cast(a as decimal(5,0))",
    "d + 1",
    "t collate UTF8_LCASE = 'A'",
    "v = v",
    "c = 'A'",
    "c < c",
    "cast(t as int)",
    "cast(a as string)",
    "m * 0.0000000001",
    "cast(p as decimal(15,1))",
    "y like 'a/%' escape '/'",
    "y like '\\\\%a'",
    "y like t",
    "substring(y, -2, 1)",
    "substring(y, a, 1)",
    "p / 3",
    "year(at)",
    "c like 'a%'",
    "rand()",
    "at = timestamp'2026-01-01'",
]


@pytest.fixture(scope="module")
def edges(spark):
    ddl = ", ".join(f"{name} {kind}" for name, (kind, _) in EDGES.items())
    frame = spark.createDataFrame(list(zip(*(values for _, values in EDGES.values()), strict=True)), ddl)
    frame.createOrReplaceTempView("edges")
    yield frame
    spark.catalog.dropTempView("edges")


def pipe_of(spark, edges, query):
    """The pipe of a query over the edges, the terms it ends in, and the rows as a source gives them."""
    catalyst = Catalyst(spark)
    with catalyst.active():
        plan = catalyst.optimise(catalyst.analysed(spark.sql(query)))
        steps, projections, leaf = [], [], plan
        while leaf.children().length():
            projections.append(leaf)
            leaf = leaf.child()
        columns = tuple(catalyst.column(one) for one in catalyst.items(leaf.output()))
        for operator in reversed(projections):
            if operator.getClass().getSimpleName() == "Filter":
                steps.append(Where(operator.condition()))
            else:
                made = catalyst.items(operator.projectList())
                shown = tuple(catalyst.column(one) for one in catalyst.items(operator.output()))
                steps.append(Select(shown, tuple(unnamed(one) for one in made)))
        terms = [catalyst.column(one).term for one in catalyst.items(plan.output())]
    names = [column.name for column in columns]
    rows = edges.toArrow().select(names)
    weights = pa.array(range(1, rows.num_rows + 1), pa.int64())
    renamed = pa.table([*rows.columns, weights], names=[*(f"c{n}" for n in range(len(names))), "__w"])
    return Pipe("n0", columns, tuple(steps)), terms, renamed


@pytest.mark.parametrize("terms", TERMS)
def test_an_expression_gives_what_spark_gives(spark, edges, terms):
    pipe, ends, rows = pipe_of(spark, edges, f"select {terms} from edges")
    work = inlined(pipe, ends)
    assert work is not None
    ours = work.apply(rows)
    theirs = spark.sql(f"select {terms} from edges").toArrow()
    assert ours.num_columns == theirs.num_columns + 1
    for mine, plain in zip(ours.columns, theirs.columns, strict=False):
        mine = mine.cast(plain.type)
        if pa.types.is_floating(plain.type):
            assert canon(mine.to_pylist()) == canon(plain.to_pylist())
        else:
            assert mine.equals(plain)


@pytest.mark.parametrize(
    "condition", ["a > b", "f or g", "t in ('a', 'Z') or a is null", "k > 0 and a < 5", "f"]
)
def test_rows_of_which_a_condition_is_not_true_go_with_their_weights(spark, edges, condition):
    query = f"select a, t from edges where {condition}"
    pipe, ends, rows = pipe_of(spark, edges, query)
    work = inlined(pipe, ends)
    assert work is not None
    ours = work.apply(rows)
    assert [row for row, _ in rows_of(ours)] == [tuple(row) for row in spark.sql(query).collect()]
    kept = [
        weight
        for (row, weight), there in zip(
            rows_of(rows),
            spark.sql(f"select coalesce({condition}, false) as c from edges").collect(),
            strict=True,
        )
        if there.c
    ]
    assert ours.column("__w").to_pylist() == kept


@pytest.mark.parametrize("term", BY_SPARK)
def test_what_arrow_does_otherwise_is_left_to_spark(spark, edges, term):
    pipe, ends, _ = pipe_of(spark, edges, f"select {term} as y, a, x, t, d, v, m, at from edges")
    assert inlined(pipe, ends) is None


@pytest.mark.parametrize(
    "term",
    [
        "a + b",
        "k * 2L",
        "- a",
        "s - 1S",
        "a % b",
        "cast(m as int)",
        "k - 1L",
        "cast(p as decimal(5,2))",
        "cast(k as double)",
        "cast(m as double)",
        "lower(t)",
        "cast(a as double) / b",
    ],
)
def test_what_is_too_large_or_divided_by_zero_is_an_error(spark, edges, term):
    pipe, ends, rows = pipe_of(spark, edges, f"select {term} as y from edges")
    work = inlined(pipe, ends)
    assert work is not None
    with pytest.raises(pa.ArrowInvalid):
        work.apply(rows)


@given(
    st.lists(st.tuples(st.integers(-(10**24), 10**24), st.integers(0, 10**19 - 1)), min_size=1, max_size=20)
)
@example([(5, 10**6), (-5, 10**6), (15, 10**6), (4, 10**6), (1, 0), (1, 3), (-2, 3), (10**24, 1)])
def test_an_average_of_decimals_is_rounded_once_away_from_zero(pairs):
    total = pa.array([Decimal(cents).scaleb(-2) for cents, _ in pairs], pa.decimal128(25, 2))
    number = pa.array([Decimal(n) for _, n in pairs], pa.decimal128(20, 0))
    found = FUNCTIONS["DecimalDivideWithOverflowCheck"]([total, number], pa.decimal128(38, 6))
    with localcontext(prec=76):
        wanted = [
            None if n == 0 else (Decimal(cents) / 100 / n).quantize(Decimal("1e-6"), ROUND_HALF_UP)
            for cents, n in pairs
        ]
    assert found.to_pylist() == wanted
