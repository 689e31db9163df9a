"""What may be asked of the embedded engine: every function and operator, and what DuckDB does in its place.

What is not in these tables is refused, or left to Spark. `tests/ask/test_dialect.py` runs every line of them in
both engines, over values at the edges of the types.

The types of arguments: `str`, `bool`, `int` (any integer), `i32` (at most INT), `big` (read as BIGINT), `dec`,
`flt` (FLOAT or DOUBLE), `f64` (DOUBLE), `dbl` (any number, read as DOUBLE), `date` (also of a timestamp), `ts`
(also of a date), `any` (anything that can be compared), `arr`, `same` (as all others that are `same`). One that
ends in `*` may come any number of times; one that ends in `+` stands for two numbers, in their common type. A
choice of texts in quotes must be written as such, and so must `digits` and `count`, which are numbers. A result is
a type, or the place of the argument whose type it has.

In a template `{0}` is an argument, `{*}` all of them, and `{over}` the FILTER and OVER of an aggregate.
"""

from __future__ import annotations

from dataclasses import dataclass

from evert.ask.terms import UNTESTED, fail


@dataclass(frozen=True)
class Function:
    """A function of Spark over arguments of some types, and DuckDB's expression for it."""

    name: str
    takes: tuple[str, ...]
    gives: str
    sql: str
    raises: bool = False


def _table(text: str) -> dict[str, list[Function]]:
    """One function a line: names | arguments | result | DuckDB; a `!` behind the result: it may fail."""
    found: dict[str, list[Function]] = {}
    for line in text.strip().splitlines():
        names, takes, gives, sql = (part.strip() for part in line.split("|", 3))
        for name in names.split():
            kind = gives.rstrip("!")
            one = Function(name, tuple(takes.split(", ")) if takes else (), kind, sql, gives.endswith("!"))
            found.setdefault(name, []).append(one)
    return found


_ZERO = fail("division by zero")
_NEW = r"\x{1C80}-\x{1C8F}\x{A7C0}-\x{A7FF}\x{10D50}-\x{10D8F}\x{16EA0}-\x{16EDF}"
ODD_LETTERS = {
    "upper": rf"[ßŉƛǰɤͅΐΰև\x{{1E96}}-\x{{1E9F}}\x{{1F00}}-\x{{1FFF}}\x{{FB00}}-\x{{FB4F}}{_NEW}]",
    "lower": rf"[İΣ{_NEW}]",
}
"""Letters that become several in Spark, and such as are newer than the Unicode of one of the engines."""


def _cased(function: str) -> str:
    odd = ODD_LETTERS[function].replace("{", "{{").replace("}", "}}")
    other = fail(f"{UNTESTED}{function}() of a letter that becomes several, or is new in Unicode")
    return f"CASE WHEN regexp_matches({{0}}, '{odd}') THEN {other} ELSE {function}({{0}}) END"


_START = "(CASE WHEN {1} > 0 THEN {1} - 1 WHEN {1} < 0 THEN length({0}) + {1} ELSE 0 END)"
_SUBSTRING = (
    "CASE WHEN {1} IS NULL OR {2} IS NULL THEN NULL"
    f" ELSE substring({{0}}, greatest({_START}, 0) + 1, greatest({_START} + {{2}}, 0)"
    f" - least(greatest({_START}, 0), greatest({_START} + {{2}}, 0))) END"
)
_REST = f"CASE WHEN {{1}} IS NULL THEN NULL ELSE substring({{0}}, greatest({_START}, 0) + 1) END"
_REPLACE = "CASE WHEN {1} = '' AND {2} IS NOT NULL THEN {0} ELSE replace({0}, {1}, {2}) END"
_NAIVE = "CAST({0} AS TIMESTAMP)"
_UNITS = "'YEAR' 'QUARTER' 'MONTH' 'WEEK' 'DAY' 'HOUR' 'MINUTE' 'SECOND'"
_CUT = "CAST(date_trunc({0}, CAST({1} AS TIMESTAMP)) AS TIMESTAMP WITH TIME ZONE)"
_ROUNDED = (
    "CASE WHEN isnan({0}) OR isinf({0}) OR abs({0}) >= 1e15 THEN {0} WHEN abs({0}) < 1e7"
    " THEN CAST(CAST(round(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38, 30)), {1}) AS VARCHAR) AS DOUBLE)"
    " ELSE CAST(CAST(round(CAST(CAST({0} AS VARCHAR) AS DECIMAL(38, 18)), {1}) AS VARCHAR) AS DOUBLE) END"
)
_WHOLE = "CASE WHEN isnan({{0}}) OR abs({{0}}) >= 9e18 THEN {} ELSE CAST({}({{0}}) AS BIGINT) END"
_TOO_WIDE = fail(f"{UNTESTED}a number beyond BIGINT")

SCALARS = _table(
    f"""
    upper ucase | str | str! | {_cased("upper")}
    lower lcase | str | str! | {_cased("lower")}
    length char_length character_length len | str | INT | CAST(length({{0}}) AS INTEGER)
    trim | str | str | trim({{0}}, ' ')
    ltrim | str | str | ltrim({{0}}, ' ')
    rtrim | str | str | rtrim({{0}}, ' ')
    substring substr | str, i32, i32 | str | {_SUBSTRING}
    substring substr | str, i32 | str | {_REST}
    left | str, i32 | str | substring({{0}}, 1, CASE WHEN {{1}} < 0 THEN 0 ELSE {{1}} END)
    concat | str* | str | ({{||}})
    replace | str, str, str | str | {_REPLACE}
    repeat | str, i32 | str | repeat({{0}}, CASE WHEN {{1}} < 0 THEN 0 ELSE {{1}} END)
    startswith | str, str | bool | starts_with({{0}}, {{1}})
    endswith | str, str | bool | ends_with({{0}}, {{1}})
    contains | str, str | bool | contains({{0}}, {{1}})
    instr | str, str | INT | CAST(instr({{0}}, {{1}}) AS INTEGER)
    locate position | str, str | INT | CAST(instr({{1}}, {{0}}) AS INTEGER)
    split | str, ',' ';' ' ' '/' ':' '-' '_' '@' '=' '&' | strs | string_split({{0}}, {{1}})
    md5 | str | str | md5({{0}})
    abs | int | 0! | abs({{0}})
    abs | dec | 0 | abs({{0}})
    abs | flt | 0 | abs({{0}})
    ceil ceiling | int | BIGINT | CAST({{0}} AS BIGINT)
    floor | int | BIGINT | CAST({{0}} AS BIGINT)
    ceil ceiling | flt | BIGINT! | {_WHOLE.format(_TOO_WIDE, "ceil")}
    floor | flt | BIGINT! | {_WHOLE.format(_TOO_WIDE, "floor")}
    ceil ceiling | dec | whole | CAST(ceil({{0}}) AS {{to}})
    floor | dec | whole | CAST(floor({{0}}) AS {{to}})
    round | int | 0 | {{0}}
    round | int, digits | 0 | {{0}}
    round | dec | rounded | CAST(round({{0}}, 0) AS {{to}})
    round | dec, digits | rounded | CAST(round({{0}}, {{1}}) AS {{to}})
    round | flt | 0 | round({{0}})
    round | f64, digits | DOUBLE | {_ROUNDED}
    sqrt | dbl | DOUBLE | CASE WHEN {{0}} < 0 THEN 'NaN'::DOUBLE ELSE sqrt({{0}}) END
    exp | dbl | DOUBLE | exp({{0}})
    ln log | dbl | DOUBLE | CASE WHEN {{0}} <= 0 THEN NULL ELSE ln({{0}}) END
    log10 | dbl | DOUBLE | CASE WHEN {{0}} <= 0 THEN NULL ELSE log10({{0}}) END
    log2 | dbl | DOUBLE | CASE WHEN {{0}} <= 0 THEN NULL ELSE log2({{0}}) END
    pow power | dbl, dbl | DOUBLE | pow({{0}}, {{1}})
    sign signum | dbl | DOUBLE | CASE WHEN isnan({{0}}) OR {{0}} = 0 THEN {{0}} ELSE CAST(sign({{0}}) AS DOUBLE) END
    isnan | flt | bool | coalesce(isnan({{0}}), false)
    nanvl | dbl, dbl | DOUBLE | CASE WHEN isnan({{0}}) THEN {{1}} ELSE {{0}} END
    isnull | any | bool | ({{0}} IS NULL)
    isnotnull | any | bool | ({{0}} IS NOT NULL)
    coalesce | same* | same | coalesce({{*}})
    nvl ifnull | same, same | same | coalesce({{0}}, {{1}})
    nvl2 | any, same, same | same | CASE WHEN {{0}} IS NOT NULL THEN {{1}} ELSE {{2}} END
    if | bool, same, same | same | CASE WHEN {{0}} THEN {{1}} ELSE {{2}} END
    greatest | same, same* | same | greatest({{*}})
    least | same, same* | same | least({{*}})
    year | date | INT | CAST(year({{0}}) AS INTEGER)
    quarter | date | INT | CAST(quarter({{0}}) AS INTEGER)
    month | date | INT | CAST(month({{0}}) AS INTEGER)
    day dayofmonth | date | INT | CAST(day({{0}}) AS INTEGER)
    dayofyear | date | INT | CAST(dayofyear({{0}}) AS INTEGER)
    weekofyear | date | INT | CAST(weekofyear({{0}}) AS INTEGER)
    dayofweek | date | INT | CAST(dayofweek({{0}}) + 1 AS INTEGER)
    weekday | date | INT | CAST(isodow({{0}}) - 1 AS INTEGER)
    last_day | date | DATE | last_day({{0}})
    date_add dateadd | date, i32 | DATE! | CAST({{0}} + {{1}} AS DATE)
    date_sub | date, i32 | DATE! | CAST({{0}} - {{1}} AS DATE)
    datediff date_diff | date, date | INT | CAST({{0}} - {{1}} AS INTEGER)
    add_months | date, i32 | DATE! | CAST({{0}} + to_months({{1}}) AS DATE)
    make_date | i32, i32, i32 | DATE! | make_date({{0}}, {{1}}, {{2}})
    trunc | date, 'YEAR' 'YYYY' 'YY' | DATE | CAST(date_trunc('year', {{0}}) AS DATE)
    trunc | date, 'QUARTER' | DATE | CAST(date_trunc('quarter', {{0}}) AS DATE)
    trunc | date, 'MONTH' 'MON' 'MM' | DATE | CAST(date_trunc('month', {{0}}) AS DATE)
    trunc | date, 'WEEK' | DATE | CAST(date_trunc('week', {{0}}) AS DATE)
    date_trunc | {_UNITS}, ts | ts | {_CUT}
    hour | ts | INT | CAST(hour({_NAIVE}) AS INTEGER)
    minute | ts | INT | CAST(minute({_NAIVE}) AS INTEGER)
    second | ts | INT | CAST(second({_NAIVE}) AS INTEGER)
    unix_timestamp | ts | BIGINT | (epoch_us({{0}}) // 1000000)
    size cardinality | arr | INT | CAST(len({{0}}) AS INTEGER)
    get | arr, i32 | element | CASE WHEN {{1}} < 0 THEN NULL ELSE list_extract({{0}}, {{1}} + 1) END
    """
)

_BY_ZERO = f"CASE WHEN {{1}} = 0 AND {{0}} IS NOT NULL THEN {_ZERO}"

OPERATORS = _table(
    f"""
    neg | int | 0! | (-{{0}})
    neg | dec | 0 | (-{{0}})
    neg | flt | 0 | (-{{0}})
    add | flt+ | same | ({{0}} + {{1}})
    sub | flt+ | same | ({{0}} - {{1}})
    mul | flt+ | same | ({{0}} * {{1}})
    add | int+ | same! | ({{0}} + {{1}})
    sub | int+ | same! | ({{0}} - {{1}})
    mul | int+ | same! | ({{0}} * {{1}})
    div | dbl, dbl | DOUBLE! | {_BY_ZERO} ELSE {{0}} / {{1}} END
    intdiv | big, big | BIGINT! | {_BY_ZERO} ELSE {{0}} // {{1}} END
    mod | int+ | same! | {_BY_ZERO} WHEN {{1}} = -1 THEN {{0}} - {{0}} ELSE {{0}} % {{1}} END
    mod | flt+ | same! | {_BY_ZERO} ELSE {{0}} % {{1}} END
    concat | str, str | str | ({{0}} || {{1}})
    """
)

_FINITE = "{0} IS NOT NULL AND NOT isnan({0}) AND NOT isinf({0})"


def _spread(function: str) -> str:
    """A variance, which is NaN over what is not finite; DuckDB would refuse it."""
    odd = "count(CASE WHEN isnan({0}) OR isinf({0}) THEN 1 END){over} > 0"
    plain = f"{function}(CASE WHEN {_FINITE} THEN {{0}} END){{over}}"
    return f"CASE WHEN {odd} AND count({{0}}){{over}} > 1 THEN 'NaN'::DOUBLE ELSE {plain} END"


AGGREGATES = _table(
    f"""
    count | any | BIGINT | count({{0}}){{over}}
    sum | int | BIGINT! | CAST(sum({{0}}){{over}} AS BIGINT)
    sum | flt | DOUBLE | sum(CAST({{0}} AS DOUBLE)){{over}}
    sum | dec | sum! | CAST(sum({{0}}){{over}} AS {{to}})
    avg mean | int | DOUBLE | avg(CAST({{0}} AS DOUBLE)){{over}}
    avg mean | flt | DOUBLE | avg(CAST({{0}} AS DOUBLE)){{over}}
    avg mean | dec | avg | {{quotient}}
    min | any | 0 | min({{0}}){{over}}
    max | any | 0 | max({{0}}){{over}}
    stddev std stddev_samp | dbl | DOUBLE | {_spread("stddev_samp")}
    variance var_samp | dbl | DOUBLE | {_spread("var_samp")}
    bool_and every | bool | bool | bool_and({{0}}){{over}}
    bool_or some | bool | bool | bool_or({{0}}){{over}}
    count_if | bool | BIGINT | count(CASE WHEN {{0}} THEN 1 END){{over}}
    max_by | any, any | 0 | arg_max_null({{0}}, {{1}}){{over}}
    min_by | any, any | 0 | arg_min_null({{0}}, {{1}}){{over}}
    median | dbl | DOUBLE | median({{0}}){{over}}
    """
)

WINDOWS = _table(
    """
    row_number | | INT | CAST(row_number(){over} AS INTEGER)
    rank | | INT | CAST(rank(){over} AS INTEGER)
    dense_rank | | INT | CAST(dense_rank(){over} AS INTEGER)
    percent_rank | | DOUBLE | percent_rank(){over}
    cume_dist | | DOUBLE | cume_dist(){over}
    ntile | count | INT | CAST(ntile({0}){over} AS INTEGER)
    lag | any | 0 | lag({0}){over}
    lead | any | 0 | lead({0}){over}
    lag | same, digits | 0 | lag({0}, {1}){over}
    lead | same, digits | 0 | lead({0}, {1}){over}
    lag | same, digits, same | same | lag({0}, {1}, {2}){over}
    lead | same, digits, same | same | lead({0}, {1}, {2}){over}
    first_value first | any | 0 | first_value({0}){over}
    last_value last | any | 0 | last_value({0}){over}
    nth_value | any, count | 0 | nth_value({0}, {1}){over}
    """
)
