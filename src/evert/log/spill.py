"""Larger entries of the tail lie beside the catalog, in a file that one process appends to.

A blob of some hundred kilobytes costs SQLite three writes: into its log, into its file, and again when it is
deleted. Here it is written once and synced; the catalog's transaction holds only where it is. A process
announces its file, renews the announcement with every commit that refers to it, and releases it when the file
is full or the log is closed. From then on the file goes as soon as no entry of the tail refers to it.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from evert import fork
from evert.catalog import Catalog
from evert.disk import disk_errors
from evert.log.files import Files, release, sync_folder

FULL = 64 << 20
ROOM = "tail"


@dataclass(frozen=True)
class Place:
    """Where an entry lies."""

    file: str
    start: int


class Spill:
    """The file that this process appends to. A forked child begins one of its own."""

    def __init__(self, catalog: Catalog, files: Files) -> None:
        self._catalog = catalog
        self._files = files
        self._begin_anew()
        fork.watch(self)

    def _begin_anew(self) -> None:
        self._lock = threading.Lock()
        self._file: str | None = None
        self._handle = -1
        self._size = 0

    def before_fork(self) -> None:
        """The parent keeps its file."""

    def after_fork(self, *, child: bool) -> None:
        if child:
            self._begin_anew()

    def write(self, data: bytes) -> Place:
        """Write and sync a blob. Nothing refers to it yet."""
        with self._lock, disk_errors(self._files.folder / ROOM):
            if self._size >= FULL:
                self._release()
            try:
                if self._file is None:
                    self._begin()
                assert self._file is not None
                place = Place(self._file, self._size)
                _write_all(self._handle, data, self._size)
                os.fdatasync(self._handle)
                self._size += len(data)
            except BaseException:
                self._forget()
                raise
            return place

    def forget(self) -> None:
        """Go on in another file; this one goes when its announcement is over."""
        with self._lock:
            self._forget()

    def release(self) -> None:
        """Be done with the file: it goes when the tail no longer refers to it."""
        with self._lock:
            self._release()

    def _begin(self) -> None:
        file = self._files.announce(ROOM, "arrow")
        path = self._files.path(file)
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._file, self._size = file, 0
        sync_folder(path.parent)

    def _release(self) -> None:
        file = self._file
        if file is not None:
            self._forget()
            self._catalog.write(lambda tx: release(tx, file))

    def _forget(self) -> None:
        if self._file is not None:
            os.close(self._handle)
        self._file, self._size = None, 0


def read(folder: Path, file: str, start: int, size: int) -> bytes:
    """A blob, or what is left of it; `FileNotFoundError` if its file is gone."""
    handle = os.open(folder / file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, size, start)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes, start: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(handle, left, start)
        left, start = left[written:], start + written
