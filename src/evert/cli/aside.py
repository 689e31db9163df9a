"""Lines that do not fit, set aside."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

Entry = dict[str, Any]
SetAside = Callable[[str, int, str, str, Mapping[str, Any]], None]
"""Takes the file, the number of the line, the line, why it does not fit, and how it is to be read."""


class Aside:
    """The lines that do not fit, on their way into a file that is made when the first one comes."""

    def __init__(self, path: str | None, topic: str, delete: bool) -> None:
        self._path = path
        self._about = {"topic": topic} | ({"delete": True} if delete else {})
        self._waiting: list[Entry] = []
        self.count = 0

    def write(self, name: str, line: int, raw: str, reason: str, read_as: Mapping[str, Any]) -> None:
        now = dt.datetime.now(dt.UTC).isoformat()
        entry = {"file": name, "line": line, "reason": reason, "text": raw, "at": now}
        self._waiting.append(entry | self._about | dict(read_as))
        self.count += 1

    def sync(self) -> None:
        """They are safe before the rows around them are committed."""
        if self._waiting:
            assert self._path is not None
            with locked(self._path, "a") as file:
                file.write(text_of(self._waiting))
                file.flush()
                os.fsync(file.fileno())
            self._waiting = []


@contextmanager
def set_aside_in(path: str | None, topic: str, delete: bool) -> Iterator[Aside]:
    aside = Aside(path, topic, delete)
    try:
        yield aside
    finally:
        aside.sync()


def text_of(entries: list[Entry]) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


@contextmanager
def locked(path: str, mode: str) -> Iterator[IO[str]]:
    """The file, for nobody else at the same time; one that was replaced while we waited is opened anew."""
    while True:
        with open(path, mode, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_there(path, file):
                yield file
                return


def _is_there(path: str, file: IO[str]) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
