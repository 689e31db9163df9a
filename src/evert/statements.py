"""Statements of SQL, done to an open database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import singledispatch
from typing import TYPE_CHECKING, Any

from evert.errors import BadStatement, EvertError, NotFound, Refused, ViewExists
from evert.log.names import folded
from evert.plan.statements import (
    FOREVER,
    CreateTopic,
    CreateView,
    Describe,
    Drop,
    Explain,
    Query,
    Refresh,
    Show,
    Statement,
    parse,
)
from evert.schema.from_arrow import type_from_arrow
from evert.size import size_of

if TYPE_CHECKING:
    import pyarrow as pa

    from evert.database import Database

_SIZES = {"retain_bytes", "max_bytes"}
_SQL_NAMES = {"stream": "STREAM", "table": "TABLE", "view": "MATERIALIZED VIEW"}


@dataclass(frozen=True)
class Result:
    """What a statement did: a sentence, and for those that list something, rows."""

    kind: str
    message: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)


def run_statements(db: Database, text: str, *, source: str | None = None) -> list[Result]:
    """Run all statements of a text, in order. Nothing is done if one of them cannot be read; one that fails
    ends the run, and those before it stay done.
    """
    return list(each_result(db, text, source=source))


def each_result(db: Database, text: str, *, source: str | None = None) -> Iterator[Result]:
    """The same, each result as soon as it is there. `source` names the file that the text is from."""
    statements = parse(text, source)
    for statement in statements:
        try:
            result = run(statement, db)
        except EvertError as error:
            raise _located(error, statement, source, alone=len(statements) == 1) from error.__cause__
        yield result


@singledispatch
def run(statement: Statement, db: Database) -> Result:
    """Run one statement."""
    raise AssertionError(f"nobody runs {type(statement).__name__}")


@run.register(CreateTopic)
def _create_topic(statement: CreateTopic, db: Database) -> Result:
    name, kind = statement.name, statement.kind
    if statement.if_not_exists and _kind(db, name) is not None:
        return Result(f"create_{kind}", f"{name} is there already")
    options = {
        option: size_of(value) if option in _SIZES and isinstance(value, str) else value
        for option, value in statement.options.items()
    }
    make: Any = db.stream if kind == "stream" else db.table
    make(name, statement.schema, key=statement.key or None, **options)
    topic = db.definition(name)
    return Result(f"create_{kind}", f"{topic.name} is a {kind} of {topic.schema.ddl()}")


@run.register(CreateView)
def _create_view(statement: CreateView, db: Database) -> Result:
    if statement.if_not_exists and _kind(db, statement.name) == "view":
        return Result("create_view", f"{statement.name} is there already")
    options: dict[str, Any] = {
        "key": statement.key,
        "group": statement.group,
        "replace": statement.replace,
        "hold": statement.hold,
        "comment": statement.comment,
    }
    if statement.refresh is not None:
        options["refresh"] = statement.refresh
    if statement.emit is not None:
        options["emit"] = statement.emit
    if statement.history is not None:
        options["history"] = None if statement.history == FOREVER else statement.history
    try:
        view = db.view(statement.name, statement.query.text, **options)
    except ViewExists as error:
        error.hint = "replace it with CREATE OR REPLACE MATERIALIZED VIEW: the new one is built beside it"
        raise
    new = [one for one in db.status() if one.replacing and one.name == view.name]
    if statement.replace and new:
        then = f", and waits for `evert view switch {view.name}`" if any(one.held for one in new) else ""
        built = f"the new {view.name} is built beside the old one by the next refresh"
        return Result("create_view", built + then)
    return Result("create_view", f"{view.name} is a view, {_spoken_state(view)}")


@run.register(Drop)
def _drop(statement: Drop, db: Database) -> Result:
    kind = _kind(db, statement.name)
    if kind is None:
        if statement.if_exists:
            return Result("drop", f"there is no {statement.kind} {statement.name}")
        raise _unknown(db, statement.name)
    if kind != statement.kind:
        raise Refused(
            f"{statement.name} is a {kind}, not a {statement.kind}",
            hint=f"write DROP {_SQL_NAMES[kind]} {statement.name}",
        )
    db.drop(statement.name)
    return Result("drop", f"the {kind} {statement.name} is gone")


@run.register(Show)
def _show(statement: Show, db: Database) -> Result:
    if statement.what == "views":
        views = [
            (view.name, view.state, view.position, view.group, ", ".join(view.key or ()) or None)
            for view in db.views.values()
        ]
        return _listed("views", ("view", "state", "position", "group", "key"), views)
    topics = [
        (topic.name, topic.kind, ", ".join(topic.key) or None, topic.schema.ddl())
        for topic in db.log.topics().values()
        if statement.what in ("topics", f"{topic.kind}s")
    ]
    return _listed(statement.what, ("topic", "kind", "key", "columns"), topics)


@run.register(Describe)
def _describe(statement: Describe, db: Database) -> Result:
    kind = _kind(db, statement.name)
    if kind is None:
        raise _unknown(db, statement.name)
    if kind == "view":
        view = db.views[_named(db, statement.name)]
        said = f"{view.name} is a view, {_spoken_state(view)}"
        columns = view.columns
        if columns is None:
            return Result("describe", said)
        return _columns(said, *_of_arrow(columns), view.key or ())
    topic = db.definition(statement.name)
    types = [(column.name, column.type.ddl()) for column in topic.schema.columns]
    nullable = [column.nullable and column.name not in topic.key for column in topic.schema.columns]
    return _columns(f"{topic.name} is a {topic.kind}", types, nullable, topic.key)


@run.register(Explain)
def _explain(statement: Explain, db: Database) -> Result:
    target = statement.target
    return Result("explain", str(db.explain(target.text if isinstance(target, Query) else target)))


@run.register(Refresh)
def _refresh(statement: Refresh, db: Database) -> Result:
    position = db.refresh()
    return Result("refresh", f"all views are at position {position}")


def _listed(what: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Result:
    return Result("show", "" if rows else f"there are no {what} yet", columns, rows)


def _columns(
    said: str, types: list[tuple[str, str]], nullable: list[bool], key: tuple[str, ...] | list[str]
) -> Result:
    rows = [
        (name, kind, "yes" if may else "no", "yes" if name in key else "no")
        for (name, kind), may in zip(types, nullable, strict=True)
    ]
    return Result("describe", said, ("column", "type", "nullable", "key"), rows)


def _of_arrow(schema: pa.Schema) -> tuple[list[tuple[str, str]], list[bool]]:
    """Names and types of a view's columns, in Spark's words where it has some."""
    types = []
    for column in schema:
        try:
            types.append((column.name, type_from_arrow(column.type, column.name).ddl()))
        except Refused:
            types.append((column.name, str(column.type)))
    return types, [column.nullable for column in schema]


def _spoken_state(view: Any) -> str:
    if view.state == "live":
        return f"live at position {view.position}"
    if view.state == "stopped":
        return f"stopped at position {view.position}"
    return "built by the next refresh" if view.state == "building" else str(view.state)


def _kind(db: Database, name: str) -> str | None:
    """What has this name: a stream, a table, a view, or nothing."""
    wanted = folded(name)
    for topic in db.log.topics().values():
        if folded(topic.name) == wanted:
            return topic.kind
    return "view" if any(folded(view) == wanted for view in db.views) else None


def _named(db: Database, name: str) -> str:
    """The name of a view as it was defined."""
    return next(view for view in db.views if folded(view) == folded(name))


def _unknown(db: Database, name: str) -> NotFound:
    known = [*db.log.topics(), *db.views]
    close = get_close_matches(name, known, n=1)
    return NotFound(
        f"no topic and no view is named {name}",
        hint=f"did you mean {close[0]}?" if close else "see them with SHOW TOPICS and SHOW VIEWS",
        name=name,
    )


def _located(error: EvertError, statement: Statement, source: str | None, *, alone: bool) -> EvertError:
    """The error with its place in the text."""
    if isinstance(error, BadStatement):
        return error
    where = [source] if source else []
    line, query = error.details.get("line"), _query_of(statement)
    if line is not None and query is not None:
        where.extend(_place_in_text(error.details, query))
    elif line is None:
        error.details["line"] = statement.line
        if source or not alone:
            where.append(f"line {statement.line}")
    if source:
        error.details["file"] = source
    if where:
        error.message = f"{', '.join(where)}: {error.message}"
        error.args = (error.message,)
    return error


def _query_of(statement: Statement) -> Query | None:
    found = getattr(statement, "query", None) or getattr(statement, "target", None)
    return found if isinstance(found, Query) else None


def _place_in_text(details: dict[str, Any], query: Query) -> list[str]:
    """Spark counts lines from the query's begin, and characters from 0: make it a place in the whole text."""
    line, after = details["line"], details.pop("at", None)
    details["line"] = query.line + line - 1
    if after is None:
        return [f"line {details['line']}"]
    details["column"] = after + (query.column if line == 1 else 1)
    return [f"line {details['line']}", f"column {details['column']}"]
