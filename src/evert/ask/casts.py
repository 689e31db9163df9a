"""Casts as Spark does them under ANSI rules: what does not fit is an error, fractions are cut.

Of a text that only one of the engines would read nothing is known: it is untested, and so refused.
"""

from __future__ import annotations

from evert.ask.terms import UNTESTED, Term, fail, made
from evert.ask.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    as_decimal,
    in_duckdb,
    is_floating,
    is_integer,
    is_moment,
    is_number,
)
from evert.schema.types import INTEGERS, Array, Atom, DataType, Decimal

_SPACES = "' ' || chr(9) || chr(10) || chr(11) || chr(12) || chr(13)"
_TRIMMED = f"trim({{0}}, {_SPACES})"
_NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
_LIKE_A_NUMBER = "[+-]?[0-9.][0-9.eE+-]*[dDfF]?|(?i)[+-]?(nan|inf|infinity)"
_DAY = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = "[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?"
_YEARS = "BETWEEN 1 AND 9999"


def cast(term: Term, to: DataType) -> Term | None:
    """The term as another type; None if that cast is not among those that are tested."""
    if term.type == to:
        return term
    if term.type == VOID:
        return Term(f"CAST(NULL AS {in_duckdb(to)})", to, literal=None) if in_duckdb(to) else None
    found = _template(term.type, to)
    if found is None:
        return None
    template, raises = found
    return made(template.format(term.sql, to=in_duckdb(to)), to, term, raises=raises)


def _template(kind: DataType, to: DataType) -> tuple[str, bool] | None:
    """How a value of one type becomes one of another, and whether that may fail."""
    if is_number(kind) and is_number(to):
        return _between_numbers(kind, to)
    if kind == BOOLEAN and (is_number(to) or to == STRING):
        return (
            ("CAST(CAST({0} AS INTEGER) AS {to})", True) if is_number(to) else ("CAST({0} AS VARCHAR)", False)
        )
    if is_number(kind) and to == BOOLEAN:
        return "({0} <> 0)", False
    if to == STRING:
        return _to_text(kind)
    if kind == STRING:
        return _from_text(to)
    if is_moment(kind) and is_moment(to):
        return _between_moments(kind, to)
    if kind == TIMESTAMP and to == BIGINT:
        return "CAST(floor(epoch_us({0}) / 1000000) AS BIGINT)", False
    if (
        isinstance(kind, Array)
        and isinstance(to, Array)
        and is_integer(kind.element)
        and is_integer(to.element)
    ):
        narrows = _template(kind.element, to.element)
        return ("CAST({0} AS {to})", True) if narrows else None
    return None


def _between_numbers(kind: DataType, to: DataType) -> tuple[str, bool] | None:
    if is_integer(kind):
        return "CAST({0} AS {to})", not _holds(to, kind)
    if isinstance(kind, Decimal):
        if is_floating(to):
            return "CAST(CAST({0} AS VARCHAR) AS {to})", False
        if is_integer(to):
            return "CAST(trunc({0}) AS {to})", True
        return "CAST({0} AS {to})", not _holds(to, kind)
    if is_integer(to):
        return "CAST(trunc({0}) AS {to})", True
    if to == DOUBLE:
        return "CAST({0} AS DOUBLE)", False
    return None


def _holds(to: DataType, kind: DataType) -> bool:
    """Whether every value of a type is one of another."""
    if is_floating(to):
        return True
    if isinstance(kind, Atom) and isinstance(to, Atom):
        return INTEGERS.index(to.name) >= INTEGERS.index(kind.name)
    if isinstance(to, Decimal):
        there = as_decimal(kind)
        return to.scale >= there.scale and to.precision - to.scale >= there.precision - there.scale
    return False


def _to_text(kind: DataType) -> tuple[str, bool] | None:
    if is_integer(kind) or isinstance(kind, Decimal):
        return "CAST({0} AS VARCHAR)", False
    if is_moment(kind):
        inner = "CAST({0} AS TIMESTAMP)" if kind == TIMESTAMP else "{0}"
        far = fail(f"{UNTESTED}the text of a year before 1 or after 9999")
        plain = f"CAST({inner} AS VARCHAR)"
        return f"CASE WHEN {{0}} IS NULL OR year({inner}) {_YEARS} THEN {plain} ELSE {far} END", True
    return None


def _from_text(to: DataType) -> tuple[str, bool] | None:
    if to == BINARY:
        return "encode({0})", False
    if to == BOOLEAN:
        word = f"lower({_TRIMMED})"
        return (
            f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {word} IN ('t', 'true', 'y', 'yes', '1') THEN true"
            f" WHEN {word} IN ('f', 'false', 'n', 'no', '0') THEN false"
            f" ELSE error('the text ''' || {{0}} || ''' cannot be cast to BOOLEAN') END",
            True,
        )
    if is_integer(to):
        return _read("[+-]?[0-9]+", f"CAST({_TRIMMED} AS {{to}})"), True
    if is_floating(to):
        number = f"{_NUMBER}([eE][+-]?[0-9]+)?|(?i)[+-]?(inf|infinity)|(?i)nan"
        return _read(number, f"CAST({_TRIMMED} AS {{to}})", _LIKE_A_NUMBER), True
    if isinstance(to, Decimal):
        return _read(_NUMBER, f"CAST({_TRIMMED} AS {{to}})", _LIKE_A_NUMBER), True
    if to == DATE:
        return _read(_DAY, f"CAST({_TRIMMED} AS DATE)", "[+-]?[0-9]+.*"), True
    if to in (TIMESTAMP, TIMESTAMP_NTZ):
        read = f"CAST(CAST({_TRIMMED} AS TIMESTAMP) AS {{to}})"
        return _read(f"{_DAY}([ T]{_TIME})?", read, "[+-]?[0-9].*|T?[0-9:.]+"), True
    return None


def _read(pattern: str, sql: str, perhaps: str | None = None) -> str:
    """Read a text of a pattern. One of the form `perhaps` might be read by Spark; any other is an error."""

    def matches(form: str) -> str:
        escaped = form.replace("{", "{{").replace("}", "}}")
        return f"regexp_full_match({_TRIMMED}, '{escaped}')"

    wrong = "error('the text ''' || {0} || ''' cannot be cast to {to}')"
    untested = f"error('{UNTESTED}reading ''' || {{0}} || ''' as {{to}}')"
    maybe = f" WHEN {matches(perhaps)} THEN {untested}" if perhaps else ""
    return f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {matches(pattern)} THEN {sql}{maybe} ELSE {wrong} END"


def _between_moments(kind: DataType, to: DataType) -> tuple[str, bool]:
    if to == DATE:
        inner = "CAST({0} AS TIMESTAMP)" if kind == TIMESTAMP else "{0}"
        return f"CAST({inner} AS DATE)", False
    if kind == DATE and to == TIMESTAMP:
        return "CAST(CAST({0} AS TIMESTAMP) AS TIMESTAMP WITH TIME ZONE)", True
    return "CAST({0} AS {to})", kind == DATE
