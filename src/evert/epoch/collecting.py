"""The rows of a DataFrame, however many there are: tasks write them to files, and none passes the driver's JVM."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def collected(frame: DataFrame, folder: Path) -> pa.Table:
    """All rows; `folder` is one that all workers see, and nothing stays in it."""
    with tempfile.TemporaryDirectory(dir=folder.resolve()) as parts:
        written = frame.mapInArrow(partial(_written, folder=parts), "file string").collect()
        tables = [_mapped(Path(parts, row.file)) for row in written]
    if not tables:
        return frame.limit(0).toArrow()
    return pa.concat_tables(tables)


def _written(batches: Iterable[pa.RecordBatch], folder: str) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    task = TaskContext.get()
    name = f"{task.partitionId()}-{task.taskAttemptId()}.arrow"
    rows = iter(batches)
    first = next(rows, None)
    if first is None:
        return
    with pa.OSFile(str(Path(folder, name)), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
        writer.write_batch(first)
        for batch in rows:
            writer.write_batch(batch)
    yield pa.RecordBatch.from_pydict({"file": [name]})


def _mapped(path: Path) -> pa.Table:
    """The file's rows, which stay readable when its name is gone."""
    with pa.memory_map(str(path)) as source:
        return pa.ipc.open_file(source).read_all()
