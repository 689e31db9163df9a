"""Lines that do not fit, set aside."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class Aside:
    """The lines that do not fit, on their way into a file that is made when the first one comes."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: IO[str] | None = None
        self.count = 0

    def write(self, name: str, line: int, raw: str, reason: str) -> None:
        assert self._path is not None
        if self._file is None:
            self._file = open(self._path, "a", encoding="utf-8")  # noqa: SIM115
        entry = {"file": name, "line": line, "reason": reason, "text": raw}
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self.count += 1

    def sync(self) -> None:
        """They are safe before the rows around them are committed."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@contextmanager
def set_aside_in(path: str | None) -> Iterator[Aside]:
    aside = Aside(path)
    try:
        yield aside
    finally:
        aside.close()
