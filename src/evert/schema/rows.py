"""Rows as people have them, brought to exactly the columns of a topic or refused with row, column and reason.

Rows come as dicts or dataclass instances (one or many), Arrow tables, batches and readers, pandas or Polars
data frames, or anything that exports an Arrow stream. What is taken, and what is not:

- Unknown columns are refused, missing ones are NULL, NULL in a NOT NULL column is refused.
- Nothing loses digits: no rounding of decimals, no overflow, no float in an integer column (not even 1.0), no
  truncated text. The one exception: FLOAT holds the nearest single-precision number.
- `True` is not 1. An int is taken by DECIMAL, FLOAT and DOUBLE where it is exact (up to 2**53 for DOUBLE).
- Text in ISO 8601 is taken by dates, times and intervals of Python rows, and text by DECIMAL.
- A datetime without zone in a TIMESTAMP column is in UTC; one with a zone in TIMESTAMP_NTZ is refused.
- CHAR(n) is padded with blanks, as Spark does; lengths count characters.
- pandas: the index is ignored, and NaN, NaT and NA are NULL, also in a DOUBLE column. NaN in Python rows,
  in Arrow data and in Polars is NaN.
- The row that an error names is one that does not fit, not always the first such row of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, NoReturn

import pyarrow as pa

from evert.errors import BadRow
from evert.schema.digest import digest
from evert.schema.fit_arrow import Misfit, check, first_bad, first_true, needs_check, recast
from evert.schema.fit_values import Plan, as_mapping
from evert.schema.schema import Schema, columns_hint
from evert.schema.types import Column

__all__ = ["digest", "from_values", "keys_table", "to_table"]

_DICT = frozenset({dict})


def to_table(schema: Schema, rows: Any, *, topic: str, required: Sequence[str] = ()) -> pa.Table:
    """The rows as a table of exactly `schema.arrow`; BadRow if any does not fit, and then none is taken.

    `required` names columns that must not be NULL even where the schema allows it, as the key's. An
    iterator is read to its end, so it must end.
    """
    if isinstance(rows, list):
        return from_values(schema, schema.plan, rows, topic=topic, required=required)
    single = None if isinstance(rows, pa.Table | pa.RecordBatch) else as_mapping(rows)
    if single is not None:
        return from_values(schema, schema.plan, [single], topic=topic, required=required)
    if _is_pandas(rows):
        return _from_columns(schema, _pandas_columns(schema, rows, topic), len(rows), topic, required)
    arrow = _as_arrow(rows)
    if arrow is not None:
        columns = _arrow_columns(schema, arrow, topic)
        return _from_columns(schema, columns, arrow.num_rows, topic, required)
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise BadRow(
            f"rows for {topic} cannot be of class {type(rows).__name__}",
            hint="give dicts, dataclass instances, an Arrow table or a data frame",
            topic=topic,
        )
    return from_values(schema, schema.plan, list(rows), topic=topic, required=required)


def from_values(
    schema: Schema, plan: Plan, rows: list[Any], *, topic: str, required: Sequence[str] = ()
) -> pa.Table:
    """A table of rows that are mappings or dataclass instances, by one of the schema's plans."""
    if not _DICT.issuperset(map(type, rows)):
        rows = [_named(number, row, topic) for number, row in enumerate(rows)]
    unknown = plan.unknown(rows)
    if unknown is not None:
        _refuse(topic, unknown, hint=columns_hint(unknown.path, schema.names))
    try:
        arrays = plan.build(rows)
    except Misfit as miss:
        _refuse(topic, miss)
    _check_nulls(schema, arrays, topic, required)
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def keys_table(schema: Schema, keys: Any, key: tuple[str, ...], *, topic: str) -> pa.Table:
    """The keys of rows to delete, as a table of all columns of the schema in which only the key's are not
    NULL.

    A key is a scalar (where the key is one column), a tuple in the order of the key, or a dict; `keys` is one
    key, an iterable of keys, or a table or data frame. Columns besides the key's are refused.
    """
    part = Schema(tuple(schema.column(name) for name in key))
    given = keys if _is_pandas(keys) else _as_arrow(keys)
    if given is None:
        listed = [keys] if _is_one_key(keys, key) else _listed(keys)
        given = [_key_row(number, one, key, topic) for number, one in enumerate(listed)]
    table = to_table(part, given, topic=topic, required=key)
    arrays = [
        table.column(name) if name in key else pa.nulls(table.num_rows, schema.arrow.field(name).type)
        for name in schema.names
    ]
    fields = [field if field.name in key else field.with_nullable(True) for field in schema.arrow]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _is_one_key(keys: Any, key: tuple[str, ...]) -> bool:
    if isinstance(keys, tuple):
        inner = any(isinstance(part, tuple | list | Mapping) for part in keys)
        return 1 < len(key) == len(keys) and not inner
    if isinstance(keys, Mapping | str | bytes) or is_dataclass(keys):
        return True
    return not isinstance(keys, Iterable)


def _listed(keys: Any) -> Iterable[Any]:
    found: Iterable[Any] = keys.to_pylist() if isinstance(keys, pa.Array | pa.ChunkedArray) else keys
    return found


def _key_row(number: int, value: Any, key: tuple[str, ...], topic: str) -> Mapping[str, Any]:
    named = as_mapping(value)
    if named is not None:
        return named
    parts = value if isinstance(value, tuple | list) else (value,)
    if len(parts) != len(key):
        _refuse(topic, Misfit(number, ", ".join(key), f"the key has {len(key)} columns, not {len(parts)}"))
    return dict(zip(key, parts, strict=True))


def _named(number: int, row: Any, topic: str) -> Mapping[str, Any]:
    named = as_mapping(row)
    if named is None:
        reason = f"a row is a dict or a dataclass instance, not {type(row).__name__}"
        raise BadRow(f"row {number} for {topic}: {reason}", topic=topic, row=number, reason=reason)
    return named


def _refuse(topic: str, miss: Misfit, *, hint: str | None = None) -> NoReturn:
    raise BadRow(
        f"row {miss.row} for {topic}, column {miss.path}: {miss.reason}",
        hint=hint,
        topic=topic,
        row=miss.row,
        column=miss.path,
        reason=miss.reason,
    )


def _check_nulls(schema: Schema, arrays: Sequence[Any], topic: str, required: Sequence[str]) -> None:
    for column, array in zip(schema.columns, arrays, strict=True):
        if array.null_count and (not column.nullable or column.name in required):
            why = "the column is NOT NULL" if not column.nullable else "the column is part of the key"
            _refuse(topic, Misfit(first_true(array.is_null()), column.name, f"is NULL, and {why}"))


def _is_pandas(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "pandas" and hasattr(rows, "columns")


def _as_arrow(rows: Any) -> pa.Table | None:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        try:
            return pa.table(rows)
        except (pa.ArrowException, TypeError, ValueError):
            return None
    return None


def _check_labels(schema: Schema, names: Sequence[Any], topic: str) -> None:
    for place, name in enumerate(names):
        if name not in schema.names:
            hint = columns_hint(str(name), schema.names)
            _refuse(topic, Misfit(0, str(name), "is not a column of the topic"), hint=hint)
        if name in names[:place]:
            _refuse(topic, Misfit(0, str(name), "comes twice"))


def _arrow_columns(schema: Schema, table: pa.Table, topic: str) -> dict[str, pa.ChunkedArray]:
    _check_labels(schema, table.schema.names, topic)
    return {name: table.column(place) for place, name in enumerate(table.schema.names)}


def _pandas_columns(schema: Schema, frame: Any, topic: str) -> dict[str, pa.ChunkedArray]:
    """Columns of Python objects go the way of Python values, since what Arrow infers depends on the data."""
    names = list(frame.columns)
    _check_labels(schema, names, topic)
    builders = dict(schema.plan.builders)
    found = {}
    for name in names:
        series = frame[name]
        try:
            if series.dtype == object:
                pairs = zip(series.tolist(), series.isna().tolist(), strict=True)
                array = builders[name].build([None if missing else value for value, missing in pairs])
            else:
                array = pa.array(series, from_pandas=True)
        except Misfit as miss:
            _refuse(topic, miss.within(miss.row, name))
        except (pa.ArrowException, TypeError, ValueError) as error:
            _refuse(topic, Misfit(0, name, f"{series.dtype} cannot be read as Arrow: {error}"))
        found[name] = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return found


def _from_columns(
    schema: Schema, given: dict[str, pa.ChunkedArray], rows: int, topic: str, required: Sequence[str]
) -> pa.Table:
    columns = []
    for column in schema.columns:
        if column.name not in given:
            columns.append(pa.chunked_array([pa.nulls(rows, schema.arrow.field(column.name).type)]))
            continue
        try:
            columns.append(_fit_column(given[column.name], column))
        except Misfit as miss:
            _refuse(topic, miss.within(miss.row, column.name))
    _check_nulls(schema, columns, topic, required)
    return pa.Table.from_arrays(columns, schema=schema.arrow)


def _fit_column(data: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    checked = needs_check(column.type)
    before = 0
    chunks = []
    for chunk in data.chunks:
        try:
            _validate(chunk)
            fitted = recast(chunk, column.type)
            if checked:
                check(fitted, column.type)
        except Misfit as miss:
            raise miss.within(miss.row + before, "") from None
        chunks.append(fitted)
        before += len(chunk)
    return pa.chunked_array(chunks, type=column.type.arrow)


def _validate(chunk: pa.Array) -> None:
    try:
        chunk.validate(full=True)
    except pa.ArrowInvalid as error:
        reason = str(error)
        if "UTF8" not in reason:
            raise Misfit(0, "", f"holds a broken Arrow array: {reason}") from None
        row = first_bad(chunk, lambda part: part.validate(full=True))
        raise Misfit(row, "", "holds text that is not valid UTF-8") from None
