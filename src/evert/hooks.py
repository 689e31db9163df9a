"""Webhooks: services that report events by calling a URL, and sign what they send.

A hook fills a stream of its own. It knows the name of an environment variable that holds the secret; the secret
itself is kept nowhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evert.catalog import Transaction
from evert.errors import BadName, BadOption, NotFound, Refused

if TYPE_CHECKING:
    from evert.database import Database

SCHEMA = "delivery STRING, event STRING, body STRING"
TOLERANCE = 300
"""How many seconds a signed time may be off."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Hook:
    """A webhook as it is kept."""

    name: str
    topic: str
    scheme: str
    secret_env: str

    def delivery(self, headers: Headers, body: bytes, now: float) -> Delivery | None:
        """What was sent, if its signature is right."""
        secret = os.environ.get(self.secret_env, "")
        if not secret:
            raise Refused(
                f"the hook {self.name} has no secret here",
                hint=f"set {self.secret_env} in the environment of the server",
            )
        return SCHEMES[self.scheme](secret, headers, body, now)


@dataclass(frozen=True)
class Delivery:
    """What identifies a delivery: its id, which is the same when it comes again, and the kind of event."""

    id: str
    event: str | None


def _github(secret: str, headers: Headers, body: bytes, now: float) -> Delivery | None:
    given = headers.get("x-hub-signature-256", "")
    if not hmac.compare_digest(given.encode(), f"sha256={_hex(secret.encode(), body)}".encode()):
        return None
    return Delivery(headers.get("x-github-delivery") or _digest(body), headers.get("x-github-event"))


def _stripe(secret: str, headers: Headers, body: bytes, now: float) -> Delivery | None:
    parts = [part.strip().partition("=") for part in headers.get("stripe-signature", "").split(",")]
    at = next((value for name, _, value in parts if name == "t"), "")
    if not _recent(at, now):
        return None
    wanted = _hex(secret.encode(), f"{at}.".encode() + body)
    given = [value for name, _, value in parts if name == "v1"]
    if not any(hmac.compare_digest(value.encode(), wanted.encode()) for value in given):
        return None
    return Delivery(_digest(body), None)


def _standard(secret: str, headers: Headers, body: bytes, now: float) -> Delivery | None:
    name, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not name or not _recent(at, now):
        return None
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise Refused("the secret of a standard webhook is base64, after whsec_") from None
    signed = hmac.new(key, f"{name}.{at}.".encode() + body, hashlib.sha256).digest()
    wanted = b"v1," + base64.b64encode(signed)
    given = headers.get("webhook-signature", "").split()
    if not any(hmac.compare_digest(value.encode(), wanted) for value in given):
        return None
    return Delivery(name, None)


def _plain(secret: str, headers: Headers, body: bytes, now: float) -> Delivery | None:
    given = headers.get("signature", "").lower()
    if not hmac.compare_digest(given.encode(), _hex(secret.encode(), body).encode()):
        return None
    return Delivery(_digest(body), None)


SCHEMES: Mapping[str, Callable[[str, Headers, bytes, float], Delivery | None]] = {
    "github": _github,
    "stripe": _stripe,
    "standard": _standard,
    "hex": _plain,
}
"""How a body is signed: from secret, headers, body and the present time to the delivery, or None."""


def _hex(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _recent(at: str, now: float) -> bool:
    return at.isascii() and at.isdecimal() and len(at) < 20 and abs(now - int(at)) <= TOLERANCE


class Hooks:
    """The webhooks of one database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def create(self, name: str, *, stream: str | None = None, scheme: str, secret_env: str) -> Hook:
        """Take what a service sends to `/hooks/{name}` into a stream, which is made if it is not there."""
        if not _NAME.fullmatch(name):
            raise BadName(f"a hook cannot be named {name!r}", hint="letters, digits, '.', '_' and '-'")
        if scheme not in SCHEMES:
            raise BadOption(f"no scheme is named {scheme!r}", hint=f"there are {', '.join(SCHEMES)}")
        if not _VARIABLE.fullmatch(secret_env):
            raise BadOption(f"{secret_env!r} is no name of an environment variable")
        hook = Hook(name, stream or name, scheme, secret_env)
        self._db.stream(hook.topic, SCHEMA)

        def work(tx: Transaction) -> None:
            if tx.one("SELECT 1 FROM hooks WHERE name = ?", name):
                raise Refused(f"there is a hook {name} already", hint="drop it first, or take another name")
            tx.run("INSERT INTO hooks VALUES (?, ?, ?, ?, ?)", name, hook.topic, scheme, secret_env, tx.now)

        self._db.catalog.write(work)
        return hook

    def drop(self, name: str) -> None:
        """Take nothing more; the stream stays."""
        if not self._db.catalog.write(lambda tx: tx.run("DELETE FROM hooks WHERE name = ?", name)):
            raise self._unknown(name)

    def all(self) -> list[Hook]:
        with self._db.catalog.read() as tx:
            return [
                Hook(*row)
                for row in tx.all("SELECT name, topic, scheme, secret_env FROM hooks ORDER BY name")
            ]

    def find(self, name: str) -> Hook:
        for hook in self.all():
            if hook.name == name:
                return hook
        raise self._unknown(name)

    def _unknown(self, name: str) -> NotFound:
        return NotFound(f"there is no hook {name}", hint="make it with `evert hooks create`")
