"""Arithmetic of two numbers; decimals have the digits that Spark gives them, and not one less."""

from __future__ import annotations

from evert.ask import calls
from evert.ask.casts import cast
from evert.ask.literals import narrowed
from evert.ask.quotients import quotient
from evert.ask.terms import Term, fail, made
from evert.ask.types import (
    DATE,
    VOID,
    as_decimal,
    in_duckdb,
    is_floating,
    is_integer,
    is_number,
    product_of,
    quotient_of,
    remainder_of,
    sum_of,
)
from evert.errors import NotTranslated
from evert.schema.types import Decimal

_RESULTS = {"add": sum_of, "sub": sum_of, "mul": product_of, "div": quotient_of, "mod": remainder_of}


def arithmetic(name: str, sign: str, one: Term, two: Term) -> Term:
    """`name` is the operator's in the tables, `sign` how it is written."""
    for mine, other in ((one, two), (two, one)):
        if mine.type == VOID and is_number(other.type):
            found = cast(mine, other.type)
            one, two = (found or one, two) if mine is one else (one, found or two)
    if one.type == DATE and is_integer(two.type) and name in ("add", "sub"):
        return calls.scalar("date_add" if name == "add" else "date_sub", [one, two])
    decimal = isinstance(one.type, Decimal) or isinstance(two.type, Decimal)
    if not decimal or is_floating(one.type) or is_floating(two.type):
        return calls.operator(name, one, two, shown=sign)
    if not (is_number(one.type) and is_number(two.type)) or name not in _RESULTS:
        return calls.operator(name, one, two, shown=sign)
    return _decimal(name, sign, *narrowed(one, two))


def _decimal(name: str, sign: str, one: Term, two: Term) -> Term:
    left, right = as_decimal(one.type), as_decimal(two.type)
    kind = _RESULTS[name](left, right)
    if kind is None or (name == "div" and kind.precision > 37):
        raise NotTranslated(
            f"{left.ddl()} {sign} {right.ddl()} {calls.TOO_WIDE}", hint="CAST one of them to fewer digits"
        )
    mine, other = cast(one, left), cast(two, right)
    assert mine is not None
    assert other is not None
    to = in_duckdb(kind)
    if name == "mul":
        wide = in_duckdb(Decimal(max(19, left.precision), left.scale))
        return made(f"CAST(CAST({mine.sql} AS {wide}) * {other.sql} AS {to})", kind, mine, other)
    if name in ("add", "sub"):
        return made(
            f"CAST(CAST({mine.sql} AS {to}) {sign} CAST({other.sql} AS {to}) AS {to})", kind, mine, other
        )
    zero = f"CASE WHEN {other.sql} = 0 AND {mine.sql} IS NOT NULL THEN {fail('division by zero')}"
    if name == "mod":
        wide = in_duckdb(sum_of(left, right) or kind)
        rest = f"CAST(CAST({mine.sql} AS {wide}) % CAST({other.sql} AS {wide}) AS {to})"
        return made(f"({zero} ELSE {rest} END)", kind, mine, other, raises=True)
    shift = kind.scale - left.scale + right.scale
    return made(
        f"({zero} ELSE {quotient(mine.sql, other.sql, shift, kind)} END)", kind, mine, other, raises=True
    )
