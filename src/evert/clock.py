"""Where the time comes from: passed in, so that tests can move it."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time and waits. `evert.testing.ManualClock` is the double."""

    def now(self) -> int:
        """Microseconds since 1970, UTC."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
