"""A term: a piece of DuckDB's SQL, and the type that Spark gives it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evert.schema.types import DataType

UNTESTED = "untested: "
"""How an error begins that says: of this value it is not known that both engines make the same."""

NO_LITERAL = object()


@dataclass(frozen=True)
class Term:
    """`sql` can stand anywhere in a larger expression. `raises`: evaluating it may fail on some row."""

    sql: str
    type: DataType
    raises: bool = False
    literal: Any = NO_LITERAL
    aggregates: bool = False
    windows: bool = False

    @property
    def is_literal(self) -> bool:
        return self.literal is not NO_LITERAL


def made(sql: str, kind: DataType, *parts: Term, raises: bool = False) -> Term:
    """A term of other terms."""
    return Term(
        sql,
        kind,
        raises or any(part.raises for part in parts),
        aggregates=any(part.aggregates for part in parts),
        windows=any(part.windows for part in parts),
    )


def text(value: str) -> str:
    """A string literal of DuckDB.

    >>> print(text("it's"))
    'it''s'
    """
    if "\0" in value:
        pieces = [text(piece) for piece in value.split("\0")]
        return "(" + " || chr(0) || ".join(pieces) + ")"
    return "'" + value.replace("'", "''") + "'"


def name(value: str) -> str:
    """A quoted name of DuckDB."""
    return '"' + value.replace('"', '""') + '"'


def untouched(sql: str) -> str:
    """A floating point number as it is, in a form that no scan looks into."""
    return f"(-(-{sql}))"


def fail(message: str) -> str:
    """An expression that fails where it is evaluated."""
    return f"error({text(message)})"
