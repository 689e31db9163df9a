"""How much anonymous memory this process and all that it started use at most, sampled."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from pathlib import Path
from types import TracebackType

EVERY = 0.2


class Watch:
    """Within `with`, the peak of the sum over a process and all below it, in bytes: this one if none is named.

    For this one that is the JVM and Spark's workers; what is below the processes in `without` does not count.
    """

    def __init__(self, process: int | None = None, *, without: Collection[int] = ()) -> None:
        self.peak = 0
        self._process = process or os.getpid()
        self._without = without
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(EVERY):
            self.peak = max(self.peak, sum(map(_anonymous, self._watched())))

    def _watched(self) -> list[int]:
        found = [self._process]
        for one in found:
            for task in Path(f"/proc/{one}/task").glob("*/children"):
                try:
                    children = map(int, task.read_text().split())
                except OSError:  # it has ended meanwhile
                    continue
                found += (child for child in children if child not in self._without)
        return found


def _anonymous(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    kilobytes = [row.split()[1] for row in text.splitlines() if row.startswith("RssAnon")]
    return int(kilobytes[0]) * 1024 if kilobytes else 0
