"""The words around a query: statements of SQL, read without Spark.

    CREATE STREAM | TABLE | MATERIALIZED VIEW     DROP STREAM | TABLE | MATERIALIZED VIEW
    SHOW STREAMS | TABLES | VIEWS | TOPICS        DESCRIBE name
    EXPLAIN MATERIALIZED VIEW name | query        REFRESH

The query itself is not looked into: it goes to Spark as it was written, with the place where it stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from evert.plan.parser import Parser
from evert.plan.tokens import Token, Unfinished, place, scan

Value = str | int | float | bool | None
Relation = Literal["stream", "table", "view"]
Shown = Literal["streams", "tables", "views", "topics"]

FOREVER = "FOREVER"
_RELATIONS = "STREAM, TABLE or MATERIALIZED VIEW"
_QUERY_WORDS = {"SELECT", "WITH", "FROM", "VALUES"}
_NO_QUERIES = "queries over views and topics are not answered yet: make it a view"
_WITH_VIEW = "CREATE MATERIALIZED VIEW name AS SELECT …; then `evert view show name`"


@dataclass(frozen=True)
class Query:
    """A query as it was written, and the line and column of the whole text where it begins."""

    text: str
    line: int = 1
    column: int = 1


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Something to do; the line is where it begins in the text."""

    line: int = 1


@dataclass(frozen=True, kw_only=True)
class CreateTopic(Statement):
    """`CREATE STREAM` or `CREATE TABLE`. The schema begins with as many empty lines and spaces as stand before
    it in the text, so that an error in it names the right place.
    """

    kind: Literal["stream", "table"]
    name: str
    schema: str
    key: tuple[str, ...] = ()
    options: Mapping[str, Value] = field(default_factory=dict)
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class CreateView(Statement):
    """`CREATE MATERIALIZED VIEW`; what is not mentioned is None."""

    name: str
    query: Query
    key: tuple[str, ...] | None = None
    group: str | None = None
    history: str | None = None
    refresh: str | None = None
    emit: str | None = None
    comment: str | None = None
    replace: bool = False
    hold: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class Drop(Statement):
    kind: Relation
    name: str
    if_exists: bool = False


@dataclass(frozen=True, kw_only=True)
class Show(Statement):
    what: Shown


@dataclass(frozen=True, kw_only=True)
class Describe(Statement):
    name: str


@dataclass(frozen=True, kw_only=True)
class Explain(Statement):
    """`EXPLAIN` of a view by its name, or of a query."""

    target: str | Query


@dataclass(frozen=True, kw_only=True)
class Refresh(Statement):
    pass


def parse(text: str, source: str | None = None) -> list[Statement]:
    """The statements of a text, separated by `;`. All are read before any is run; `source` names the file.

    >>> parse("SHOW VIEWS; DROP TABLE IF EXISTS users")
    [Show(line=1, what='views'), Drop(line=1, kind='table', name='users', if_exists=True)]
    """
    return [_statement(Parser(text, tokens, source)) for tokens in _split(scan(text, source))]


def finished(text: str) -> bool:
    """Whether a text that is being typed ends a statement: its last token is `;`.

    >>> finished("SHOW"), finished("SHOW VIEWS; -- all"), finished("SHOW '; ")
    (False, True, False)
    """
    try:
        tokens = scan(text)
    except Unfinished:
        return False
    return bool(tokens) and tokens[-1].text == ";"


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    found: list[Token] = []
    for token in tokens:
        if token.kind == "sign" and token.text == ";":
            if found:
                yield found
            found = []
        else:
            found.append(token)
    if found:
        yield found


def _statement(words: Parser) -> Statement:
    first = words.peek()
    line = place(words.text, first.start)[0]
    if first.upper in _REFUSED:
        reason, hint = _REFUSED[first.upper]
        raise words.failed(reason, hint=hint)
    if first.upper in _QUERY_WORDS or first.text == "(":
        raise words.failed(_NO_QUERIES, hint=_WITH_VIEW)
    for word, read in _READ.items():
        if words.take(word):
            statement = read(words, line)
            words.end()
            return statement
    raise words.unexpected("a statement", choices=tuple(_READ))


def _create(words: Parser, line: int) -> Statement:
    replace = words.take("OR", "REPLACE")
    if words.take("MATERIALIZED"):
        words.need("VIEW")
        return _create_view(words, line, replace)
    if words.is_next("VIEW"):
        raise words.failed(
            "every view is kept up to date here", hint="write CREATE MATERIALIZED VIEW name AS SELECT …"
        )
    later = next((word for word in ("SOURCE", "SINK") if words.is_next(word)), None)
    if later:
        raise words.failed(f"CREATE {later} comes in a later version", hint="`evert append` takes rows in")
    if not (words.is_next("STREAM") or words.is_next("TABLE")):
        raise words.unexpected(_RELATIONS, choices=("STREAM", "TABLE", "MATERIALIZED"))
    if replace:
        raise words.failed(
            "a topic cannot be replaced: its rows would be lost",
            hint="change it with `evert topics alter`, or DROP it first",
        )
    return _create_topic(words, line, "stream" if words.take("STREAM") else "table")


def _create_topic(words: Parser, line: int, kind: Literal["stream", "table"]) -> CreateTopic:
    if kind == "table":
        words.need("TABLE")
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    name = words.name(kind)
    if words.is_next("AS"):
        raise words.failed(
            f"a {kind} holds rows that are appended, not the result of a query", hint=_WITH_VIEW
        )
    opening = words.peek()
    words.need("(", wanted="the columns in parentheses")
    schema, key = words.columns()
    if kind == "stream" and key:
        raise words.failed(
            "a stream keeps every row, so it has no PRIMARY KEY",
            at=opening,
            hint="make it a TABLE; or write KEY (…) behind the columns to keep rows of a key in one partition",
        )
    if kind == "table" and not key:
        raise words.failed(
            f"the table {name} has no key", at=opening, hint="end its columns with PRIMARY KEY (…)"
        )
    if kind == "stream" and words.take("KEY"):
        key = words.names("a column of the key")
    said = _time(words, kind)
    if words.take("COMMENT"):
        said["comment"] = words.quoted(f"what the {kind} is, as in 'what visitors do'")
    at = words.peek()
    options = words.options() if words.take("WITH") else {}
    for twice in sorted(options.keys() & said.keys()):
        raise words.failed(f"the option {twice} is given twice", at=at)
    options |= said
    return CreateTopic(
        line=line, kind=kind, name=name, schema=schema, key=key, options=options, if_not_exists=if_not_exists
    )


def _time(words: Parser, kind: Literal["stream", "table"]) -> dict[str, Value]:
    """`[EVENT TIME column [LATENESS INTERVAL …]] [SOURCE column] [OCCURRED column SENT column [RECEIVED column]]`:
    when an event happened, who sent it, and whose clock showed what. Of a table only the first.
    """
    found: dict[str, Value] = {}
    if words.take("EVENT", "TIME"):
        found["event_time"] = words.name("column")
        if kind == "stream" and words.take("LATENESS"):
            words.need("INTERVAL")
            found["lateness"] = words.interval()
    if kind == "stream" and words.take("SOURCE"):
        found["source"] = words.name("column")
    if kind == "stream" and words.take("OCCURRED"):
        found["occurred"] = words.name("column")
        words.need("SENT", wanted="SENT and a column")
        found["sent"] = words.name("column")
        if words.take("RECEIVED"):
            found["received"] = words.name("column")
    return found


def _create_view(words: Parser, line: int, replace: bool) -> CreateView:
    at = words.peek()
    if_not_exists = words.take("IF", "NOT", "EXISTS")
    if replace and if_not_exists:
        raise words.failed("OR REPLACE and IF NOT EXISTS exclude each other", at=at)
    name = words.name("view")
    key: tuple[str, ...] | None = None
    group: str | None = None
    history: str | None = None
    refresh: str | None = None
    emit: str | None = None
    comment: str | None = None
    hold = False
    while not words.take("AS"):
        if key is None and words.take("KEY"):
            key = words.names("a column of the key")
        elif group is None and words.take("GROUP"):
            group = words.name("group")
        elif history is None and words.take("HISTORY"):
            history = (
                FOREVER if words.take(FOREVER) else words.quoted("a duration, as in '7 days', or FOREVER")
            )
        elif refresh is None and words.take("REFRESH", "POLICY"):
            refresh = _policy(words)
        elif not hold and words.is_next("HOLD"):
            if not replace:
                raise words.failed(
                    "only a replacement can be held",
                    hint="write CREATE OR REPLACE MATERIALIZED VIEW, or leave HOLD out",
                )
            hold = words.take("HOLD")
        elif emit is None and words.take("EMIT"):
            emit = _emit(words)
        elif comment is None and words.take("COMMENT"):
            comment = words.quoted("what the view is, as in 'revenue by the minute'")
        else:
            missing = {
                "KEY": key,
                "GROUP": group,
                "HISTORY": history,
                "REFRESH POLICY": refresh,
                "EMIT": emit,
                "COMMENT": comment,
            }
            choices = [word for word, given in missing.items() if given is None]
            choices += ["HOLD"] if replace and not hold else []
            raise words.unexpected(
                f"{', '.join(choices)} or AS with the query" if choices else "AS with the query",
                choices=(*choices, "AS"),
            )
    return CreateView(
        line=line,
        name=name,
        query=_query(words),
        key=key,
        group=group,
        history=history,
        refresh=refresh,
        emit=emit,
        comment=comment,
        replace=replace,
        hold=hold,
        if_not_exists=if_not_exists,
    )


def _policy(words: Parser) -> str:
    for policy, spelled in (("auto", ("AUTO",)), ("strict", ("INCREMENTAL", "STRICT")), ("full", ("FULL",))):
        if words.take(*spelled):
            return policy
    raise words.unexpected("AUTO, INCREMENTAL STRICT or FULL", choices=("AUTO", "INCREMENTAL STRICT", "FULL"))


def _emit(words: Parser) -> str:
    for emit, spelled in (("changes", ("CHANGES",)), ("close", ("ON", "WINDOW", "CLOSE"))):
        if words.take(*spelled):
            return emit
    raise words.unexpected("CHANGES or ON WINDOW CLOSE", choices=("CHANGES", "ON WINDOW CLOSE"))


def _query(words: Parser) -> Query:
    text, at = words.rest("a query")
    return Query(text, *place(words.text, at))


def _drop(words: Parser, line: int) -> Drop:
    kind: Relation
    if words.take("STREAM"):
        kind = "stream"
    elif words.take("TABLE"):
        kind = "table"
    elif words.take("MATERIALIZED", "VIEW") or words.take("VIEW"):
        kind = "view"
    else:
        raise words.unexpected(_RELATIONS, choices=("STREAM", "TABLE", "MATERIALIZED"))
    if_exists = words.take("IF", "EXISTS")
    return Drop(line=line, kind=kind, name=words.name(kind), if_exists=if_exists)


def _show(words: Parser, line: int) -> Show:
    found: dict[str, Shown] = {
        "STREAMS": "streams",
        "TABLES": "tables",
        "VIEWS": "views",
        "TOPICS": "topics",
    }
    if words.take("MATERIALIZED"):
        words.need("VIEWS")
        return Show(line=line, what="views")
    for word, what in found.items():
        if words.take(word):
            return Show(line=line, what=what)
    raise words.unexpected("STREAMS, TABLES, VIEWS or TOPICS", choices=tuple(found))


def _describe(words: Parser, line: int) -> Describe:
    if words.peek(1).kind != "end" and not words.take("MATERIALIZED", "VIEW"):
        any(words.take(word) for word in ("STREAM", "TABLE", "VIEW"))
    return Describe(line=line, name=words.name("topic or view"))


def _explain(words: Parser, line: int) -> Explain:
    if words.take("MATERIALIZED", "VIEW") or words.take("VIEW"):
        return Explain(line=line, target=words.name("view"))
    if words.peek().upper in _QUERY_WORDS or words.is_next("("):
        return Explain(line=line, target=_query(words))
    raise words.unexpected("MATERIALIZED VIEW and a name, or a query", choices=("MATERIALIZED", "SELECT"))


def _refresh(words: Parser, line: int) -> Refresh:
    if words.is_next("MATERIALIZED", "VIEW") or words.is_next("VIEW"):
        raise words.failed("views are refreshed together, to one position", hint="write REFRESH")
    words.take("MATERIALIZED", "VIEWS")
    return Refresh(line=line)


_READ: dict[str, Callable[[Parser, int], Statement]] = {
    "CREATE": _create,
    "DROP": _drop,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
    "REFRESH": _refresh,
}
_REFUSED = {
    "INSERT": ("rows are not inserted with SQL", "`evert append TOPIC` takes JSON lines, CSV and Parquet"),
    "UPDATE": ("rows are not updated with SQL", "`evert append TABLE`: a row replaces that of the same key"),
    "DELETE": ("rows are not deleted with SQL", "`evert append TABLE --delete` takes the keys"),
    "MERGE": ("rows are not merged with SQL", "`evert append TABLE`: a row replaces that of the same key"),
    "ALTER": ("topics are not altered with SQL yet", "`evert topics alter TOPIC` changes schema and options"),
}
"""Statements that other databases have, and what to do here instead."""
