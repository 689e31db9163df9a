"""The algebra of deltas: plus, negate and consolidate, with no I/O.

consolidate:  c0 │ __w             c0 │ __w
              ───┼────             ───┼────
               a │  1               a │   3
               b │  1      ──>
               a │  2          b is gone: its weights add up to 0
               b │ -1
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.digest import whole
from evert.trace.arrays import arrays_of, one_chunk, take_rows
from evert.trace.grouping import grouped
from evert.trace.keys import hash_rows
from evert.trace.order import By, arranged

HASH = "__h"
WEIGHT = "__w"
GONE = "__gone"
PART_BYTES = 512 << 20
"""Rows of so many bytes are added up at a time, where there may be any number."""


def consolidate(rows: pa.Table, key: Sequence[str] | None = None, *, bits: int = 64) -> pa.Table:
    """Rows of equal content summed to one, those that sum to 0 dropped, sorted by `__h`.

    `__h` is the hash of the columns `key`, or of all columns; one that the rows bring along is not used.
    Content is every column but `__h` and `__w`, and exact: -0.0 is not 0.0 here.
    """
    hashed = with_hash(rows, content_of(rows) if key is None else key, bits=bits)
    return summed([hashed], whole_rows=key is None, stable=False, bits=bits)


def consolidate_in_parts(rows: pa.Table) -> pa.Table:
    """The same for rows of any size: all text of a column may not fit one array."""
    return pa.concat_tables(consolidated_parts(rows))


def consolidated_parts(rows: pa.Table, most: int | None = None) -> Iterator[pa.Table]:
    """The same a range of hashes at a time, of about so many bytes; there is always one, if of no rows."""
    parts = 1 + rows.nbytes // (most or PART_BYTES)
    if parts == 1:
        yield consolidate(rows)
        return
    of_row = np.empty(rows.num_rows, np.uint16 if parts <= 1 << 16 else np.uint64)
    done = 0
    for batch in rows.select(content_of(rows)).to_batches():
        upper = hash_rows(batch.columns, batch.num_rows) >> np.uint64(32)
        of_row[done : done + batch.num_rows] = upper * np.uint64(parts) >> np.uint64(32)
        done += batch.num_rows
    for part in range(parts):
        yield consolidate(rows.filter(pa.array(of_row == part)))


def merged(tables: Sequence[pa.Table], key: Sequence[str], *, bits: int) -> pa.Table:
    """The sum of tables that have `__h`, the hash of the columns `key`, and are sorted by it.

    Equal rows are found where one of them might take back another. Elsewhere they stay apart where there are few:
    to look for them costs a hash of all that is in the rows.
    """
    table = joined(tables)
    if _is_summed(table):
        return table
    names = content_of(table)
    whole_rows = set(names) <= set(key)
    found = grouped(
        hashes_of(table),
        arrays_of(table, names),
        exact=True,
        whole_rows=whole_rows,
        stable=True,
        bits=bits,
        needed=weights_of(table) < 0,
    )
    return _added_up(table, *found)


def summed(tables: Sequence[pa.Table], *, whole_rows: bool, stable: bool, bits: int) -> pa.Table:
    """The sum of tables that have `__h`: equal rows as one, zeros dropped, sorted by `__h`.

    `stable` makes the sort fast for tables that are sorted already.
    """
    table = joined(tables)
    if _is_summed(table):
        return table
    hashes = hashes_of(table)
    columns = arrays_of(table, content_of(table))
    order, starts = grouped(hashes, columns, exact=True, whole_rows=whole_rows, stable=stable, bits=bits)
    return _added_up(table, order, starts)


def summed_in_order(tables: Sequence[pa.Table], order: Sequence[By]) -> pa.Table:
    """The sum of tables that have `__h`: equal rows as one, zeros dropped, sorted by `__h` and the order."""
    table = joined(tables)
    if _is_summed(table):
        return table
    names = content_of(table)
    columns = dict(zip(names, arrays_of(table, names), strict=True))
    return _added_up(table, *arranged(hashes_of(table), columns, order))


def _is_summed(table: pa.Table) -> bool:
    """Whether all hashes differ and are in order, which is as good as a sum."""
    hashes = hashes_of(table)
    return bool((hashes[1:] > hashes[:-1]).all() and weights_of(table).all())


def plus(*tables: pa.Table) -> pa.Table:
    """All rows of the tables, with their weights; nothing is summed."""
    return pa.concat_tables(tables)


def negate(rows: pa.Table) -> pa.Table:
    """What takes these rows back."""
    place = rows.schema.get_field_index(WEIGHT)
    return rows.set_column(place, rows.schema.field(place), pc.negate(rows.column(place)))


def empty_like(rows: pa.Table) -> pa.Table:
    return rows.slice(0, 0)


def with_hash(rows: pa.Table, key: Sequence[str], *, bits: int = 64) -> pa.Table:
    """The rows with the hash of the key columns as their first column, in place of any they have."""
    plain = rows.drop_columns([HASH]) if HASH in rows.schema.names else rows
    hashes = hash_rows(arrays_of(rows, key), rows.num_rows, bits)
    return plain.add_column(0, pa.field(HASH, pa.uint64()), pa.array(hashes))


def with_weights(rows: pa.Table, weights: np.ndarray, *, like: pa.Schema) -> pa.Table:
    """The rows with these weights, the column `__w` where the schema has it."""
    place = like.get_field_index(WEIGHT)
    return rows.add_column(place, like.field(place), pa.array(weights, pa.int64()))


def sorted_by_hash(rows: pa.Table) -> pa.Table:
    """The rows in the order of `__h`, equal ones as they came; the same table if they are in order already."""
    hashes = hashes_of(rows)
    if (hashes[1:] >= hashes[:-1]).all():
        return rows
    return take_rows(rows, np.argsort(hashes, kind="stable"))


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """The tables below each other, each column in one chunk; they have the same columns."""
    table = tables[0]
    if len(tables) > 1:
        for other in tables:
            if other.schema.names != table.schema.names:
                raise ValueError(f"these tables differ: {table.schema.names} and {other.schema.names}")
        table = pa.concat_tables(tables, promote_options="default")
    if all(column.num_chunks == 1 for column in table.columns):
        return table
    return pa.Table.from_arrays([whole(column) for column in table.columns], schema=table.schema)


def hashes_of(rows: pa.Table) -> np.ndarray:
    """The column `__h`, not copied where it is in one chunk."""
    return np.asarray(one_chunk(rows.column(HASH)).to_numpy(zero_copy_only=True))


def weights_of(rows: pa.Table) -> np.ndarray:
    """The column `__w`, not copied where it is in one chunk."""
    return np.asarray(one_chunk(rows.column(WEIGHT)).to_numpy(zero_copy_only=True))


def content_of(rows: pa.Table) -> list[str]:
    """The names of all columns but `__h` and `__w`."""
    return [name for name in rows.schema.names if name not in (HASH, WEIGHT)]


def _added_up(table: pa.Table, order: np.ndarray, starts: np.ndarray) -> pa.Table:
    """The table in this order, each group of rows as its first one."""
    weights = weights_of(table)
    if len(starts) == len(order):
        kept, sums = order, weights[order]
    else:
        kept, sums = order[starts], np.add.reduceat(weights[order], starts)
    if not sums.all():
        present = sums != 0
        kept, sums = kept[present], sums[present]
    return with_weights(take_rows(table.drop_columns([WEIGHT]), kept), sums, like=table.schema)
