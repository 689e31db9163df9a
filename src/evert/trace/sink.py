"""A file as Arrow writes to it, which counts and sums the bytes that pass."""

from __future__ import annotations

import os
import zlib
from typing import Any, BinaryIO


class Sink:
    """Where the next byte goes, and the checksum of those since it was last set to 0."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.at = 0
        self.checksum = 0

    def write(self, data: Any) -> int:
        self._file.write(data)
        size = len(memoryview(data).cast("B"))
        self.at += size
        self.checksum = zlib.crc32(data, self.checksum)
        return size

    def pad(self, alignment: int) -> None:
        if self.at % alignment:
            self.write(b"\0" * (alignment - self.at % alignment))

    def flush(self) -> None:
        """Arrow asks after each stream; the bytes go out with the last one."""

    def close(self) -> None:
        self._file.close()

    def sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
