"""What goes out: rows as JSON, CSV or an Arrow stream, with the position that they are right for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import csv
from starlette.responses import Response, StreamingResponse

from evert.schema.from_arrow import type_from_arrow
from evert.serve.bodies import ARROW, CSV, JSON
from evert.serve.http import Call, HttpError, Param
from evert.values import cell, column_of, converter, dumps, rows_of

FORMATS = {"json": JSON, "csv": CSV, "arrow": ARROW}
FORMAT = Param("format", "the format of the answer, in place of the header Accept", choices=tuple(FORMATS))
POSITION = "Evert-Position"
_PIECE = 5_000


def wanted(call: Call) -> str:
    """The content type that the caller asks for: by `format`, else by `Accept`, else JSON."""
    named = call.query.get("format")
    if named is not None:
        return FORMATS[named]
    accept = call.header("accept") or "*/*"
    asked = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    for kind in asked:
        if kind in FORMATS.values():
            return kind
    if any(kind in ("", "*/*", "application/*") for kind in asked):
        return JSON
    if "text/*" in asked:
        return CSV
    raise HttpError(
        406, "not_acceptable", f"there is no {accept}", hint=f"there are {', '.join(FORMATS.values())}"
    )


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    """The columns with their types as Spark says them."""
    return [{"name": one.name, "type": type_from_arrow(one.type, one.name).ddl()} for one in schema]


def answer(call: Call, rows: pa.Table, position: int, told: Mapping[str, Any]) -> Response:
    """Rows in the format that was asked for; in JSON beside what else is `told`."""
    kind = wanted(call)
    headers = {POSITION: str(position)}
    if kind == ARROW:
        return Response(_arrow(rows), headers=headers, media_type=ARROW)
    if kind == CSV:
        return Response(_csv(rows), headers=headers, media_type=f"{CSV}; charset=utf-8")
    said = dict(told) | {"position": position, "columns": columns_of(rows.schema)}
    return StreamingResponse(_json(said, rows), headers=headers, media_type=JSON)


def _json(told: Mapping[str, Any], rows: pa.Table) -> Iterator[str]:
    """The object piece by piece, so that a large answer is never there as text all at once."""
    yield dumps(dict(told))[:-1] + ', "rows": ['
    first = True
    for batch in rows.to_batches(max_chunksize=_PIECE):
        text = ", ".join(map(dumps, rows_of(batch)))
        if text:
            yield text if first else ", " + text
            first = False
    yield "]}"


def _arrow(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _csv(rows: pa.Table) -> bytes:
    """Cells as `evert append` reads them: what CSV has no form for is JSON, or text as in JSON."""
    columns = [_cells(column) for column in rows.columns]
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_arrays(columns, names=rows.column_names), sink)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _cells(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if converter(column.type) is None and not pa.types.is_nested(column.type):
        return column
    texts = [None if value is None else cell(value) for chunk in column.chunks for value in column_of(chunk)]
    return pa.chunked_array([pa.array(texts, pa.string())])
