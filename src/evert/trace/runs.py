"""Runs: immutable tables sorted by hash, in files that are memory-mapped.

    file   ┌────────┬─────────────────┬───┬─────────────────┬───┐
           │ magic  │ run (Arrow IPC) │ 0 │ run (Arrow IPC) │ 0 │
           └────────┴─────────────────┴───┴─────────────────┴───┘
           0        64                    a multiple of 64

One file holds all the runs that one task writes in one epoch. A run is a stream of one uncompressed record
batch, so its columns are used where they lie in the mapping. The name of a file is never used again.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from evert.disk import disk_errors
from evert.errors import Corrupt
from evert.trace.arrays import one_chunk
from evert.trace.consolidate import HASH, hashes_of, joined, sorted_by_hash
from evert.trace.keys import same_rows
from evert.trace.sink import Sink

MAGIC = b"EVERTRUN\x01".ljust(64, b"\0")
ALIGNMENT = 64
VERIFIED_BELOW = 4 << 20
_HINT = "the state is derived: rebuild the view"


@dataclass(frozen=True)
class Stored:
    """Where a run lies; `id` is 0 until it is committed, `file` is below the database folder."""

    id: int
    file: str
    start: int
    bytes: int
    rows: int
    checksum: int


class Run:
    """A table with sorted hashes in its column `__h`, each column in one chunk."""

    def __init__(self, stored: Stored, table: pa.Table) -> None:
        self.stored = stored
        self.table = table
        self.hashes: np.ndarray = hashes_of(table)
        self.rows: int = table.num_rows
        self._columns: dict[str, pa.Array] = {}

    @classmethod
    def of(cls, rows: pa.Table) -> Run:
        """A run in memory only, of rows that have `__h`, to be probed like a stored one."""
        table = sorted_by_hash(joined([rows]))
        return cls(Stored(0, "", 0, table.nbytes, table.num_rows, 0), table)

    def column(self, name: str) -> pa.Array:
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = one_chunk(self.table.column(name))
        return found

    def places(self, sought: np.uint64, names: Sequence[str], key: Sequence[pa.Array]) -> list[int]:
        """Where the rows of one key are, whose hash is sought and whose values are arrays of one."""
        found = []
        place = int(self.hashes.searchsorted(sought))
        while place < self.rows and self.hashes[place] == sought:
            if all(self._has(place, name, value) for name, value in zip(names, key, strict=True)):
                found.append(place)
            place += 1
        return found

    def _has(self, place: int, name: str, value: pa.Array) -> bool:
        """Whether a value is there; what is not plainly the same may still be equal, such as NaN."""
        column = self.column(name)
        if column[place].equals(value[0]):
            return True
        return bool(same_rows([column], np.array([place]), [value], np.array([0]))[0])


class RunWriter:
    """Writes the runs of one task into one file, which exists from the first run on."""

    def __init__(self, folder: Path, file: str) -> None:
        self.file = file
        self._folder = folder
        self._path = folder / file
        self._sink: Sink | None = None

    def add(self, table: pa.Table) -> Stored:
        """Write a table that is sorted by `__h`; it is durable after `close`."""
        table = joined([table])
        with disk_errors(self._path):
            sink = self._sink = self._sink or Sink(self._create())
            if not sink.at:
                sink.write(MAGIC)
            sink.pad(ALIGNMENT)
            start, sink.checksum = sink.at, 0
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table, max_chunksize=max(1, table.num_rows))
            return Stored(0, self.file, start, sink.at - start, table.num_rows, sink.checksum)

    def close(self) -> None:
        """Bring the file and its name to the disk; every run that `add` has returned is durable now."""
        if self._sink is None:
            return
        sink, self._sink = self._sink, None
        with disk_errors(self._path):
            try:
                sink.sync()
            finally:
                sink.close()
            _sync_folder(self._path.parent)

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._abandon()

    def _abandon(self) -> None:
        """Nothing of the file will be committed: it goes."""
        if self._sink is not None:
            sink, self._sink = self._sink, None
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
                sink.close()

    def _create(self) -> BinaryIO:
        """A new file; that it is new is checked, because a name stands for its content for ever."""
        room = self._path.parent
        if not room.is_dir():
            room.mkdir(parents=True, exist_ok=True)
            for above in room.parents:
                _sync_folder(above)
                if above == self._folder:
                    break
        return open(self._path, "xb", buffering=1 << 16)


class RunCache:
    """The runs that this process has mapped, known by file, place and inode."""

    def __init__(self) -> None:
        self._runs: dict[tuple[Path, int], tuple[_Identity, Run]] = {}
        self._files: dict[Path, tuple[_Identity, pa.Buffer]] = {}

    def open(self, folder: Path, stored: Stored, *, verify: bool = False) -> Run:
        """The run, mapped; `Corrupt` if it is not what the catalog says.

        A run below 4 MB is checked against its checksum the first time, a larger one only in its size and
        structure unless `verify` asks for all of it.
        """
        path = folder / stored.file
        try:
            with disk_errors(path):
                status = os.stat(path)
        except FileNotFoundError as error:
            raise _damaged(stored, "it is missing") from error
        identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
        place = (path, stored.start)
        known = self._runs.get(place)
        if known is not None and known[0] == identity and not verify:
            return known[1]
        if stored.start + stored.bytes > status.st_size:
            raise _damaged(stored, f"it has {status.st_size} bytes and not {stored.start + stored.bytes}")
        run = _read(stored, self._mapped(path, identity, stored), verify)
        self._runs[place] = (identity, run)
        return run

    def keep(self, names: Iterable[str | tuple[str, int]]) -> None:
        """Forget all runs but these: a file stands for all its runs, a file and a start for one of them.

        What is forgotten is unmapped as soon as nobody holds a table of it.
        """
        wanted = set(names)
        for place, (_, run) in list(self._runs.items()):
            if not wanted & {run.stored.file, (run.stored.file, run.stored.start)}:
                self._runs.pop(place, None)
        used = {path for path, _ in list(self._runs)}
        for path in list(self._files):
            if path not in used:
                self._files.pop(path, None)

    def forget_removed(self) -> None:
        """Forget the runs whose files were removed: the disk has their space back when they are unmapped."""
        gone = {path for path in list(self._files) if not path.exists()}
        for place in list(self._runs):
            if place[0] in gone:
                self._runs.pop(place, None)
        for path in gone:
            self._files.pop(path, None)

    def __len__(self) -> int:
        return len(self._runs)

    def _mapped(self, path: Path, identity: _Identity, stored: Stored) -> pa.Buffer:
        known = self._files.get(path)
        if known is not None and known[0] == identity:
            return known[1]
        try:
            with disk_errors(path), pa.memory_map(str(path)) as file:
                content = file.read_buffer()
        except FileNotFoundError as error:
            raise _damaged(stored, "it is missing") from error
        if content[: len(MAGIC)].to_pybytes() != MAGIC:
            raise _damaged(stored, "it does not start like a file of runs")
        self._files[path] = (identity, content)
        return content


_Identity = tuple[int, int, int]


def _read(stored: Stored, content: pa.Buffer, verify: bool) -> Run:
    section = content.slice(stored.start, stored.bytes)
    verify = verify or stored.bytes < VERIFIED_BELOW
    if verify and zlib.crc32(section) != stored.checksum:
        raise _damaged(stored, "it does not match its checksum")
    try:
        with pa.ipc.open_stream(section) as stream:
            table = stream.read_all()
        field = table.schema.field(0)
        if field.name != HASH or field.type != pa.uint64() or table.num_rows != stored.rows:
            raise _damaged(stored, "it holds other rows")
        if any(column.num_chunks != 1 for column in table.columns):
            table = joined([table])
        if not verify:
            table.validate()
        return Run(stored, table)
    except (pa.ArrowException, OSError, KeyError, IndexError) as error:
        raise _damaged(stored, str(error)) from error


def _damaged(stored: Stored, why: str) -> Corrupt:
    return Corrupt(
        f"the run at {stored.start} in {stored.file} is damaged: {why}", hint=_HINT, file=stored.file
    )


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
