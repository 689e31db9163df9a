"""What every operator promises: deltas of its inputs go in, its own delta comes out.

A delta is a table with columns `c0`, `c1`, ... and the weight `__w`: +n inserts a row n times, -n deletes it n
times. Names are positions; the columns' real names exist only at a view's surface.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from evert.trace.arrays import decoded, take
from evert.trace.consolidate import WEIGHT

if TYPE_CHECKING:
    from evert.trace.shard import NodeState

PIECE_ROWS = 1 << 16
PIECE_BYTES = 16 << 20


class DataError(Exception):
    """The data make the node's result impossible; the message is a sentence."""


class Operator(Protocol):
    """One node kind. It is pickled into the workers, so it holds schemas and numbers, nothing that is open.

    What `prepare` gives is a cell: its first column is `__h`, the rest is known to this operator only. Not
    guaranteed: that a delta is consolidated. The usual mistake is to judge a weight before all pieces of an
    epoch have been summed.
    """

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        """The columns of each port's delta, without `__w`."""

    @property
    def output(self) -> pa.Schema:
        """The columns of the operator's own delta, without `__w`."""

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        """What crosses the exchange for this piece of a port's delta; may be called for many pieces."""

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        """The operator's delta in pieces, from all cells of one shard, one table (or None) a port.

        It is called once an epoch for every shard that any port has rows for, and for every shard in the
        node's first epoch. The state is complete only when the iterator is exhausted.
        """


def numbered(*schemas: pa.Schema) -> pa.Schema:
    """The fields of these schemas one after the other, named `c0`, `c1`, ...

    >>> numbered(pa.schema({"id": pa.int64()}), pa.schema({"id": pa.string()})).names
    ['c0', 'c1']
    """
    kinds = [field.type for schema in schemas for field in schema]
    return pa.schema([pa.field(f"c{place}", kind) for place, kind in enumerate(kinds)])


def with_weight(schema: pa.Schema) -> pa.Schema:
    """The schema of a delta of these columns."""
    return schema.append(pa.field(WEIGHT, pa.int64()))


def names_of(places: Sequence[int]) -> tuple[str, ...]:
    """The names of the columns at these places."""
    return tuple(f"c{place}" for place in places)


def fitted(rows: pa.Table, schema: pa.Schema, *, late: bool = False) -> pa.Table:
    """The columns of the schema, in exactly its types; with `late`, text may stay where it is.

    Whether a column may be NULL and how the item of a list is called differs between producers, and runs can
    only be merged if it does not.
    """
    if late:
        kinds = [rows.schema.field(field.name).type for field in schema]
        here = [pa.types.is_dictionary(kind) for kind in kinds]
        pairs = zip(schema, kinds, here, strict=True)
        schema = pa.schema([field.with_type(kind) if stays else field for field, kind, stays in pairs])
    else:
        rows = decoded(rows)
    if rows.schema.equals(schema):
        return rows
    arrays = [rows.column(field.name).cast(field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def weighted(arrays: Sequence[pa.Array], weights: np.ndarray) -> pa.Table:
    """A delta of these columns, in the order of their numbers."""
    names = names_of(range(len(arrays)))
    return pa.table([*arrays, pa.array(weights, pa.int64())], names=[*names, WEIGHT])


def one_by_one(columns: Sequence[pa.Array], places: np.ndarray, times: np.ndarray) -> Iterator[pa.Table]:
    """The rows at these places, each so many times, with the weight 1, in pieces."""
    if times.sum(dtype=np.float64) >= 2.0**63:
        raise DataError("there are more rows under a key than can be counted")
    ends = np.cumsum(times)
    total = int(ends[-1]) if len(ends) else 0
    step = rows_in(PIECE_BYTES, sum(column.nbytes for column in columns), len(columns[0]))
    for start in range(0, total, step):
        numbers = np.arange(start, min(start + step, total))
        at = places[np.searchsorted(ends, numbers, "right")]
        yield weighted([take(column, at) for column in columns], np.ones(len(at), np.int64))


def pieces(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables that are neither large nor tiny: they are cut, and small ones are put together."""
    kept: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        step = rows_in(PIECE_BYTES, table.nbytes, table.num_rows)
        for start in range(0, table.num_rows, step):
            piece = table.slice(start, step)
            if kept and (rows + piece.num_rows > PIECE_ROWS or size + piece.nbytes > PIECE_BYTES):
                yield pa.concat_tables(kept)
                kept, rows, size = [], 0, 0
            kept.append(piece)
            rows, size = rows + piece.num_rows, size + piece.nbytes
    if kept:
        yield pa.concat_tables(kept)


def rows_in(limit: int, size: int, rows: int) -> int:
    """How many rows make a piece of at most `limit` bytes, if so many rows have that size."""
    return max(1, min(PIECE_ROWS, limit * rows // max(1, size)))
