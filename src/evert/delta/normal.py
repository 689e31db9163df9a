"""Group keys as Spark shows them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.digest import valid
from evert.trace.arrays import one_chunk
from evert.trace.order import holds_floats


def with_normal_keys(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows with their keys as Spark shows them."""
    for place, name in enumerate(rows.column_names):
        if name in keys:
            rows = rows.set_column(place, rows.schema.field(place), normalised(one_chunk(rows.column(name))))
    return rows


def normalised(array: pa.Array) -> pa.Array:
    """The key as Spark shows it in a group: every NaN is the same NaN and -0.0 is 0.0, at any depth."""
    kind = array.type
    if not holds_floats(kind):
        return array
    if pa.types.is_floating(kind):
        plain = pc.fill_null(array, pa.scalar(0.0, kind)).to_numpy(zero_copy_only=False)
        numbers = plain + np.zeros(1, plain.dtype)
        numbers[np.isnan(numbers)] = np.nan
        present = valid(array)
        return pa.array(numbers, kind, mask=None if present is None else ~present)
    array = array.take(pa.array(np.arange(len(array))))
    if pa.types.is_struct(kind):
        parts = [normalised(array.field(place)) for place in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    if pa.types.is_map(kind):
        items = normalised(array.keys), normalised(array.items)
        return pa.MapArray.from_arrays(array.offsets, *items, type=kind, mask=array.is_null())
    return pa.ListArray.from_arrays(array.offsets, normalised(array.values), type=kind, mask=array.is_null())
