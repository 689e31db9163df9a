"""How much memory this process and all that it started use at most, sampled: anonymous, and mapped files apart."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection
from itertools import count
from pathlib import Path
from types import TracebackType

EVERY = 0.2
MAPPED_EVERY = 10
"""Mapped files are looked at in one sample of so many: the kernel walks through all pages for it."""


class Watch:
    """Within `with`, the peaks of the sums over a process and all below it, in bytes: this one if none is named.

    `peak` is of anonymous memory. `mapped` is of files: state and segments, but libraries too. What several
    processes map counts once, and the system takes it back when it needs it. For this process that is the JVM and
    Spark's workers; what is below the processes in `without` does not count.
    """

    def __init__(self, process: int | None = None, *, without: Collection[int] = ()) -> None:
        self.peak = 0
        self.mapped = 0
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
        for number in count():
            if self._over.wait(EVERY):
                return
            watched = self._watched()
            self.peak = max(self.peak, _sum("status", "RssAnon", watched))
            if number % MAPPED_EVERY == 0:
                self.mapped = max(self.mapped, _sum("smaps_rollup", "Pss_File", watched))

    def __str__(self) -> str:
        return f"{self.peak / 1e9:.1f} GB of anonymous memory, {self.mapped / 1e9:.1f} GB mapped"

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


def _sum(file: str, word: str, processes: Collection[int]) -> int:
    return sum(_bytes(Path(f"/proc/{process}/{file}"), word) for process in processes)


def _bytes(file: Path, word: str) -> int:
    """What a file of the kernel says in kilobytes behind a word; nothing if the process has ended."""
    try:
        text = file.read_text()
    except OSError:
        return 0
    kilobytes = [row.split()[1] for row in text.splitlines() if row.startswith(f"{word}:")]
    return int(kilobytes[0]) * 1024 if kilobytes else 0
