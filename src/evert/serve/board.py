"""Endpoints that tell how everything is: for the page, for programs, for monitors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response, StreamingResponse

from evert.database import Database
from evert.log.sizes import offsets, sizes
from evert.log.times import StreamTime
from evert.log.topic import Topic
from evert.serve.answers import columns_of
from evert.serve.changes import EVENTS, HEADERS, QUIET
from evert.serve.http import Call, Endpoint, json_answer
from evert.values import dumps
from evert.version import __version__
from evert.views import definition
from evert.views.definition import Definition
from evert.views.status import ViewStatus

RUNNER = "runner"
_AT_MOST = 0.25
_LOOK = 3.0


async def health(call: Call) -> Response:
    position = await call.run(lambda: call.db.position)
    return json_answer({"status": "ok", "position": position})


async def status(call: Call) -> Response:
    return json_answer(_seen(call, await call.run(board, call.db)))


async def status_changes(call: Call) -> Response:
    return StreamingResponse(_statuses(call), headers=HEADERS, media_type=EVENTS)


async def _statuses(call: Call) -> AsyncIterator[bytes]:
    """The status whenever it is another one; whether somebody keeps the views changes without a commit."""
    watch = call.server.watch
    last: dict[str, Any] = {}
    quiet = 0.0
    while not watch.over:
        version = watch.version
        told = await call.server.board.now(call)
        if told | {"now": None} != last | {"now": None}:
            yield f"event: status\ndata: {dumps(_seen(call, told))}\n\n".encode()
            last, quiet = told, 0.0
            await asyncio.sleep(_AT_MOST)
        if not await watch.moved(version, _LOOK):
            quiet += _LOOK
        if quiet >= QUIET:
            yield b": still here\n\n"
            quiet = 0.0


class Board:
    """The status as it was a moment ago, made once for all who follow it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._version = -1
        self._until = 0.0
        self._told: dict[str, Any] = {}

    async def now(self, call: Call) -> dict[str, Any]:
        async with self._lock:
            version = call.server.watch.version
            if version != self._version or time.monotonic() > self._until:
                self._told = await call.run(board, call.db)
                self._version, self._until = version, time.monotonic() + 1.0
            return self._told


def _seen(call: Call, told: dict[str, Any]) -> dict[str, Any]:
    """What of the board the caller may see."""
    return told | {
        kind: [one for one in told[kind] if call.sees(one["name"])] for kind in ("topics", "views")
    }


def board(db: Database) -> dict[str, Any]:
    """Everything at a glance: topics, views, and what reads what."""
    topics = db.log.topics()
    times = {one.topic: one for one in db.times()}
    with db.catalog.read() as tx:
        held = tx.one("SELECT until FROM leases WHERE name = ?", RUNNER)
        running = held is not None and held[0] > tx.now
        known = {(view.name, view.current): view for view in definition.all(tx)}
        found = [
            _topic(one, sizes(tx, one), sum(after for _, _, after in offsets(tx, one)), times.get(one.name))
            for one in topics.values()
        ]
    return {
        "version": __version__,
        "database": db.path.resolve().name,
        "position": db.position,
        "now": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "running": running,
        "topics": found,
        "views": [
            _view(one, known[one.name, not one.replacing])
            for one in db.status()
            if (one.name, not one.replacing) in known
        ],
    }


def _topic(topic: Topic, kept: Any, appended: int, time: StreamTime | None) -> dict[str, Any]:
    told = {
        "name": topic.name,
        "kind": topic.kind,
        "comment": topic.options.comment,
        "schema": topic.schema.ddl(),
        "key": list(topic.key),
        "rows": kept.rows,
        "appended": appended,
        "bytes": kept.bytes,
        "event_time": topic.options.event_time,
        "watermark": None,
        "late": 0,
        "dropped": 0,
        "sources": 0,
        "idle": 0,
        "rising": False,
    }
    if time is not None:
        mark = None if time.watermark is None else time.watermark.isoformat().replace("+00:00", "Z")
        counts = {name: getattr(time, name) for name in ("late", "dropped", "sources", "idle", "rising")}
        told |= {"watermark": mark} | counts
    return told


def _view(one: ViewStatus, view: Definition) -> dict[str, Any]:
    return asdict(one) | {
        "comment": view.options.comment,
        "emit": view.options.emit,
        "reads": list(dict.fromkeys(read.name for read in view.reads)),
        "query": view.query,
        "key": None if view.key is None else list(view.key),
        "columns": [] if view.columns is None else columns_of(view.columns),
    }


async def views(call: Call) -> Response:
    told = await call.run(board, call.db)
    return json_answer({"views": _seen(call, told)["views"]})


_STATUS = {"type": "object", "required": ["position", "topics", "views"]}
ENDPOINTS = (
    Endpoint("GET", "/health", "Whether the database can be read.", health, ("nobody", "")),
    Endpoint("GET", "/status", "Topics, views, and how far they are.", status, answer=_STATUS),
    Endpoint(
        "GET",
        "/status/changes",
        "The same, whenever something has moved, as server-sent events.",
        status_changes,
        gives=(EVENTS,),
        answer={"type": "string"},
    ),
    Endpoint("GET", "/views", "The views.", views),
)
