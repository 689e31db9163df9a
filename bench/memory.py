"""How much anonymous memory this process and all that it started use at most, sampled."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType

EVERY = 0.2


class Watch:
    """Within `with`, the peak of the sum over this process, the JVM and Spark's workers, in bytes."""

    def __init__(self) -> None:
        self.peak = 0
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
            self.peak = max(self.peak, sum(map(_anonymous, _descendants(os.getpid()))))


def _descendants(process: int) -> list[int]:
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += map(int, task.read_text().split())
            except OSError:  # it has ended meanwhile
                continue
    return found


def _anonymous(process: int) -> int:
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    kilobytes = [row.split()[1] for row in text.splitlines() if row.startswith("RssAnon")]
    return int(kilobytes[0]) * 1024 if kilobytes else 0
