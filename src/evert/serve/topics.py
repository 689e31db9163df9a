"""Endpoints for topics: what there is, make, change, drop."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.responses import Response

from evert.errors import BadOption
from evert.log.topic import Topic
from evert.serve.bodies import JSON, json_body
from evert.serve.http import Call, Endpoint, json_answer

_TOPIC = {
    "type": "object",
    "required": ["name", "kind", "schema", "key"],
    "properties": {
        "name": {"type": "string"},
        "kind": {"type": "string"},
        "schema": {"type": "string"},
        "key": {"type": "array"},
        "partitions": {"type": "integer"},
        "options": {"type": "object"},
    },
}


def _told(topic: Topic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "kind": topic.kind,
        "schema": topic.schema.ddl(),
        "key": list(topic.key),
        "partitions": topic.partitions,
        "options": {name: value for name, value in asdict(topic.options).items() if value is not None},
    }


async def topics(call: Call) -> Response:
    found = await call.run(call.db.log.topics)
    return json_answer({"topics": [_told(one) for one in found.values() if call.sees(one.name)]})


async def topic(call: Call) -> Response:
    return json_answer(await call.run(_one, call))


def _one(call: Call) -> dict[str, Any]:
    handle = call.db.topic(call.path("topic"))
    return _told(handle.definition) | {"sizes": asdict(handle.sizes())}


async def create(call: Call) -> Response:
    asked = await json_body(call)
    kind, options = asked.get("kind", "stream"), asked.get("options", {})
    if kind not in ("stream", "table"):
        raise BadOption(f"a topic is a stream or a table, not a {kind!r}")
    if set(options) & {"name", "schema", "key", "partitions"}:
        raise BadOption("options are those of a topic", hint="schema, key and partitions stand beside them")
    make = call.db.stream if kind == "stream" else call.db.table
    more = {name: asked[name] for name in ("key", "partitions") if name in asked}
    if kind == "table" and "key" not in more:
        raise BadOption("a table needs a key")
    await call.run(make, call.path("topic"), asked["schema"], **more, **options)
    return json_answer(await call.run(_one, call))


async def alter(call: Call) -> Response:
    asked = await json_body(call)
    options = asked.get("options", {})
    if set(options) & {"name", "schema"}:
        raise BadOption("options are those of a topic", hint="the schema stands beside them")
    await call.run(call.db.alter, call.path("topic"), asked.get("schema"), **options)
    return json_answer(await call.run(_one, call))


async def drop(call: Call) -> Response:
    name = call.path("topic")
    await call.run(call.db.definition, name)
    await call.run(call.db.drop, name)
    return json_answer({"dropped": name})


ENDPOINTS = (
    Endpoint("GET", "/topics", "The topics.", topics),
    Endpoint(
        "GET", "/topics/{topic}", "A topic, and how much it holds.", topic, ("read", "topic"), answer=_TOPIC
    ),
    Endpoint(
        "PUT",
        "/topics/{topic}",
        "Make a stream or a table; fine if it is there with the same definition.",
        create,
        ("admin", "topic"),
        takes=(JSON,),
        body={
            "type": "object",
            "required": ["schema"],
            "additionalProperties": False,
            "properties": {
                "kind": {"type": "string", "enum": ["stream", "table"]},
                "schema": {"type": "string"},
                "key": {"type": "array", "items": {"type": "string"}},
                "partitions": {"type": "integer", "minimum": 1},
                "options": {"type": "object"},
            },
        },
        answer=_TOPIC,
    ),
    Endpoint(
        "PATCH",
        "/topics/{topic}",
        "Add nullable columns, widen numbers, change options.",
        alter,
        ("admin", "topic"),
        takes=(JSON,),
        body={
            "type": "object",
            "additionalProperties": False,
            "properties": {"schema": {"type": "string"}, "options": {"type": "object"}},
        },
        answer=_TOPIC,
    ),
    Endpoint("DELETE", "/topics/{topic}", "Remove a topic with all its rows.", drop, ("admin", "topic")),
)
