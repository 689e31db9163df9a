"""Cells: pieces of deltas as binary values, so that nodes of different schemas share one exchange.

A cell is (shard, node, port, blob). A blob is an Arrow IPC stream, or says where one is in a file. Cells of node
`RECEIPT` carry receipts on their way to the driver; they pass through every level as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from evert.trace.arrays import take_rows

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


def split(table: pa.Table, shards: int, bits: int) -> Iterator[tuple[int, pa.Table]]:
    """A table by shard. Each has a range of the hashes `__h`, so rows in their order are not copied."""
    hashes = table.column("__h").to_numpy()
    if bits > 32:
        hashes, bits = hashes >> np.uint64(bits - 32), 32
    of_row = hashes * np.uint64(shards) >> np.uint64(bits)
    if (of_row[1:] >= of_row[:-1]).all():
        ends = np.searchsorted(of_row, np.arange(shards), "right")
        pieces = [table.slice(start, end - start) for start, end in zip([0, *ends], ends, strict=False)]
    else:
        pieces = [take_rows(table, np.flatnonzero(of_row == shard)) for shard in range(shards)]
    yield from ((shard, piece) for shard, piece in enumerate(pieces) if piece.num_rows)


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
