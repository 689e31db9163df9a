"""Who may do what over HTTP: tokens, kept as hashes, with the names of what they open.

A token has 32 random bytes, so a plain hash of it is as good as a slow one. What it may do is a list of scopes:
`append:clicks`, `read:revenue` (a topic or a view), both with wildcards, or `admin` for everything.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evert.catalog import Catalog, Transaction
from evert.errors import BadName, BadOption, NotFound, Refused
from evert.log.names import folded

ADMIN = "admin"
PREFIX = "evert_"
_VERBS = ("append", "read")
_LONGEST = 100


@dataclass(frozen=True)
class Token:
    """A token as it is kept: its name, what it may do, and when it was made (microseconds since 1970)."""

    name: str
    scopes: tuple[str, ...]
    created: int = 0

    def may(self, verb: str, name: str = "") -> bool:
        """Whether it opens this; names are the same in any case.

        >>> web = Token("web", ("append:click*", "read:revenue"))
        >>> web.may("append", "Clicks"), web.may("read", "orders"), web.may("admin")
        (True, False, False)
        """
        return ADMIN in self.scopes or any(
            scope.startswith(f"{verb}:") and fnmatchcase(folded(name), folded(scope[len(verb) + 1 :]))
            for scope in self.scopes
        )


ANYBODY = Token("anybody", (ADMIN,))
"""Who calls a server whose database has no tokens."""


NOBODY = Token("nobody", ())
"""Who calls what needs no token."""


class Tokens:
    """The tokens of one database."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, Token] = {}
        self._seen = (-1, 0.0)

    def create(
        self, name: str, *, append: Sequence[str] = (), read: Sequence[str] = (), admin: bool = False
    ) -> str:
        """Make a token and return it; it cannot be had again, since only its hash is kept."""
        if not name or len(name) > _LONGEST or not name.isprintable():
            raise BadName(f"a token cannot be named {name!r}")
        scopes = [
            f"{verb}:{each}" for verb, names in zip(_VERBS, (append, read), strict=True) for each in names
        ]
        if admin:
            scopes = [ADMIN]
        if not scopes:
            raise BadOption(
                f"the token {name} would open nothing", hint="give names to append to or to read, or admin"
            )
        token = PREFIX + secrets.token_urlsafe(32)

        def work(tx: Transaction) -> None:
            if tx.one("SELECT 1 FROM tokens WHERE name = ?", name):
                raise Refused(
                    f"there is a token {name} already", hint="revoke it first, or take another name"
                )
            tx.run("INSERT INTO tokens VALUES (?, ?, ?, ?)", name, _hash(token), json.dumps(scopes), tx.now)

        self._catalog.write(work)
        return token

    def revoke(self, name: str) -> None:
        """From now on the token opens nothing."""
        if not self._catalog.write(lambda tx: tx.run("DELETE FROM tokens WHERE name = ?", name)):
            raise NotFound(
                f"there is no token {name}", hint=f"there are: {', '.join(self._names()) or 'none'}"
            )

    def all(self) -> list[Token]:
        return list(self._all().values())

    def find(self, token: str) -> Token | None:
        """The token that this text is."""
        return self._recent().get(_hash(token))

    @property
    def needed(self) -> bool:
        """Whether there are any."""
        return bool(self._recent())

    def _recent(self) -> dict[str, Token]:
        """The tokens by hash, read again after every commit, and each second."""
        version, now = self._catalog.seen(), time.monotonic()
        if self._seen[0] != version or now > self._seen[1]:
            self._known = self._all()
            self._seen = (version, now + 1.0)
        return self._known

    def _all(self) -> dict[str, Token]:
        with self._catalog.read() as tx:
            rows = tx.all("SELECT hash, name, scopes, created FROM tokens ORDER BY name")
        return {hash: Token(name, tuple(json.loads(scopes)), created) for hash, name, scopes, created in rows}

    def _names(self) -> list[str]:
        return [token.name for token in self.all()]


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
