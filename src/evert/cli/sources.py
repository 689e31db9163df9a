"""Files and pipes as blocks of rows.

A file is cut after every so many records, and always at the same places: a command that is run again with the
same producer and sequence finds its own blocks. What trickles in through a pipe is also cut by time, so that
a row does not wait for thousands of others.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
import pyarrow as pa

from evert.cli.values import dumps, rows_of
from evert.errors import BadRow, Refused
from evert.log import decode
from evert.log.rows import to_table
from evert.log.schema import Schema

STDIN = "-"
PATIENCE = 0.2
"""How many seconds a row from a live pipe waits for more."""

SetAside = Callable[[str, int, str, str], None]
"""Takes the file, the number of the line, the line, and why it does not fit."""

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
        raise Refused(f"cannot tell the format of {name} from its name", hint="give --format json, csv or parquet")
    return _ENDINGS[ending]


def blocks(name: str, reading: Reading) -> Iterator[Block]:
    """The rows of a file, or of stdin."""
    form = reading.format or format_of(name)
    if form == "parquet":
        yield from _parquet(name, reading)
        return
    with _opened(name) as (stream, raw):
        lines = _arriving(stream) if name == STDIN and reading.live else iter(stream)
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
        stream = click.get_binary_stream("stdin")
        yield stream, stream
        return
    with open(name, "rb") as raw:
        if name.endswith(".gz"):
            with gzip.open(raw, "rb") as unpacked:
                yield io.BufferedReader(unpacked, 1 << 20), raw  # type: ignore[type-var]
        else:
            yield raw, raw


def _arriving(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines as they come in, and None every now and then, so that somebody acts on what there is."""
    try:
        handle = stream.fileno()
    except (OSError, ValueError):
        yield from stream
        return
    rest: list[bytes] = []
    tick = time.monotonic() + PATIENCE
    while True:
        left = tick - time.monotonic()
        ready = select.select([handle], [], [], max(0.0, left))[0] if left > 0 else []
        if not ready:
            yield None
            tick = time.monotonic() + PATIENCE
            ready = select.select([handle], [], [], PATIENCE)[0]
            if not ready:
                continue
        piece = os.read(handle, 1 << 20)
        if not piece:
            break
        *whole, last = piece.splitlines(keepends=True) if b"\r" not in piece else _by_newline(piece)
        if whole or last.endswith(b"\n"):
            for line in [*whole, last]:
                if line.endswith(b"\n"):
                    yield b"".join([*rest, line])
                    rest = []
                else:
                    rest.append(line)
        else:
            rest.append(last)
    if rest:
        yield b"".join(rest)


def _by_newline(piece: bytes) -> list[bytes]:
    return [*(line + b"\n" for line in piece.split(b"\n"))][:-1] + [piece.rpartition(b"\n")[2]]
