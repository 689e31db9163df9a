"""Proving a view: its rows are compared with plain Spark SQL over the log at its position."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.epoch import recompute
from evert.epoch.collecting import collected
from evert.errors import BadQuery
from evert.plan.catalyst import Catalyst
from evert.trace.consolidate import consolidate_in_parts
from evert.trace.keys import same_rows
from evert.views.definition import Definition

if TYPE_CHECKING:
    from evert.database import Database
    from evert.epoch.planning import Planning

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Proof:
    """What comparing found: rows that the view lacks, and rows that it should not have."""

    view: str
    position: int
    rows: int
    missing: pa.Table
    unexpected: pa.Table
    estimates: tuple[str, ...] = ()
    """Columns that were left out: they come from sketches, which tell the truth but for an error."""

    @property
    def holds(self) -> bool:
        return not self.missing.num_rows and not self.unexpected.num_rows


def prove(db: Database, planning: Planning, view: Definition) -> Proof:
    """Recompute a view from the log alone and compare; floating point within 1e-9, all else exactly."""
    from pyspark.errors import PySparkException

    position, kept = _kept(db, view)
    plan = planning.plan(view)
    frame = recompute.answer(db, planning, view, plan, position, from_log=True)
    try:
        with Catalyst.quietly():
            expected = _as(collected(frame, db.path), kept.schema)
    except PySparkException as error:
        raise BadQuery(f"the view {view.name} cannot be recomputed: {error}", view=view.name) from error
    expected, kept = (_exact(rows, plan.estimates) for rows in (expected, kept))
    missing, unexpected = difference(expected, kept)
    return Proof(view.name, position, kept.num_rows, missing, unexpected, plan.estimates)


def _exact(rows: pa.Table, estimates: Collection[str]) -> pa.Table:
    """The rows without columns that are estimates; if there are no others, how many there are."""
    if set(rows.column_names) <= set(estimates):
        return pa.table({"row": np.ones(rows.num_rows, np.int64)})
    return rows.drop_columns([name for name in rows.column_names if name in estimates])


def _kept(db: Database, view: Definition) -> tuple[int, pa.Table]:
    """What readers of the view get now; of one that has stopped, what they got last."""
    if view.state == "live":
        answer = db.views[view.name].answer()
        return answer.position, answer.rows
    return view.position, recompute.kept(db, view.name, view.position)


def difference(expected: pa.Table, kept: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What is only in the one and only in the other, but for noise in floating point numbers."""
    names = [f"c{i}" for i in range(expected.num_columns)]
    weights = np.concatenate([np.ones(expected.num_rows, np.int64), -np.ones(kept.num_rows, np.int64)])
    both = pa.concat_tables([expected.rename_columns(names), kept.rename_columns(names)])
    left = consolidate_in_parts(both.append_column("__w", pa.array(weights)))
    sign = left.column("__w").to_numpy()
    missing, unexpected = (_repeated(left.filter(pa.array(side)), names) for side in (sign > 0, sign < 0))
    missing, unexpected = _without_noise(missing, unexpected)
    return missing.rename_columns(expected.column_names), unexpected.rename_columns(expected.column_names)


def _repeated(rows: pa.Table, names: list[str]) -> pa.Table:
    times = np.abs(rows.column("__w").to_numpy())
    return rows.select(names).take(pa.array(np.repeat(np.arange(rows.num_rows), times)))


def _without_noise(missing: pa.Table, unexpected: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Pairs of rows that differ in nothing but the last digits of floating point numbers are no difference."""
    floats = [f.name for f in missing.schema if pa.types.is_floating(f.type)]
    if not floats or missing.num_rows != unexpected.num_rows or not missing.num_rows:
        return missing, unexpected
    order = [
        (name, "ascending") for name in missing.column_names if _sortable(missing.schema.field(name).type)
    ]
    order.sort(key=lambda pair: pair[0] in floats)
    a, b = missing.sort_by(order).combine_chunks(), unexpected.sort_by(order).combine_chunks()
    everywhere = np.arange(a.num_rows)
    exact = [name for name in a.column_names if name not in floats]
    columns = [[_whole(t.column(name)) for name in exact] for t in (a, b)]
    same = same_rows(columns[0], everywhere, columns[1], everywhere) if exact else np.ones(a.num_rows, bool)
    for name in floats:
        x, y = (pc.cast(t.column(name), pa.float64()).to_numpy(zero_copy_only=False) for t in (a, b))
        nulls = [t.column(name).is_null().to_numpy(zero_copy_only=False) for t in (a, b)]
        close = np.isclose(x, y, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True) | (x == y)
        same &= close & (nulls[0] == nulls[1])
    keep = pa.array(~same)
    return a.filter(keep), b.filter(keep)


def _sortable(kind: pa.DataType) -> bool:
    return not pa.types.is_nested(kind) and not pa.types.is_null(kind)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [column.cast(field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
