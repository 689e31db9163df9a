"""An endpoint of the server: its path, who may call it, what it takes, and how its errors are told.

Endpoints are values. The routes, the check of tokens and parameters and the OpenAPI document all come from the
same table of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from evert import errors
from evert.access import Token
from evert.errors import BadOption, EvertError
from evert.values import dumps

if TYPE_CHECKING:
    from evert.database import Database
    from evert.serve.server import Server

T = TypeVar("T")
Handler = Callable[["Call"], Awaitable[Response]]
Kind = Literal["text", "number", "truth"]
Verb = Literal["append", "read", "admin", "any", "nobody"]
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}
_MOST_DIGITS = 19


class HttpError(Exception):
    """What has no twin in Python: the request was not let through."""

    def __init__(
        self, status: int, code: str, message: str, *, hint: str | None = None, wait: int = 0
    ) -> None:
        super().__init__(message)
        self.status = status
        self.wait = wait
        self._told = {"error": code, "message": message, "hint": hint}

    def as_dict(self) -> dict[str, Any]:
        return dict(self._told)


STATUS: Mapping[type[EvertError], int] = {
    EvertError: 500,
    errors.NotFound: 404,
    errors.NotReady: 503,
    errors.Refused: 400,
    errors.Conflict: 409,
    errors.Fenced: 409,
    errors.Expired: 410,
    errors.Full: 429,
    errors.DiskFull: 507,
    errors.TimedOut: 504,
    errors.Stopped: 503,
}
"""The status of an error is that of the nearest of its classes."""
RETRY: Mapping[int, int] = {429: 1, 503: 1}
"""After how many seconds it is worth trying again."""


@dataclass(frozen=True)
class Param:
    """A parameter of the query or a header."""

    name: str
    about: str
    kind: Kind = "text"
    many: bool = False
    required: bool = False
    choices: tuple[str, ...] = ()

    def read(self, texts: list[str]) -> Any:
        if len(texts) > 1 and not self.many:
            raise BadOption(f"{self.name} is given more than once", parameter=self.name)
        values = [self._one(text) for text in texts]
        return values if self.many else values[0]

    def _one(self, text: str) -> Any:
        if self.kind == "number":
            if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
                raise BadOption(f"{self.name} is a whole number from 0 on, not {text!r}", parameter=self.name)
            return int(text)
        if self.kind == "truth":
            if text.lower() not in _TRUTHS:
                raise BadOption(f"{self.name} is true or false, not {text!r}", parameter=self.name)
            return _TRUTHS[text.lower()]
        if self.choices and text not in self.choices:
            hint = f"there are {', '.join(self.choices)}"
            raise BadOption(f"{self.name} cannot be {text!r}", hint=hint, parameter=self.name)
        return text


@dataclass(frozen=True)
class Endpoint:
    """One method of one path.

    `needs` is what the caller's token must open: a verb and the parameter of the path that it applies to.
    """

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    path: str
    about: str
    handle: Handler
    needs: tuple[Verb, str] = ("any", "")
    query: tuple[Param, ...] = ()
    headers: tuple[Param, ...] = ()
    takes: tuple[str, ...] = ()
    """The content types of the body, if there is one."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of the body, where it is JSON."""
    gives: tuple[str, ...] = ("application/json",)
    answer: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    status: int = 200


class Call:
    """A request that was let through: what was asked, and by whom."""

    def __init__(self, server: Server, endpoint: Endpoint, request: Request, caller: Token) -> None:
        self.server = server
        self.endpoint = endpoint
        self.request = request
        self.caller = caller
        self.query = _values(endpoint.query, request)

    @property
    def db(self) -> Database:
        return self.server.db

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def header(self, name: str) -> str | None:
        return self.request.headers.get(name)

    def sees(self, name: str) -> bool:
        """Whether the caller may read a topic or view."""
        return self.caller.may("read", name)

    async def run(self, work: Callable[..., T], *values: Any, **named: Any) -> T:
        """Do what may wait for a disk in a thread."""
        return await to_thread.run_sync(partial(work, *values, **named), limiter=self.server.threads)


def _values(known: tuple[Param, ...], request: Request) -> dict[str, Any]:
    names = {param.name for param in known}
    given = request.query_params
    for name in given:
        if name not in names:
            hint = f"there are {', '.join(sorted(names))}" if names else "it takes none"
            raise BadOption(f"no parameter is named {name!r}", hint=hint, parameter=name)
    values: dict[str, Any] = {}
    for param in known:
        texts = given.getlist(param.name)
        if not texts and param.required:
            raise BadOption(f"the parameter {param.name} is needed", hint=param.about, parameter=param.name)
        values[param.name] = param.read(texts) if texts else ([] if param.many else None)
    return values


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(dumps(value), status, headers, "application/json")


def failure(error: EvertError | HttpError) -> Response:
    """An error as JSON, under the status of its class."""
    status = error.status if isinstance(error, HttpError) else status_of(error)
    headers: dict[str, str] = {}
    wait = error.wait if isinstance(error, HttpError) else RETRY.get(status, 0)
    if wait:
        headers["Retry-After"] = str(wait)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return json_answer(_plain(error.as_dict()), status, headers)


def status_of(error: EvertError) -> int:
    return next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)


def _plain(told: Mapping[str, Any]) -> dict[str, Any]:
    """What an error tells, as JSON has it."""
    simple = (str, int, float, bool, list, dict, type(None))
    return {name: value if isinstance(value, simple) else str(value) for name, value in told.items()}
