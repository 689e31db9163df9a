"""What comes in: bodies within their limits, and the rows that are in them."""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pyarrow as pa

from evert.errors import BadOption, BadRow, Refused
from evert.log.topic import Topic
from evert.schema import arrow_json, decode
from evert.schema.fit_values import refuse_constant
from evert.schema.rows import from_values
from evert.schema.schema import Schema
from evert.serve.http import Call, HttpError

JSON = "application/json"
LINES = "application/x-ndjson"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
FORMATS = (JSON, LINES, CSV, ARROW)
_SAME = {"application/jsonl": LINES, "application/ndjson": LINES, "application/jsonlines": LINES}


class Waiting:
    """How many bytes of bodies are being worked on, all requests together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._now = 0

    def take(self, size: int) -> None:
        if self._now + size > self._most and self._now:
            raise HttpError(503, "busy", "the server has too much to do", hint="try again", wait=1)
        self._now += size

    def give(self, size: int) -> None:
        self._now -= size


@asynccontextmanager
async def body(call: Call) -> AsyncIterator[bytes]:
    """The whole body, unpacked; one that is too large is refused before it is read, if it says so."""
    most = call.server.limits.max_body
    said = call.header("content-length")
    if said is not None and said.isdecimal() and int(said) > most:
        raise _too_large(most)
    held = 0
    try:
        parts: list[bytes] = []
        async for piece in call.request.stream():
            if held + len(piece) > most:
                raise _too_large(most)
            call.server.waiting.take(len(piece))
            held += len(piece)
            parts.append(piece)
        yield _unpacked(b"".join(parts), call.header("content-encoding"), most)
    finally:
        call.server.waiting.give(held)


def _too_large(most: int) -> HttpError:
    return HttpError(413, "too_large", f"a body has at most {most:,} bytes", hint="send it in parts")


def _unpacked(packed: bytes, encoding: str | None, most: int) -> bytes:
    if encoding in (None, "", "identity"):
        return packed
    if encoding != "gzip":
        raise HttpError(
            415, "unsupported", f"a body cannot be packed with {encoding}", hint="gzip can be read"
        )
    unpacker = zlib.decompressobj(wbits=31)
    try:
        whole = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise Refused(f"the body is not gzip: {error}") from None
    if len(whole) > most:
        raise _too_large(most)
    if not unpacker.eof or unpacker.unused_data:
        raise Refused("the body is not one whole piece of gzip")
    return whole


def content_type(call: Call) -> str:
    """What the body is, of those that the endpoint takes."""
    given = (call.header("content-type") or JSON).partition(";")[0].strip().lower()
    given = _SAME.get(given, given)
    if given not in call.endpoint.takes:
        raise HttpError(
            415,
            "unsupported",
            f"a body of {given} is not taken",
            hint=f"there are {', '.join(call.endpoint.takes)}",
        )
    return given


async def json_body(call: Call) -> dict[str, Any]:
    """A body that is one JSON object, with no other names than its schema has."""
    content_type(call)
    async with body(call) as data:
        value = parsed(data)
    if not isinstance(value, dict):
        raise BadOption("the body is a JSON object")
    known = call.endpoint.body.get("properties", {})
    for name in value:
        if name not in known:
            raise BadOption(f"the body cannot have {name!r}", hint=f"there are {', '.join(known)}")
    for name in call.endpoint.body.get("required", ()):
        if name not in value:
            raise BadOption(f"the body lacks {name!r}")
    for name, inner in value.items():
        if not _fits(inner, known[name].get("type")):
            raise BadOption(f"{name} is no {known[name].get('type')}: {inner!r}")
    return value


_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
}


def _fits(value: Any, kind: str | None) -> bool:
    if kind is None:
        return True
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, _TYPES[kind]) and not isinstance(value, bool)


_parse = json.JSONDecoder(parse_constant=refuse_constant).decode


def parsed(data: bytes) -> Any:
    return _read(data, _parse)


def _read(data: bytes, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(data.decode())
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not JSON: {error}") from None


def rows(kind: str, data: bytes, topic: Topic) -> pa.Table:
    """The rows of a body, in the columns of a topic."""
    schema = topic.given if topic.kind == "stream" else topic.schema
    return table(kind, data, schema, topic.name, topic.key)


def table(kind: str, data: bytes, schema: Schema, name: str, required: Sequence[str]) -> pa.Table:
    if kind == ARROW:
        return _arrow(data)
    if kind == JSON:
        return of_json(_read(data, decode.json_reader(schema)), schema, name, required)
    if kind == LINES and (read := arrow_json.read(data, schema, required)) is not None:
        return read
    split = data.splitlines(keepends=kind == CSV)
    whole = max(len(split), 1)
    if kind == CSV:
        found = list(decode.csv(split, schema, topic=name, chunk=whole, required=required))
    else:
        found = list(decode.json_lines(split, schema, topic=name, chunk=whole, required=required))
    return found[0] if found else schema.arrow.empty_table()


def of_json(value: Any, schema: Schema, name: str, required: Sequence[str]) -> pa.Table:
    found = value if isinstance(value, list) else [value]
    for number, row in enumerate(found):
        if not isinstance(row, dict):
            raise BadRow(
                f"row {number} for {name} is no JSON object", topic=name, row=number, reason="no object"
            )
    return from_values(schema, schema.json_plan, found, topic=name, required=required)


def _arrow(data: bytes) -> pa.Table:
    """An Arrow stream, looked at from end to end: it may come from anybody."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            table = stream.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Refused(f"the body is not an Arrow stream: {error}") from None
    return table
