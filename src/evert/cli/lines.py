"""Lines on their way from a stream into blocks."""

from __future__ import annotations

import io
import os
import select
import time
from collections.abc import Iterator
from typing import IO

PATIENCE = 0.2
"""How many seconds a row from a live pipe waits for more."""


def arriving(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines as they come in, and None every now and then, so that somebody looks at what has come."""
    try:
        handle = stream.fileno()
    except (OSError, ValueError):
        yield from stream
        return
    rest: list[bytes] = []
    while True:
        if select.select([handle], [], [], PATIENCE / 2)[0]:
            piece = os.read(handle, 1 << 20)
            if not piece:
                break
            for line in io.BytesIO(piece):
                rest.append(line)
                if line.endswith(b"\n"):
                    yield b"".join(rest)
                    rest = []
        yield None
    if rest:
        yield b"".join(rest)


class Held:
    """Lines on their way into a block."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._since = 0.0
        self._records = 0
        self.first = 1
        self.lines: list[bytes] = []

    def add(self, record: list[bytes]) -> bool:
        """Take one record; whether the block is full now."""
        if not self.lines:
            self._since = time.monotonic()
        self.lines.extend(record)
        self._records += 1
        return self._records >= self._size

    def waited(self) -> bool:
        return bool(self.lines) and time.monotonic() - self._since >= PATIENCE

    def take(self) -> tuple[int, list[bytes]]:
        """The number of the first line and the lines; begin another block."""
        first, lines = self.first, self.lines
        self.skip(len(lines))
        self.lines, self._records = [], 0
        return first, lines

    def skip(self, lines: int) -> None:
        self.first += lines


class Quiet(Exception):
    """Nothing more has come, and no record is half read."""


class Records:
    """The lines below a CSV reader, kept until the record that they make up is read."""

    def __init__(self, lines: Iterator[bytes | None]) -> None:
        self._lines = lines
        self.record: list[bytes] = []

    def __iter__(self) -> Records:
        return self

    def __next__(self) -> str:
        while (line := next(self._lines)) is None:
            if not self.record:
                raise Quiet
        self.record.append(line)
        return line.decode("utf-8", "surrogateescape")

    def take(self) -> list[bytes]:
        record, self.record = self.record, []
        return record
