"""Endpoints that read: a view's rows and one row of it, questions, and the log of a topic."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.responses import Response

from evert.database import Database
from evert.errors import BadQuery, NotFound
from evert.log.topic import POSITION as POSITION_COLUMN
from evert.schema.rows import from_values
from evert.schema.types import quote_name
from evert.serve.answers import FORMAT, POSITION, answer, wanted
from evert.serve.bodies import ARROW, CSV, JSON, json_body
from evert.serve.http import Call, Endpoint, Param, json_answer
from evert.values import as_json
from evert.views.reader import Opened, Seen, key_arrays
from evert.views.view import View

_FORMATS = (JSON, CSV, ARROW)
_AT = Param("at", "the rows as they were at this position", "number")
_AT_LEAST = Param("at_least", "wait until the view has reached this position", "number")
_COLUMNS = {"type": "array", "items": {"type": "object"}}
_LIST = {
    "type": "object",
    "required": ["position", "columns", "rows"],
    "properties": {"position": {"type": "integer"}, "columns": _COLUMNS, "rows": _COLUMNS},
}


async def view(call: Call) -> Response:
    wanted(call)
    await _reached(call)
    rows, position, told = await call.run(_view, call)
    return answer(call, rows, position, told)


async def _reached(call: Call) -> None:
    """Wait for `at_least`, if it is asked for."""
    position = call.query["at_least"]
    if position is not None:
        await call.run(View(call.db.reader, call.path("view")).wait, position, call.server.limits.max_wait)


def _view(call: Call) -> tuple[pa.Table, int, dict[str, Any]]:
    name, asked = call.path("view"), call.query
    found = View(call.db.reader, call.db.reader.definition(name).name)
    told: dict[str, Any] = {"view": found.name}
    if any(asked[clause] is not None for clause in ("where", "order", "columns")):
        sql = _select(found.name, asked)
        limits = call.server.limits
        answered = call.db.ask(
            sql,
            at=asked["at"],
            max_seconds=limits.max_seconds,
            max_rows=limits.max_rows,
            visible=call.sees,
        )
        if asked["where"] is None and asked["at"] is None:
            told["total"] = found.count()
        return answered.table, answered.positions[found.name], told
    got = found.answer() if asked["at"] is None else found.at(asked["at"]).answer()
    rows = got.rows if asked["limit"] is None else got.rows.slice(0, asked["limit"])
    return rows, got.position, told | {"total": got.rows.num_rows}


def _select(view: str, asked: dict[str, Any]) -> str:
    """The question that the parameters are; each clause on lines of its own: no comment swallows the next."""
    from sqlglot import exp

    from evert.ask.reading import read

    parts = [f"SELECT\n{asked['columns'] or '*'}\nFROM {quote_name(view)}"]
    if asked["where"] is not None:
        parts.append(f"WHERE (\n{asked['where']}\n)")
    if asked["order"] is not None:
        parts.append(f"ORDER BY\n{asked['order']}\n")
    if asked["limit"] is not None:
        parts.append(f"LIMIT {asked['limit']}")
    sql = "\n".join(parts)
    tree = read(sql)
    clauses = {name for name, value in tree.args.items() if value}
    if not isinstance(tree, exp.Select) or clauses - {
        "expressions",
        "from",
        "from_",
        "where",
        "order",
        "limit",
    }:
        raise BadQuery(
            "where, order and columns are expressions of the view's columns", hint="POST /ask takes more"
        )
    return sql


async def row(call: Call) -> Response:
    """A view that has been opened is looked at here: that takes less time than to go to a thread."""
    name, reader, at_least = call.path("view"), call.db.reader, call.query["at_least"] or 0
    opened = reader.known(name, at_least)
    if opened is None:
        await _reached(call)
        here = reader.is_open(name)
        opened = reader.recent(name, at_least) if here else await call.run(reader.recent, name, at_least)
    if opened.instead is None:
        found = _row(call.db, opened, call.query["key"])
    else:
        found = await call.run(_row, call.db, opened, call.query["key"])
    return json_answer(found, headers={POSITION: str(found["position"])})


def _row(db: Database, opened: Opened, texts: list[str]) -> dict[str, Any]:
    view = opened.seen.view
    rows = db.reader.look_up(opened, _key(opened.seen, texts))
    if not rows:
        shown = ", ".join(texts)
        raise NotFound(f"{view.name} has no row of the key {shown}", view=view.name, position=view.position)
    return {"view": view.name, "position": view.position, "row": as_json(rows[0], view.schema)}


def _key(seen: Seen, texts: list[str]) -> list[pa.Array]:
    """The values of a key, from their texts."""
    view = seen.view
    if view.key is None or len(texts) != len(view.key):
        return key_arrays(view, texts)  # which says what is wrong
    cells = dict(zip(view.key, texts, strict=True))
    schema = seen.key_schema
    return from_values(schema, schema.text_plan, [cells], topic=view.name).columns


async def ask(call: Call) -> Response:
    wanted(call)
    asked = await json_body(call)
    limits = call.server.limits
    begun = time.perf_counter()
    got = await call.run(
        call.db.ask,
        asked["sql"],
        at=asked.get("at"),
        max_seconds=min(asked.get("max_seconds", limits.max_seconds), limits.max_seconds),
        max_rows=min(asked.get("max_rows", limits.max_rows), limits.max_rows),
        visible=call.sees,
    )
    told = {"positions": dict(got.positions), "seconds": round(time.perf_counter() - begun, 6)}
    return answer(call, got.table, got.position, told)


async def log(call: Call) -> Response:
    wanted(call)
    rows, position = await call.run(_log, call)
    return answer(call, rows, position, {"topic": call.path("topic")})


def _log(call: Call) -> tuple[pa.Table, int]:
    """Rows of a topic after a position, whole commits, until there are as many as asked for."""
    topic = call.db.definition(call.path("topic"))
    after, limit = call.query["after"] or 0, call.query["limit"]
    most = call.server.limits.max_rows if limit is None else min(limit, call.server.limits.max_rows)
    found: list[pa.RecordBatch] = []
    last = after
    for batch in call.db.read([topic.name], after=after):
        found.append(batch.rows)
        last = batch.last
        if sum(one.num_rows for one in found) >= max(most, 1):
            break
    if not found:
        return topic.schema.arrow.empty_table(), last
    rows = pa.Table.from_batches(found)
    if rows.num_rows > most:
        last = rows.column(POSITION_COLUMN)[max(most, 1) - 1].as_py()
        rows = rows.filter(pc.less_equal(rows.column(POSITION_COLUMN), last))
    return rows, last


ENDPOINTS = (
    Endpoint(
        "GET",
        "/views/{view}",
        "The rows of a view.",
        view,
        ("read", "view"),
        query=(
            Param("where", "a condition in Spark SQL"),
            Param("order", "what to sort by, in Spark SQL"),
            Param("columns", "what to select, in Spark SQL"),
            Param("limit", "at most so many rows", "number"),
            _AT,
            _AT_LEAST,
            FORMAT,
        ),
        gives=_FORMATS,
        answer=_LIST,
    ),
    Endpoint(
        "GET",
        "/views/{view}/row",
        "The row of a key.",
        row,
        ("read", "view"),
        query=(
            Param("key", "the value of a column of the key, in the key's order", many=True, required=True),
            _AT_LEAST,
        ),
        answer={
            "type": "object",
            "required": ["view", "position", "row"],
            "properties": {
                "view": {"type": "string"},
                "position": {"type": "integer"},
                "row": {"type": "object"},
            },
        },
    ),
    Endpoint(
        "POST",
        "/ask",
        "Any SELECT over topics and views, answered at one position.",
        ask,
        query=(FORMAT,),
        takes=(JSON,),
        body={
            "type": "object",
            "required": ["sql"],
            "additionalProperties": False,
            "properties": {
                "sql": {"type": "string"},
                "at": {"type": "integer", "minimum": 0},
                "max_seconds": {"type": "number", "exclusiveMinimum": 0},
                "max_rows": {"type": "integer", "minimum": 0},
            },
        },
        gives=_FORMATS,
        answer=_LIST,
    ),
    Endpoint(
        "GET",
        "/topics/{topic}/rows",
        "The log of a topic after a position.",
        log,
        ("read", "topic"),
        query=(
            Param("after", "only rows after this position", "number"),
            Param("limit", "end with the commit that has reached so many rows", "number"),
            FORMAT,
        ),
        gives=_FORMATS,
        answer=_LIST,
    ),
)
