"""A view's changes as server-sent events.

    changelog ── the newest epochs, encoded once ──> ring of a view ──> every client that keeps up
        └────── what a client has missed, read for it alone ──────────> clients that do not

A client is a place in the history and nothing else: one that reads slowly waits in its own `send`, and costs no
memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from starlette.responses import Response, StreamingResponse

from evert.errors import BadOption, EvertError, Stopped
from evert.serve.http import Call, Endpoint, HttpError, Param
from evert.trace.arrays import take_rows
from evert.values import dumps, rows_of
from evert.views import reader
from evert.views.feed import WEIGHT, Change
from evert.views.view import View

EVENTS = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
QUIET = 15.0
"""After so many seconds without an event a comment is sent, so that proxies and clients know that we are there."""
_PIECE = 1_000
_RING_BYTES = 4 << 20


@dataclass(frozen=True)
class Place:
    """Up to where a client has read: a feed, which is another one after a view was defined anew, and a position."""

    feed: int
    position: int

    def __str__(self) -> str:
        return f"{self.feed}.{self.position}"

    @classmethod
    def parse(cls, text: str) -> Place:
        feed, _, position = text.partition(".")
        if not (feed.isdecimal() and position.isdecimal() and text.isascii() and len(text) < 40):
            raise BadOption(f"{text!r} is no id of an event", hint="give back the last id that was sent")
        return cls(int(feed), int(position))


@dataclass(frozen=True)
class _Sent:
    """The events of one epoch."""

    position: int
    events: tuple[bytes, ...]

    @property
    def size(self) -> int:
        return sum(map(len, self.events))


class Ring:
    """The newest epochs of one view, from a position on without a gap."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.feed = -1
        self.start = -1
        self.end = -1
        self._sent: deque[_Sent] = deque()
        self._size = 0

    async def meet(self, place: Place | None) -> None:
        """A client has come to a place; if it is further than the ring is, it begins anew there."""
        async with self.lock:
            if place is not None and (place.feed != self.feed or place.position > self.end):
                self.feed, self.start, self.end = place.feed, place.position, place.position
                self._sent.clear()
                self._size = 0

    def covers(self, place: Place) -> bool:
        return place.feed == self.feed and self.start <= place.position <= self.end

    def after(self, place: Place) -> list[_Sent]:
        return [sent for sent in self._sent if sent.position > place.position]

    def add(self, sent: _Sent) -> None:
        self._sent.append(sent)
        self._size += sent.size
        self.end = sent.position
        while self._size > _RING_BYTES:
            gone = self._sent.popleft()
            self._size -= gone.size
            self.start = gone.position


async def changes(call: Call) -> Response:
    view = await call.run(lambda: View(call.db.reader, call.db.reader.definition(call.path("view")).name))
    given = call.header("last-event-id") or call.query["after"]
    place = await call.run(_begin, view, given)
    if call.server.streams >= call.server.limits.max_streams:
        raise HttpError(503, "busy", "too many clients follow changes", hint="try again", wait=5)
    whole = place is None and call.query["snapshot"] is not False
    return StreamingResponse(
        _counted(call, _events(call, view, place, whole)), headers=HEADERS, media_type=EVENTS
    )


def _begin(view: View, given: str | None) -> Place | None:
    """Where a client is that gives an id of an event, or a bare position."""
    if given is None:
        return None
    if given.isascii() and given.isdecimal() and len(given) < 20:
        return Place(view.definition.feed, int(given))
    return Place.parse(given)


async def _counted(call: Call, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    call.server.streams += 1
    try:
        async for event in events:
            yield event
    finally:
        call.server.streams -= 1


async def _events(call: Call, view: View, place: Place | None, whole: bool) -> AsyncIterator[bytes]:
    watch, ring = call.server.watch, call.server.ring(view.name)
    if place is None and not whole:
        stand = watch.views.get(view.name)
        place = None if stand is None else Place(stand.feed, stand.position)
    yield b": evert\n\n"
    stopped = False
    while not watch.over:
        version = watch.version
        stand = watch.views.get(view.name)
        if stand is None:
            yield _event("dropped", {"message": f"the view {view.name} was dropped"})
            return
        try:
            if stand.state == "building":
                pass
            elif place is None or place.feed != stand.feed:
                if place is not None:
                    yield _event("reset", {"position": stand.position})
                async for event, at in _each(call, _snapshot(view, stand.feed)):
                    yield event
                    place = at or place
                await ring.meet(place)
                continue
            elif place.position < stand.position:
                if ring.covers(place):
                    found = await _newer(call, ring, view, place)
                    for sent in found:
                        for event in sent.events:
                            yield event
                        place = Place(place.feed, sent.position)
                else:
                    async for event, at in _each(call, _missed(view, place)):
                        yield event
                        place = at or place
                    await ring.meet(place)
                continue
            if stand.state != "stopped":
                stopped = False
            elif not stopped:
                stopped = True
                yield _event("stopped", reader.stopped(await call.run(lambda: view.definition)).as_dict())
        except Stopped:
            pass  # the watch will know of it
        except EvertError as error:
            yield _event("error", error.as_dict())
            return
        if not await watch.moved(version, QUIET):
            yield b": still here\n\n"


async def _newer(call: Call, ring: Ring, view: View, place: Place) -> list[_Sent]:
    """The epochs after a place that the ring covers; whoever comes first reads them for all."""
    found = ring.after(place)
    if found:
        return found
    async with ring.lock:
        if ring.covers(place) and ring.end == place.position:
            for sent in await call.run(_encoded, view, place):
                ring.add(sent)
        return ring.after(place) if ring.covers(place) else []


def _encoded(view: View, place: Place) -> list[_Sent]:
    sent = []
    for change in view.changes(place.position, progress=True):
        if change.kind not in ("delta", "progress"):
            break
        sent.append(_Sent(change.position, tuple(event for event, _ in _told(change, place.feed))))
        if sum(one.size for one in sent) > _RING_BYTES:
            break
    return sent


def _snapshot(view: View, feed: int) -> Iterator[tuple[bytes, Place | None]]:
    change = next(iter(view.changes()))
    yield from _told(change, feed)


def _missed(view: View, place: Place) -> Iterator[tuple[bytes, Place | None]]:
    """What comes after a place, from the changelog, a piece at a time."""
    for change in view.changes(place.position, progress=True):
        yield from _told(change, place.feed)


async def _each(
    call: Call, events: Iterator[tuple[bytes, Place | None]]
) -> AsyncIterator[tuple[bytes, Place | None]]:
    """An iterator that may wait for a disk, stepped in threads."""
    end = object()
    while True:
        found: Any = await call.run(next, events, end)
        if found is end:
            return
        yield found


def _told(change: Change, feed: int) -> Iterator[tuple[bytes, Place | None]]:
    """The events of one change; the last has an id, and the place after it."""
    place = Place(feed, max(change.position, 0))
    if change.kind == "reset":
        yield _event("reset", {"position": change.position}), None
        return
    if change.kind == "progress":
        yield _event("progress", {"position": change.position}, place), place
        return
    came, went = parted(change.rows)
    most = max(came.num_rows, went.num_rows)
    for start in range(0, max(most, 1), _PIECE):
        last = start + _PIECE >= most
        told: dict[str, Any] = {"position": change.position, "rows": _listed(came.slice(start, _PIECE))}
        if change.kind == "delta":
            told["gone"] = _listed(went.slice(start, _PIECE))
        told["more"] = not last
        yield _event(change.kind, told, place if last else None), place if last else None


def parted(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows that came and those that went, each as often as its weight says."""
    weights = rows.column(WEIGHT).to_numpy()
    plain = rows.drop_columns([WEIGHT])
    at = np.arange(len(weights))
    came, went = weights > 0, weights < 0
    return (
        take_rows(plain, np.repeat(at[came], weights[came])),
        take_rows(plain, np.repeat(at[went], -weights[went])),
    )


def _listed(rows: pa.Table) -> list[dict[str, Any]]:
    return [row for batch in rows.to_batches() for row in rows_of(batch)]


def _event(kind: str, told: dict[str, Any], place: Place | None = None) -> bytes:
    mark = f"id: {place}\n" if place is not None else ""
    return f"event: {kind}\ndata: {dumps(told)}\n{mark}\n".encode()


ENDPOINTS = (
    Endpoint(
        "GET",
        "/views/{view}/changes",
        "The rows of a view, and then every change, as server-sent events.",
        changes,
        ("read", "view"),
        query=(
            Param("after", "go on after this position, or this id of an event"),
            Param("snapshot", "false: begin with the next change", "truth"),
        ),
        headers=(Param("Last-Event-ID", "go on after this event"),),
        gives=(EVENTS,),
        answer={"type": "string"},
    ),
)
