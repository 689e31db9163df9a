"""Files and pipes as blocks of rows.

A file is cut after every so many records, and always at the same places: a command that is run again with the
same producer and sequence finds its own blocks. What trickles in through a pipe is also cut by time, so that
a row does not wait for thousands of others.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from evert.cli.aside import SetAside
from evert.cli.lines import Held, Quiet, Records, arriving
from evert.errors import BadRow, Refused
from evert.schema import arrow_json, decode
from evert.schema.rows import to_table
from evert.schema.schema import Schema
from evert.values import dumps, rows_of

STDIN = "-"
_AS_JSON = {"format": "json"}

_ENDINGS = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Reading:
    """How the input is to be read."""

    schema: Schema
    topic: str
    size: int
    format: str | None = None
    live: bool = True
    header: bool = True
    delimiter: str | None = None
    null: str = ""
    set_aside: SetAside | None = None


@dataclass(frozen=True)
class Block:
    """Rows for one commit, the lines they came from, and how far in its file that is."""

    tables: tuple[pa.Table, ...]
    last: int
    done: int


def format_of(name: str) -> str:
    """
    >>> format_of("rows.csv.gz"), format_of("-")
    ('csv', 'json')
    """
    if name == STDIN:
        return "json"
    ending = Path(name.removesuffix(".gz")).suffix.lower()
    if ending not in _ENDINGS:
        raise Refused(
            f"cannot tell the format of {name} from its name", hint="give --format json, csv or parquet"
        )
    return _ENDINGS[ending]


def blocks(name: str, reading: Reading) -> Iterator[Block]:
    """The rows of a file, or of stdin."""
    form = reading.format or format_of(name)
    if form == "parquet":
        yield from _parquet(name, reading)
        return
    with _opened(name) as (stream, raw):
        lines = arriving(stream) if name == STDIN and reading.live else iter(stream)
        if form == "csv":
            delimiter = reading.delimiter or ("\t" if name.removesuffix(".gz").endswith(".tsv") else ",")
            pieces = _csv(name, lines, reading, delimiter)
        else:
            pieces = _json(name, lines, reading)
        for tables, last in pieces:
            yield Block(tables, last, 0 if name == STDIN else raw.tell())


@contextmanager
def _opened(name: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The stream to read lines from, and the file below it, whose place tells how far we are."""
    if name == STDIN:
        stream = sys.stdin.buffer
        yield stream, stream
        return
    with open(name, "rb") as raw:
        if name.endswith(".gz"):
            with gzip.open(raw, "rb") as unpacked:
                yield io.BufferedReader(unpacked, 1 << 20), raw
        else:
            yield raw, raw


Pieces = Iterator[tuple[tuple[pa.Table, ...], int]]
"""The tables of a block and the number of its last line."""


def _json(name: str, lines: Iterator[bytes | None], reading: Reading) -> Pieces:
    held = Held(reading.size)

    def decoded() -> tuple[tuple[pa.Table, ...], int]:
        first, block = held.take()
        read = arrow_json.read(b"".join(block), reading.schema)
        if read is not None:
            return (read,), held.first - 1
        with _placed(name, first - 1):
            found = decode.json_lines(
                block,
                reading.schema,
                topic=reading.topic,
                chunk=len(block),
                rejected=_shifted(reading.set_aside, name, first - 1, _AS_JSON),
            )
            return tuple(found), held.first - 1

    for line in lines:
        if held.waited() if line is None else held.add([line]):
            yield decoded()
    if held.lines:
        yield decoded()


def _csv(name: str, lines: Iterator[bytes | None], reading: Reading, delimiter: str) -> Pieces:
    source = Records(lines)
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    held = Held(reading.size)
    head: list[bytes] | None = None if reading.header else []
    read_as = {
        "format": "csv",
        "columns": list(reading.schema.names),
        "delimiter": delimiter,
        "null": reading.null,
    }

    def decoded() -> tuple[tuple[pa.Table, ...], int]:
        assert head is not None
        first, block = held.take()
        shift = first - 1 - len(head)
        with _placed(name, shift):
            found = decode.csv(
                [*head, *block],
                reading.schema,
                topic=reading.topic,
                header=reading.header,
                delimiter=delimiter,
                null=reading.null,
                chunk=len(block),
                rejected=_shifted(reading.set_aside, name, shift, read_as),
            )
            return tuple(found), held.first - 1

    while True:
        try:
            next(reader)
        except StopIteration:
            break
        except Quiet:
            if held.waited():
                yield decoded()
            continue
        except csv.Error:
            pass  # the decoder comes across it again, and knows what to say
        record = source.take()
        if head is None:
            head = record
            read_as["columns"] = _cells(head, delimiter)
            held.skip(len(record))
        elif held.add(record):
            yield decoded()
    if held.lines:
        yield decoded()


def _cells(record: list[bytes], delimiter: str) -> list[str]:
    """The cells of a record, as far as they can be read: the decoder says what is wrong with them."""
    text = b"".join(record).decode("utf-8", "replace").removeprefix("\ufeff")
    return next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), [])


def _parquet(name: str, reading: Reading) -> Iterator[Block]:
    import pyarrow.parquet as pq

    whole = pa.BufferReader(sys.stdin.buffer.read()) if name == STDIN else name
    try:
        with pq.ParquetFile(whole) as file:
            rows = 0
            size = 0 if name == STDIN else Path(name).stat().st_size
            for batch in file.iter_batches(batch_size=reading.size):
                table = pa.Table.from_batches([batch])
                with _placed(name, rows + 1, what="row"):
                    fitting = tuple(_fitting(name, table, reading, rows + 1))
                rows += table.num_rows
                yield Block(fitting, rows, size * rows // max(file.metadata.num_rows, 1))
    except pa.ArrowInvalid as error:
        raise Refused(f"{name} is not a Parquet file that can be read: {error}") from error


def _fitting(name: str, table: pa.Table, reading: Reading, first: int) -> Iterator[pa.Table]:
    """The rows that fit; the others are found by halving and set aside."""
    try:
        yield to_table(reading.schema, table, topic=reading.topic)
    except BadRow as error:
        if reading.set_aside is None:
            raise
        if table.num_rows == 1:
            raw = dumps(rows_of(table.to_batches()[0])[0])
            reading.set_aside(name, first, raw, _reason(error), _AS_JSON)
            return
        middle = table.num_rows // 2
        yield from _fitting(name, table.slice(0, middle), reading, first)
        yield from _fitting(name, table.slice(middle), reading, first + middle)


def _shifted(
    set_aside: SetAside | None, name: str, shift: int, read_as: Mapping[str, Any]
) -> decode.Rejected | None:
    if set_aside is None:
        return None
    return lambda number, raw, reason: set_aside(name, number + shift, raw, reason, read_as)


@contextmanager
def _placed(name: str, shift: int, what: str = "line") -> Iterator[None]:
    """Errors about a row of a block name the line of the file instead."""
    try:
        yield
    except BadRow as error:
        if "row" not in error.details:
            raise
        number = error.details["row"] + shift
        details = {k: v for k, v in error.details.items() if k != "row"} | {"file": name, what: number}
        where = "" if name == STDIN else f"{name}, "
        raise BadRow(f"{where}{what} {number}: {_reason(error)}", hint=error.hint, **details) from None


def _reason(error: BadRow) -> str:
    column = error.details.get("column")
    return (f"column {column}: " if column else "") + str(error.details.get("reason", error.message))
