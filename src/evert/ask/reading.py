"""A text of Spark SQL as sqlglot's tree, with nothing of it lost.

sqlglot reads some of Spark's texts in quotes differently, so they are read here, and written again in a way that
has one meaning. Every function stays a call by the name that the user wrote.
"""

from __future__ import annotations

import re
from typing import Any

from evert.errors import BadQuery, BadStatement
from evert.plan.tokens import Token, scan

_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))|''|\"\"", re.DOTALL)
_LONGEST = 100_000
_WITH_WORDS = ("CAST", "TRY_CAST", "EXTRACT", "SUBSTRING", "TRIM")
"""The functions whose arguments words may stand between."""


def read(text: str) -> Any:
    """The tree of one query."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    if len(text) > _LONGEST:
        raise BadQuery(f"the query has {len(text):,} characters, and {_LONGEST:,} are the most")
    plain = _rewritten(text)
    try:
        statements = [one for one in sqlglot.parse(plain, read=_dialect()) if one is not None]
    except RecursionError:
        raise BadQuery("the query is nested too deeply", hint="use WITH, or fewer parentheses") from None
    except SqlglotError as error:
        raise _unreadable(error) from None
    if len(statements) != 1:
        many = f"{len(statements)} statements were given" if statements else "the query is empty"
        raise BadQuery(many, hint="ask one SELECT")
    return statements[0]


def _rewritten(text: str) -> str:
    """The same query with every text in quotes written in the one way that is surely understood."""
    try:
        tokens = scan(text)
    except BadStatement as error:
        raise BadQuery(error.message, hint=error.hint) from None
    pieces: list[str] = []
    at = 0
    for token in tokens:
        if token.text == "\0":
            raise BadQuery("the query has a character 0")
        if token.kind == "text":
            pieces += [_blank(text[at : token.start]), _quoted(_value(token))]
        else:
            pieces += [_blank(text[at : token.start]), token.text]
        at = token.end
    return "".join(pieces)


def _blank(between: str) -> str:
    """What lies between two tokens: spaces and comments, of which sqlglot need not see anything but the lines."""
    return "".join("\n" if one == "\n" else " " for one in between)


def _value(token: Token) -> str:
    """What Spark makes of a text in quotes."""
    if token.text[0] in "rR":
        return token.text[2:-1]
    quote = token.text[0]

    def unescaped(found: re.Match[str]) -> str:
        if not found[0].startswith("\\"):
            return quote if found[0][0] == quote else found[0]
        if found[1] or found[2]:
            return chr(int(found[1] or found[2], 16))
        if found[3]:
            return chr(int(found[3], 8))
        return _ESCAPES.get(found[4], found[4])

    return _ESCAPE.sub(unescaped, token.text[1:-1])


def _quoted(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _unreadable(error: Exception) -> BadQuery:
    found = getattr(error, "errors", None) or [{}]
    first = found[0]
    what = str(first.get("description") or str(error).splitlines()[0]).rstrip(".")
    near = first.get("highlight")
    where = f"line {first['line']}, column {first['col']}: " if first.get("line") else ""
    message = f"{where}{what[:1].lower()}{what[1:]}" + (f" (near {near!r})" if near else "")
    return BadQuery(f"the query cannot be read: {message}", line=first.get("line"), at=first.get("col"))


_made: list[Any] = []


def _dialect() -> Any:
    """Spark's dialect, in which a call of a function is nothing but that."""
    if not _made:
        from sqlglot.dialects.spark import Spark

        class Asked(Spark):
            class Parser(Spark.Parser):
                FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
                FUNCTION_PARSERS: dict[str, Any] = {  # noqa: RUF012
                    name: Spark.Parser.FUNCTION_PARSERS[name] for name in _WITH_WORDS
                }
                NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012

        _made.append(Asked)
    return _made[0]
