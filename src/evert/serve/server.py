"""The server: one database behind the table of endpoints."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from evert.access import NOBODY
from evert.database import Database
from evert.errors import EvertError
from evert.serve import appending, board, changes, metrics, reading, topics
from evert.serve.bodies import Waiting
from evert.serve.guard import LOOPBACK, SECURITY, Guard
from evert.serve.http import Call, Endpoint, HttpError, failure, json_answer
from evert.serve.openapi import document
from evert.serve.watching import Watch

PAGE = Path(__file__).parent / "page"
ENDPOINTS: tuple[Endpoint, ...] = (
    *appending.ENDPOINTS,
    *changes.ENDPOINTS,
    *reading.ENDPOINTS,
    *topics.ENDPOINTS,
    *board.ENDPOINTS,
    *metrics.ENDPOINTS,
)
_THREADS = 16


@dataclass(frozen=True)
class Limits:
    """How much one request, or all of them together, may ask of the server; bytes, seconds, rows."""

    max_body: int = 64 << 20
    max_waiting: int = 256 << 20
    max_wait: float = 30.0
    max_seconds: float = 30.0
    max_rows: int = 100_000
    max_streams: int = 1_000


class Server:
    """What all requests share."""

    def __init__(self, db: Database, limits: Limits | None = None, hosts: Iterable[str] = LOOPBACK) -> None:
        self.db = db
        self.limits = limits or Limits()
        self.guard = Guard(db.tokens, hosts)
        self.requests = metrics.Requests()
        self.waiting = Waiting(self.limits.max_waiting)
        self.board = board.Board()
        self.watch = Watch(db.catalog)
        self.threads = CapacityLimiter(_THREADS)
        self.streams = 0
        self._rings: dict[str, changes.Ring] = {}

    def ring(self, view: str) -> changes.Ring:
        return self._rings.setdefault(view, changes.Ring())

    def endpoint(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        """What Starlette calls for an endpoint: the checks before it, and its errors as answers."""

        async def handle(request: Request) -> Response:
            begun = time.perf_counter()
            response = await self._answer(endpoint, request)
            spent = time.perf_counter() - begun
            self.requests.count(endpoint.method, endpoint.path, response.status_code, spent)
            return response

        return handle

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        try:
            caller = self.guard.caller(request) if endpoint.needs[0] != "nobody" else NOBODY
            self.guard.check_scope(caller, endpoint, request)
            return await endpoint.handle(Call(self, endpoint, request, caller))
        except (EvertError, HttpError) as error:
            return failure(error)


def app(db: Database, limits: Limits | None = None, hosts: Iterable[str] = LOOPBACK) -> ASGIApp:
    """A database as an ASGI application, for any server of those."""
    server = Server(db, limits, hosts)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        server.watch.start()
        yield
        await server.watch.stop()

    routes = [Route(one.path, server.endpoint(one), methods=[one.method]) for one in ENDPOINTS]
    routes += [
        Route("/openapi.json", _described(document(ENDPOINTS))),
        Route("/", _page),
        Route("/page/{file}", _page),
    ]
    inner = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _told, Exception: _broken}
    )
    return _Guarded(inner, server.guard)


class _Guarded:
    """Checks where a request comes from before anything else looks at it, and adds the headers of every answer."""

    def __init__(self, inner: ASGIApp, guard: Guard) -> None:
        self._inner = inner
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_SECURITY]
            await send(message)

        try:
            self._guard.check_place(Request(scope).headers)
        except HttpError as error:
            await failure(error)(scope, receive, secured)
            return
        await self._inner(scope, receive, secured)


_SECURITY = [(name.lower().encode(), value.encode()) for name, value in SECURITY.items()]


async def _page(request: Request) -> Response:
    name = request.path_params.get("file", "index.html")
    path = PAGE / name
    if path.parent != PAGE or not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, headers={"Cache-Control": "no-cache"})


def _described(told: dict[str, object]) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        return json_answer(told)

    return handle


async def _told(request: Request, error: Exception) -> Response:
    """What Starlette refuses by itself, in the form of all errors."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "http")
    said = {404: f"there is nothing at {request.url.path}", 405: f"{request.method} does not go here"}
    response = failure(HttpError(error.status_code, code, said.get(error.status_code, error.detail)))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response


async def _broken(request: Request, error: Exception) -> Response:
    return failure(HttpError(500, "internal", "the server failed; its log says why"))
