"""Large cells in files of the epoch's folder: what crosses Spark's exchange is where they are.

An exchange copies its bytes six times between Python, the JVM and the disk. A file that one task writes and another
one maps is copied once. It is not synced: an epoch that breaks off is run again from the beginning.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from types import TracebackType

import pyarrow as pa

LARGE = 64 << 10
"""Smaller cells travel as they are."""

_MARK = b"@"
"""How a reference begins; an Arrow stream begins with 0xFF."""


class Spill:
    """One file of one task, made when the first large cell comes; within `with`."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder = folder
        self._name = name
        self._file: pa.NativeFile | None = None

    def blob(self, table: pa.Table) -> bytes | pa.Buffer:
        """A table as a cell's bytes: a reference if it is large."""
        if table.nbytes < LARGE:
            return to_blob(table)
        if self._file is None:
            path = Path(self._folder, self._name)
            path.touch(exist_ok=False)  # two writers of one file would overwrite each other
            self._file = pa.OSFile(str(path), "wb")
        start = self._file.tell()
        with pa.ipc.new_stream(self._file, table.schema) as writer:
            writer.write_table(table)
        return _MARK + pickle.dumps((self._name, start, self._file.tell() - start))

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


class Cellar:
    """The spilled cells that a task reads, each file mapped once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._mapped: dict[str, pa.Buffer] = {}

    def table(self, blob: pa.Buffer) -> pa.Table:
        """The table of a cell's bytes."""
        if blob.slice(0, 1).to_pybytes() == _MARK:
            name, start, size = pickle.loads(blob.slice(1))
            if name not in self._mapped:
                with pa.memory_map(str(Path(self._folder, name))) as file:
                    self._mapped[name] = file.read_buffer()
            blob = self._mapped[name].slice(start, size)
        with pa.ipc.open_stream(blob) as stream:
            return stream.read_all()


def to_blob(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()
