"""Calls of functions: found in the tables by name and types, and written as DuckDB's."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evert.ask.casts import cast
from evert.ask.functions import AGGREGATES, OPERATORS, SCALARS, WINDOWS, Function
from evert.ask.quotients import quotient
from evert.ask.terms import Term, made, text
from evert.ask.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIMESTAMP,
    VOID,
    bounded,
    common,
    comparable,
    in_duckdb,
    is_floating,
    is_integer,
    is_moment,
    is_number,
)
from evert.errors import BadQuery, NotTranslated
from evert.schema.types import Array, Atom, DataType, Decimal

_RESULTS: dict[str, DataType] = {"str": STRING, "bool": BOOLEAN, "ts": TIMESTAMP, "strs": Array(STRING)}
_MOST_DIGITS = 10
_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
TOO_WIDE = "needs more than 38 digits, of which Spark would drop some"


def scalar(name: str, terms: Sequence[Term]) -> Term:
    """A call of a function that has a value for every row."""
    return _called(SCALARS, name, terms)


def operator(name: str, *terms: Term, shown: str) -> Term:
    """An operator, which the user has written as `shown`."""
    return _called(OPERATORS, name, terms, shown=shown)


def aggregate(name: str, terms: Sequence[Term], over: str) -> Term:
    """A call of an aggregate; `over` is its FILTER and OVER."""
    return _called(AGGREGATES, name, terms, over=over)


def window(name: str, terms: Sequence[Term], over: str) -> Term:
    return _called(WINDOWS, name, terms, over=over)


def is_aggregate(name: str) -> bool:
    return name in AGGREGATES


def is_window(name: str) -> bool:
    return name in WINDOWS


def _called(
    table: dict[str, list[Function]],
    name: str,
    terms: Sequence[Term],
    *,
    shown: str | None = None,
    over: str = "",
) -> Term:
    label = shown or f"{name}()"
    for function in table.get(name, ()):
        fitted = fit(function.takes, terms)
        if fitted is not None:
            return _written(function, fitted, over, label)
    if name not in table:
        raise untranslated(label)
    kinds = ", ".join(term.type.ddl() for term in terms)
    raise NotTranslated(
        f"{label} of {kinds or 'nothing'} has no tested equal in the embedded engine",
        hint="CAST the arguments to other types, or ask in a process where Spark runs",
        function=name,
    )


def untranslated(what: str) -> NotTranslated:
    return NotTranslated(
        f"{what} has no tested equal in the embedded engine",
        hint="docs/ask.md lists what there is; where a Spark session runs, Spark answers instead",
        function=what.removesuffix("()"),
    )


def _written(function: Function, terms: list[Term], over: str, label: str) -> Term:
    kind = _result(function.gives, terms, label)
    values = {"*": ", ".join(term.sql for term in terms), "||": " || ".join(term.sql for term in terms)}
    values |= {"over": over, "to": in_duckdb(kind) or ""}
    if isinstance(kind, Decimal) and terms and isinstance(terms[0].type, Decimal):
        summed, counted = f"sum({terms[0].sql}){over}", f"count({terms[0].sql}){over}"
        values["quotient"] = f"CASE WHEN {counted} > 0 THEN {quotient(summed, counted, 4, kind)} END"
    values |= {str(number): term.sql for number, term in enumerate(terms)}
    sql = _FIELD.sub(lambda found: values[found[1]] if found[1] else found[0][0], function.sql)
    if sql.startswith("CASE "):
        sql = f"({sql})"
    return made(sql, kind, *terms, raises=function.raises)


def _result(gives: str, terms: list[Term], label: str) -> DataType:
    if gives.isdigit():
        return terms[int(gives)].type
    if gives in _RESULTS:
        return _RESULTS[gives]
    if gives == "same":
        return terms[-1].type
    first = terms[0].type if terms else VOID
    if gives == "element":
        assert isinstance(first, Array)
        return first.element
    if gives in ("sum", "avg", "whole", "rounded"):
        assert isinstance(first, Decimal)
        return _decimal(gives, first, terms, label)
    return Atom(gives)


def _decimal(gives: str, kind: Decimal, terms: list[Term], label: str) -> Decimal:
    digits = kind.precision - kind.scale
    if gives == "sum":
        return Decimal(min(38, kind.precision + 10), kind.scale)
    if gives == "avg":
        found = bounded(kind.precision + 4, kind.scale + 4) if kind.precision <= 24 else None
    elif gives == "whole":
        found = bounded(digits + 1, 0) if kind.scale else kind
    else:
        scale = min(kind.scale, int(terms[1].literal) if len(terms) > 1 else 0)
        found = bounded(digits + 1 + scale, scale)
    if found is None:
        raise NotTranslated(f"{label} of {kind.ddl()} {TOO_WIDE}", hint="CAST it to fewer digits")
    return found


def fit(takes: Sequence[str], terms: Sequence[Term]) -> list[Term] | None:
    """The arguments in the types that a function takes; None if they are others."""
    if len(takes) == 1 and takes[0].endswith("+"):
        return _both(takes[0][:-1], terms) if len(terms) == 2 else None
    if takes and takes[-1].endswith("*"):
        if len(terms) < len(takes):
            return None
        last = takes[-1][:-1]
        takes = [*takes[:-1], *[last] * (len(terms) - len(takes) + 1)]
    if len(takes) != len(terms):
        return None
    fitted = [_fit_one(kind, term) for kind, term in zip(takes, terms, strict=True)]
    if any(term is None for term in fitted):
        return None
    found = [term for term in fitted if term is not None]
    alike = unified([term for kind, term in zip(takes, found, strict=True) if kind == "same"])
    if alike is None:
        return None
    them = iter(alike)
    return [next(them) if kind == "same" else term for kind, term in zip(takes, found, strict=True)]


def _both(kind: str, terms: Sequence[Term]) -> list[Term] | None:
    """Two numbers in their common type, if that is of the kind."""
    alike = unified(terms)
    if alike is None or not is_number(alike[0].type):
        return None
    right = is_integer(alike[0].type) if kind == "int" else is_floating(alike[0].type)
    return alike if right else None


def unified(terms: Sequence[Term]) -> list[Term] | None:
    """The terms in the one type that holds them all."""
    kind: DataType | None = VOID
    for term in terms:
        kind = None if kind is None else common(kind, term.type)
    if kind is None:
        return None
    found = [cast(term, kind) for term in terms]
    return None if any(term is None for term in found) else [term for term in found if term is not None]


def _fit_one(kind: str, term: Term) -> Term | None:
    have = term.type
    if kind.startswith("'"):
        choices = re.findall(r"'([^']*)'", kind)
        given = term.literal if have == STRING and term.is_literal else None
        if isinstance(given, str) and (given in choices or given.upper() in choices):
            return Term(text(given.lower()), STRING, literal=given)
        return None
    if kind in ("digits", "count"):
        least, most = (0, _MOST_DIGITS) if kind == "digits" else (1, 2**31 - 1)
        number = term.literal if is_integer(have) and term.is_literal else None
        if isinstance(number, int) and least <= number <= most:
            return Term(str(number), INT, literal=number)
        return None
    if kind == "same" or (kind == "any" and comparable(have)):
        return term
    wanted = _wanted(kind, term)
    return None if wanted is None else cast(term, wanted)


def _wanted(kind: str, term: Term) -> DataType | None:
    """The type in which an argument of a kind is taken; None if it is not of the kind."""
    have = term.type
    if kind == "arr":
        return have if isinstance(have, Array) else None
    if kind in ("int", "dec", "flt"):
        checks = {"int": is_integer, "dec": lambda one: isinstance(one, Decimal), "flt": is_floating}
        return have if checks[kind](have) else None
    one_of: dict[str, DataType] = {"str": STRING, "bin": BINARY, "bool": BOOLEAN, "f64": DOUBLE}
    if kind in one_of:
        return one_of[kind] if have in (one_of[kind], VOID) else None
    if kind in ("i32", "big"):
        wide = have == BIGINT and kind == "i32"
        return {"i32": INT, "big": BIGINT}[kind] if (is_integer(have) and not wide) or have == VOID else None
    if kind == "dbl":
        return DOUBLE if is_number(have) or have == VOID else None
    if kind in ("date", "ts"):
        written = have == STRING and term.is_literal
        return {"date": DATE, "ts": TIMESTAMP}[kind] if is_moment(have) or written or have == VOID else None
    return None


def boolean(term: Term, what: str) -> Term:
    """The term as a condition."""
    found = cast(term, BOOLEAN) if term.type == VOID else term
    if found is None or found.type != BOOLEAN:
        raise BadQuery(f"{what} must be true or false, and this is of type {term.type.ddl()}")
    return found
