"""Cells: pieces of deltas as binary values, so that nodes of different schemas share one exchange.

A cell is (shard, node, port, blob). A blob is an Arrow IPC stream. Cells of node `RECEIPT` carry receipts on
their way to the driver; they pass through every level as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

RECEIPT = 0
MOST_ROWS = 65_536
CELL = pa.schema(
    [
        pa.field("shard", pa.int32()),
        pa.field("node", pa.int32()),
        pa.field("port", pa.int32()),
        pa.field("blob", pa.binary()),
    ]
)


class Cell(NamedTuple):
    """One row of the exchange."""

    shard: int
    node: int
    port: int
    blob: bytes | pa.Buffer


def to_blob(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def from_blob(blob: bytes | pa.Buffer) -> pa.Table:
    with pa.ipc.open_stream(blob) as stream:
        return stream.read_all()


def split(table: pa.Table, shards: int) -> Iterator[tuple[int, pa.Table]]:
    """A table by shard, which its hash `__h` decides."""
    if shards == 1 or table.num_rows == 0:
        yield 0, table
        return
    of_row = table.column("__h").to_numpy() % np.uint64(shards)
    for shard in np.unique(of_row):
        yield int(shard), table.take(pa.array(np.flatnonzero(of_row == shard)))


def to_batch(cells: list[Cell]) -> pa.RecordBatch:
    columns = [
        pa.array([cell.shard for cell in cells], pa.int32()),
        pa.array([cell.node for cell in cells], pa.int32()),
        pa.array([cell.port for cell in cells], pa.int32()),
        pa.array([memoryview(cell.blob) for cell in cells], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=CELL)


def read_cells(batches: Iterable[pa.RecordBatch]) -> Iterator[Cell]:
    """The cells in batches that have the columns of `CELL`, among others; rows without a node have none."""
    for batch in batches:
        shard, node, port, blob = (batch.column(name) for name in CELL.names)
        for row in np.flatnonzero(node.is_valid().to_numpy(zero_copy_only=False)):
            yield Cell(shard[row].as_py(), node[row].as_py(), port[row].as_py(), blob[row].as_buffer())
