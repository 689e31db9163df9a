"""A clock that moves only when told."""

from __future__ import annotations

from evert.duration import Duration, microseconds

START = 1_767_225_600_000_000
"""2026-01-01 00:00 UTC, in microseconds since 1970."""


class ManualClock:
    """Stands still until `advance` or `sleep` moves it."""

    def __init__(self, start: int = START) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.advance(seconds)

    def advance(self, duration: Duration) -> None:
        self._now += microseconds(duration)
