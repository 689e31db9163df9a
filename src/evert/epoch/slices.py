"""Row groups of segments that a task reads itself: what the driver writes down, and what the task finds."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evert.log.topic import INGESTED_AT, OFFSET, POSITION, WATERMARK
from evert.log.watermarks import History
from evert.trace.consolidate import WEIGHT

MOST_BYTES = 32 << 20
"""So much of a source is worked on at a time, and at least one slice."""

_STAMPS = (POSITION, OFFSET, INGESTED_AT)


@dataclass(frozen=True)
class Slice:
    """A row group of a segment as rows of a source.

    `columns` are the stored columns by their places in the source, None where nobody reads one. Rows of a segment
    without stamps have the position `first` and the time `at`, and offsets from `offset` on. `marks` are the
    watermarks of the stream, if its rows are to have them.
    """

    source: str
    schema: pa.Schema
    file: str
    group: int
    rows: int
    columns: tuple[str | None, ...]
    stamped: bool
    first: int
    at: int
    offset: int
    after: int
    upto: int
    marks: History | None = None
    repeating: tuple[str, ...] = ()
    """The columns of text that are kept as dictionaries: few values that come again and again."""

    def read(self, folder: Path) -> pa.Table:
        """The rows in the range, with the weight 1."""
        names = {name for name in self.columns if name is not None and (self.stamped or name not in _STAMPS)}
        names = (names | {POSITION} if self.stamped else names) - {WATERMARK}
        with pq.ParquetFile(
            folder / self.file,
            memory_map=True,
            page_checksum_verification=True,
            read_dictionary=list(self.repeating),
        ) as file:
            table = file.read_row_group(self.group, columns=sorted(names), use_threads=False)
        if self.stamped:
            low, high = np.searchsorted(table.column(POSITION).to_numpy(), [self.after, self.upto], "right")
            table = table.slice(low, high - low)
        count = table.num_rows if self.stamped else self.rows  # a table without columns has no rows
        pairs = zip(self.columns, self.schema, strict=True)
        arrays = [
            pa.nulls(count, field.type) if name is None else self._array(table, name, field.type)
            for name, field in pairs
        ]
        weights = pa.array(np.ones(count, np.int64))
        return pa.table([*arrays, weights], names=[*self.schema.names, WEIGHT])

    def _array(self, table: pa.Table, name: str, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
        if name in table.schema.names:
            column = table.column(name)
            late = pa.types.is_dictionary(column.type) and column.type.value_type == kind
            return column if late or column.type == kind else column.cast(kind)
        if name == WATERMARK and self.marks is not None:
            first = np.full(self.rows, self.first)
            return self.marks.before(table.column(POSITION).to_numpy() if self.stamped else first)
        if name == OFFSET:
            return pa.array(np.arange(self.offset, self.offset + self.rows))
        value = self.first if name == POSITION else self.at
        return pa.array(np.full(self.rows, value, np.int64)).cast(kind)


def gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables of one source, several at a time as one: the more rows meet, the fewer are left of them."""
    kept: list[pa.Table] = []
    for table in tables:
        if kept and sum(one.nbytes for one in (*kept, table)) > MOST_BYTES:
            yield _together(kept)
            kept = []
        kept.append(table)
    if kept:
        yield _together(kept)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables as one, whose dictionaries have become one too."""
    table = pa.concat_tables(tables)
    return table if len(tables) == 1 else table.unify_dictionaries().combine_chunks()


def leave(folder: Path, epoch: str, found: Sequence[Slice], tasks: int) -> None:
    """Write down for each of so many tasks what it reads, source by source, the largest slices first."""
    loads = [(0, task) for task in range(tasks)]
    shares: list[list[Slice]] = [[] for _ in range(tasks)]
    for one in sorted(found, key=lambda piece: (piece.source, -piece.rows)):
        load, task = heapq.heappop(loads)
        shares[task].append(one)
        heapq.heappush(loads, (load + one.rows, task))
    for task, share in enumerate(shares):
        Path(folder, f"{epoch}{task}.slices").write_bytes(pickle.dumps(share))


def share_of(folder: str, epoch: str, number: int) -> list[Slice]:
    """What one of the tasks reads."""
    path = Path(folder, f"{epoch}{number}.slices")
    share: list[Slice] = pickle.loads(path.read_bytes()) if path.exists() else []
    return share
