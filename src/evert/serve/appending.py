"""Endpoints that write: append and upsert, delete, markers, transactions, webhooks."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from starlette.responses import Response

from evert.errors import BadOption, Refused
from evert.log.topic import Topic
from evert.schema.schema import Schema
from evert.serve.bodies import FORMATS, JSON, body, content_type, json_body, of_json, rows, table
from evert.serve.http import Call, Endpoint, HttpError, Param, json_answer
from evert.topics import Stream, Table

Write = Callable[[Call, str, bytes, dict[str, Any]], tuple[int | None, int]]
HEADERS = (
    Param(
        "Request-Id", "the same id changes nothing the second time, and is answered with the first position"
    ),
    Param("Producer", "who numbers its batches with Sequence"),
    Param("Sequence", "the number of the producer's batch", "number"),
)
_WRITTEN = {
    "type": "object",
    "required": ["position", "rows"],
    "properties": {"position": {"type": ["integer", "null"]}, "rows": {"type": "integer"}},
}
_ROWS = {"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]}


def _once(call: Call) -> dict[str, Any]:
    """What makes a retry harmless."""
    sequence = call.header("sequence")
    return {
        "request_id": call.header("request-id") or None,
        "producer": call.header("producer") or None,
        "sequence": None if sequence is None else HEADERS[2].read([sequence]),
    }


async def _written(call: Call, write: Write) -> Response:
    """What a body's rows came to: the position, and how many they are."""
    kind, once = content_type(call), _once(call)
    async with body(call) as data:
        position, count = await call.run(write, call, kind, data, once)
    return json_answer({"position": position, "rows": count})


async def append(call: Call) -> Response:
    return await _written(call, _append)


def _append(call: Call, kind: str, data: bytes, once: dict[str, Any]) -> tuple[int | None, int]:
    topic = call.db.known(call.path("topic"))
    try:
        whole = rows(kind, data, topic)
    except Refused:
        now = call.db.definition(topic.name)
        if now == topic:
            raise
        whole = rows(kind, data, now)
    if topic.kind == "table":
        return Table(call.db, topic.name).upsert(whole, **once), whole.num_rows
    return Stream(call.db, topic.name).append(whole, **once), whole.num_rows


async def delete(call: Call) -> Response:
    return await _written(call, _delete)


def _delete(call: Call, kind: str, data: bytes, once: dict[str, Any]) -> tuple[int | None, int]:
    topic = call.db.definition(call.path("topic"))
    if topic.kind == "stream":
        raise Refused(f"{topic.name} is a stream: its rows are facts", topic=topic.name)
    keys = table(kind, data, _key(topic), topic.name, topic.key)
    return Table(call.db, topic.name).delete(keys, **once), keys.num_rows


def _key(topic: Topic) -> Schema:
    return Schema(tuple(topic.schema.column(name) for name in topic.key))


async def marker(call: Call) -> Response:
    asked = await json_body(call)
    try:
        before = datetime.fromisoformat(asked["before"])
    except ValueError as error:
        raise BadOption(f"before is no time: {error}") from None
    position = await call.run(call.db.no_more_before, call.path("topic"), before, source=asked.get("source"))
    return json_answer({"position": position})


async def transact(call: Call) -> Response:
    """Writes to several topics in one commit; the token must open all of them."""
    asked, once = await json_body(call), _once(call)
    for write in asked["writes"]:
        _check_write(write)
        if not call.caller.may("append", write["topic"]):
            raise HttpError(
                403, "forbidden", f"the token {call.caller.name} may not append to {write['topic']}"
            )
    position, count = await call.run(_transact, call, asked["writes"], once)
    return json_answer({"position": position, "rows": count})


def _check_write(write: Any) -> None:
    if (
        not isinstance(write, dict)
        or set(write) - {"topic", "rows", "delete"}
        or not isinstance(write.get("topic"), str)
    ):
        raise BadOption('a write is an object such as {"topic": "orders", "rows": [...], "delete": [...]}')


def _transact(call: Call, writes: list[dict[str, Any]], once: dict[str, Any]) -> tuple[int | None, int]:
    count = 0
    with call.db.transaction(**once) as tx:
        for write in writes:
            topic = call.db.definition(write["topic"])
            schema = topic.given if topic.kind == "stream" else topic.schema
            if "rows" in write:
                came = of_json(write["rows"], schema, topic.name, topic.key)
                (tx.append if topic.kind == "stream" else tx.upsert)(topic.name, came)
                count += came.num_rows
            if "delete" in write:
                went = of_json(write["delete"], _key(topic), topic.name, topic.key) if topic.key else None
                tx.delete(topic.name, went)
                count += 0 if went is None else went.num_rows
    return tx.position, count


async def hook(call: Call) -> Response:
    """What a service sends, if its signature is right; a delivery that comes again is kept once."""
    async with body(call) as data:
        found = await call.run(call.db.hooks.find, call.path("hook"))
        sent = found.delivery(call.request.headers, data, time.time())
        if sent is None:
            raise HttpError(401, "unauthorized", "the signature is wrong, missing or too old")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Refused("the body is not valid UTF-8") from None
        row = {"delivery": sent.id, "event": sent.event, "body": text}
        once = {"request_id": f"hook:{found.name}:{sent.id}"}
        position = await call.run(Stream(call.db, found.topic).append, row, **once)
    return json_answer({"position": position, "rows": 1})


_KEYS = "the keys of the rows that go, as objects"
ENDPOINTS = (
    Endpoint(
        "POST",
        "/topics/{topic}",
        "Append rows to a stream, or insert and replace rows of a table.",
        append,
        ("append", "topic"),
        headers=HEADERS,
        takes=FORMATS,
        body=_ROWS,
        answer=_WRITTEN,
    ),
    Endpoint(
        "DELETE",
        "/topics/{topic}/rows",
        f"Delete rows of a table: {_KEYS}.",
        delete,
        ("append", "topic"),
        headers=HEADERS,
        takes=FORMATS,
        body=_ROWS,
        answer=_WRITTEN,
    ),
    Endpoint(
        "POST",
        "/topics/{topic}/marker",
        "Promise that no event of a stream older than this will come.",
        marker,
        ("append", "topic"),
        takes=(JSON,),
        body={
            "type": "object",
            "required": ["before"],
            "additionalProperties": False,
            "properties": {"before": {"type": "string", "format": "date-time"}, "source": {}},
        },
        answer={"type": "object", "properties": {"position": {"type": ["integer", "null"]}}},
    ),
    Endpoint(
        "POST",
        "/transactions",
        "Write to several topics in one commit.",
        transact,
        headers=HEADERS,
        takes=(JSON,),
        body={
            "type": "object",
            "required": ["writes"],
            "additionalProperties": False,
            "properties": {
                "writes": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["topic"],
                        "additionalProperties": False,
                        "properties": {"topic": {"type": "string"}, "rows": _ROWS, "delete": _ROWS},
                    },
                }
            },
        },
        answer=_WRITTEN,
    ),
    Endpoint(
        "POST",
        "/hooks/{hook}",
        "Take what a service reports, if it is signed.",
        hook,
        ("nobody", ""),
        takes=("*/*",),
        answer=_WRITTEN,
    ),
)
