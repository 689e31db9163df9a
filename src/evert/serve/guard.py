"""What stands before every endpoint: who may call, from where, and what the answer must not allow.

A server on this machine can be reached by any web page that its user opens. So a request must name one of the
server's own hosts (a page of another name that was made to point here does not), and if a browser says that it
comes from a page, that page must be the server's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

from evert.access import ANYBODY, Token, Tokens
from evert.serve.http import Endpoint, HttpError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
SECURITY = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer."""


def is_loopback(host: str) -> bool:
    """
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Knows the names of the server and the tokens of its database."""

    def __init__(self, tokens: Tokens, hosts: Iterable[str]) -> None:
        self._tokens = tokens
        self._hosts = frozenset(host.lower() for host in hosts)

    def check_place(self, headers: Headers) -> None:
        """Refuse a request that names another host, or comes from a page of one."""
        host = headers.get("host", "")
        if _host(f"//{host}") not in self._hosts:
            raise HttpError(
                421, "wrong_host", f"this server is not {host or 'without a name'}", hint="see --allow-host"
            )
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise HttpError(403, "wrong_origin", f"pages of {origin} may not call this server")

    def caller(self, request: Request) -> Token:
        """Whose token the request has. Anybody may do everything as long as the database has no tokens."""
        given = request.headers.get("authorization")
        if given is None:
            if self._tokens.needed:
                raise HttpError(401, "unauthorized", "a token is needed", hint="Authorization: Bearer …")
            return ANYBODY
        scheme, _, text = given.partition(" ")
        found = self._tokens.find(text.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise HttpError(401, "unauthorized", "no such token", hint="make one with `evert tokens create`")
        return found

    @staticmethod
    def check_scope(caller: Token, endpoint: Endpoint, request: Request) -> None:
        verb, parameter = endpoint.needs
        if verb in ("any", "nobody"):
            return
        name = str(request.path_params[parameter]) if parameter else ""
        if not caller.may(verb, name):
            what = {"append": f"append to {name}", "read": f"read {name}", "admin": "do that"}[verb]
            raise HttpError(403, "forbidden", f"the token {caller.name} may not {what}")


def _host(text: str) -> str | None:
    try:
        return urlsplit(text).hostname
    except ValueError:
        return None
