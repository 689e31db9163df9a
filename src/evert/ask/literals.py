"""Values that are written in a query, with the types that Spark gives them."""

from __future__ import annotations

from decimal import Decimal as Number
from typing import TYPE_CHECKING

from sqlglot import exp

from evert.ask import calls
from evert.ask.casts import cast
from evert.ask.terms import Term, made, text
from evert.ask.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    in_duckdb,
    is_integer,
    is_moment,
    plain,
)
from evert.errors import BadQuery, BadSchema
from evert.schema.schema import Schema
from evert.schema.types import DataType, Decimal

if TYPE_CHECKING:
    from evert.ask.expressions import Expressions

_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_DAYS = {"WEEK": 7, "DAY": 1}
_CLOCK = ("HOUR", "MINUTE", "SECOND")


def literal(node: exp.Expression, *, negative: bool = False) -> Term:
    """A number, a text, a truth, NULL, or bytes."""
    if isinstance(node, exp.Null):
        return Term("NULL", VOID, literal=None)
    if isinstance(node, exp.Boolean):
        return Term("true" if node.this else "false", BOOLEAN, literal=bool(node.this))
    if isinstance(node, exp.HexString):
        return Term(f"from_hex('{bytes.fromhex(node.name).hex()}')", BINARY, literal=node.name)
    if isinstance(node, exp.RawString) or node.is_string:
        return Term(f"CAST({text(node.name)} AS VARCHAR)", STRING, literal=node.name)
    return _number(("-" if negative else "") + node.name)


def _number(digits: str) -> Term:
    if "e" in digits.lower():
        return Term(f"CAST('{float(digits)!r}' AS DOUBLE)", DOUBLE, literal=float(digits))
    if "." not in digits:
        value = int(digits)
        for whole in (INT, BIGINT):
            if in_range(value, whole):
                return Term(f"CAST('{value}' AS {in_duckdb(whole)})", whole, literal=value)
    number = Number(digits)
    scale = -int(number.as_tuple().exponent)
    kind = Decimal(max(len(number.as_tuple().digits), scale), scale)
    if kind.precision > 38:
        raise BadQuery(f"the number {digits} has more than 38 digits")
    return Term(f"CAST('{number:f}' AS {in_duckdb(kind)})", kind, literal=number)


def written(node: exp.Expression, to: DataType) -> Term | None:
    """A number with the letter of its type, `1L` or `1.5D`, which sqlglot reads as a cast."""
    inner = node.this
    if isinstance(inner, exp.Literal) and not inner.is_string and is_integer(to) and "." not in inner.name:
        value = int(inner.name)
        if in_range(value, to):
            return Term(f"CAST('{value}' AS {in_duckdb(to)})", to, literal=value)
    if isinstance(inner, exp.Literal) and not inner.is_string and to in (DOUBLE, FLOAT):
        return Term(f"CAST('{float(inner.name)!r}' AS {in_duckdb(to)})", to, literal=float(inner.name))
    return None


def in_range(value: int, kind: DataType) -> bool:
    bits = {"TINYINT": 7, "SMALLINT": 15, "INT": 31, "BIGINT": 63}[kind.ddl()]
    return -(1 << bits) <= value < 1 << bits


def narrowed(one: Term, two: Term) -> list[Term]:
    """An integer that is written beside a decimal counts as a decimal of as many digits as it has."""
    found = [one, two]
    for mine, other in ((0, 1), (1, 0)):
        term = found[mine]
        if isinstance(found[other].type, Decimal) and is_integer(term.type) and isinstance(term.literal, int):
            kind = Decimal(len(str(abs(term.literal))), 0)
            found[mine] = Term(f"CAST('{term.literal}' AS {in_duckdb(kind)})", kind, literal=term.literal)
    return found


def string(node: exp.Expression, what: str) -> str:
    """A text that must be written out."""
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        return str(node.name)
    raise calls.untranslated(f"{what} that is not written out, {shown(node)},")


def check_pattern(pattern: str, escape: str) -> None:
    """Spark takes an escape only before `%`, `_` and itself."""
    at = 0
    while (at := pattern.find(escape, at)) >= 0:
        if pattern[at + 1 : at + 2] not in ("%", "_", escape):
            raise BadQuery(
                f"in the pattern {pattern!r} nothing that can be escaped follows {escape!r}",
                hint=f"write {escape * 2} for {escape} itself",
            )
        at += 2


def type_of(node: exp.Expression) -> DataType:
    """A type as Spark writes it."""
    words = node.sql(dialect="spark")
    try:
        return plain(Schema.parse(f"x {words}").columns[0].type)
    except BadSchema as error:
        raise BadQuery(f"there is no type {words}", hint=error.hint) from None


def shown(node: exp.Expression) -> str:
    """A piece of the query, for a message."""
    found: str = node.sql(dialect="spark", normalize_functions=False)
    return found if len(found) <= 60 else found[:59] + "…"


def moved(translate: Expressions, node: exp.Expression, sign: str) -> Term:
    """A moment and an interval that is written out, added or taken away."""
    moment, interval = node.this, node.expression
    if isinstance(moment, exp.Interval) and sign == "+":
        moment, interval = interval, moment
    if sign not in "+-" or isinstance(moment, exp.Interval):
        raise calls.untranslated(shown(node))
    unit, count = _interval(interval)
    term = translate(moment)
    if not is_moment(term.type):
        raise calls.untranslated(f"{sign} of {term.type.ddl()} and an interval")
    kind = TIMESTAMP if term.type == DATE and unit in _CLOCK else term.type
    start = cast(term, kind)
    assert start is not None
    inner = f"CAST({start.sql} AS TIMESTAMP)" if kind == TIMESTAMP else start.sql
    sql = f"CAST({inner} {sign} INTERVAL '{count} {unit.lower()}' AS {in_duckdb(kind)})"
    return made(sql, kind, start, raises=True)


def _interval(node: exp.Expression) -> tuple[str, int]:
    unit = node.args.get("unit")
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    value = node.this
    if isinstance(value, exp.Neg):
        digits = "-" + value.this.name
    else:
        digits = value.name if isinstance(value, exp.Literal) else ""
    factors = {**_MONTHS, **_DAYS, **dict.fromkeys(_CLOCK, 1)}
    if name not in factors or not digits.lstrip("+-").isdigit() or abs(int(digits)) > 2**31:
        raise calls.untranslated(shown(node))
    coarse = "MONTH" if name in _MONTHS else "DAY" if name in _DAYS else name
    return coarse, int(digits) * factors[name]
