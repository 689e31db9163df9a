"""One look at the catalog for everybody: when something has moved, those who wait are woken."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from anyio import to_thread

from evert.catalog import Catalog
from evert.errors import EvertError

_WAIT = 0.5
_PAUSE = 0.05
"""Views move a few times a second, but every append of anybody is a commit: do not look at each."""


@dataclass(frozen=True)
class Stand:
    """Where a view stands: the feed of its changes, its position and its state."""

    feed: int
    position: int
    state: str


class Watch:
    """Follows the catalog in a task of its own, while the server runs."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.version = 0
        self.views: dict[str, Stand] = {}
        self.over = False

    def start(self) -> None:
        self._look()
        self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        self.over = True
        self._wake()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def moved(self, version: int, timeout: float) -> bool:
        """Wait until the catalog has another version than this, or the server ends; False if the time is over."""
        if self.version == version and not self.over:
            try:
                await asyncio.wait_for(self._moved.wait(), timeout)
            except TimeoutError:
                return False
        return True

    async def _follow(self) -> None:
        while True:
            if await to_thread.run_sync(self._next, abandon_on_cancel=True):
                self._wake()
            await asyncio.sleep(_PAUSE)

    def _next(self) -> bool:
        try:
            return self._catalog.wait(self.version, _WAIT) and self._look()
        except EvertError:
            return False  # whoever reads is told what is wrong

    def _look(self) -> bool:
        with self._catalog.read() as tx:
            (self.version,) = tx.one("SELECT version FROM state") or (0,)
            rows = tx.all("SELECT name, feed, position, state FROM views WHERE folded IS NOT NULL")
        self.views = {name: Stand(feed, position, state) for name, feed, position, state in rows}
        return True

    def _wake(self) -> None:
        before, self._moved = self._moved, asyncio.Event()
        before.set()
