"""`evert append`."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import click

from evert.cli.base import Command, session, topic_argument
from evert.cli.output import answer
from evert.cli.sources import STDIN, Block, Reading, blocks, format_of
from evert.database import Database
from evert.errors import BadOption, EvertError, Refused
from evert.log.rows import from_values
from evert.log.schema import Schema
from evert.log.topic import Topic


@dataclass
class Tally:
    """What has been done so far."""

    rows: int = 0
    repeated: int = 0
    dropped: int = 0
    set_aside: int = 0
    position: int | None = None


@dataclass(frozen=True)
class Asked:
    """What every commit of the command carries."""

    delete: bool
    request_id: str | None
    producer: str | None
    sequence: int | None
    unmoved_since: int | None
    unmoved_key: tuple[Any, ...] | None

    @property
    def one_commit(self) -> bool:
        """A request id names one commit, and a condition holds before the first one only."""
        return self.request_id is not None or self.unmoved_since is not None


@click.command(cls=Command)
@topic_argument()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option(
    "--format", "form", type=click.Choice(["json", "csv", "parquet"]), help="Default: by the file's name."
)
@click.option(
    "--batch", type=click.IntRange(1), default=10_000, show_default=True, help="Commit after this many rows."
)
@click.option("--delete", is_flag=True, help="Tables: the input has the keys of rows to delete.")
@click.option("--request-id", help="Append all of the input in one commit, and only once under this id.")
@click.option("--producer", help="Together with --sequence: run again after a crash, nothing is appended twice.")
@click.option("--sequence", type=int, help="The producer's number for the first commit; it counts up from there.")
@click.option(
    "--unmoved-since", type=int, metavar="POSITION", help="Only if the topic has no row after POSITION; one commit."
)
@click.option("--unmoved-key", multiple=True, help="... or no row of this key; once for each of its columns.")
@click.option(
    "--set-aside",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Add lines that do not fit to FILE, with their reasons, and go on.",
)
@click.option("--header/--no-header", default=True, help="CSV: whether the first line names the columns.")
@click.option("--delimiter", help="CSV: what separates cells [default: a comma, or a tab in .tsv].")
@click.option("--null", default="", help="CSV: the cell that means NULL [default: an empty one].")
def append(
    topic: str,
    files: tuple[str, ...],
    form: str | None,
    batch: int,
    set_aside: str | None,
    header: bool,
    delimiter: str | None,
    null: str,
    unmoved_key: tuple[str, ...],
    **asked: Any,
) -> None:
    """Append the rows in FILES, or in stdin, to TOPIC; rows of a table replace those of the same key.

    JSON lines, CSV (both also as .gz) or Parquet. Rows that trickle in through a pipe are committed within half
    a second; with --producer, --request-id or --unmoved-since only by their number.

    \b
    Example: evert append clicks today.jsonl
             tail -f app.log | evert append clicks
             evert append users users.csv --set-aside bad.jsonl
    """
    names = files or (STDIN,)
    for name in names:
        form or format_of(name)
    if asked["unmoved_since"] is None and unmoved_key:
        raise click.UsageError("--unmoved-key needs --unmoved-since")
    if not files and sys.stdin.isatty():
        click.echo("reading rows from the terminal; end with Ctrl-D", err=True)
    tally, started = Tally(), time.monotonic()
    with session().open() as db, _aside(set_aside) as aside:
        definition = db.definition(topic)
        request = Asked(**asked, unmoved_key=_key(definition, unmoved_key))
        reading = Reading(
            schema=_taken(definition, request.delete),
            topic=definition.name,
            size=batch,
            format=form,
            live=request.producer is None and not request.one_commit,
            header=header,
            delimiter=delimiter,
            null=null,
            set_aside=aside.write if set_aside else None,
        )
        try:
            _append(db, definition, names, reading, request, tally, aside)
        except EvertError as error:
            error.details |= {"appended": tally.rows, "appended_upto": tally.position}
            raise
        except KeyboardInterrupt:
            click.echo(f"interrupted after {tally.rows:,} rows, up to position {tally.position}", err=True)
            raise
    _finish(definition.name, tally, time.monotonic() - started, set_aside)


def _append(
    db: Database,
    topic: Topic,
    names: tuple[str, ...],
    reading: Reading,
    asked: Asked,
    tally: Tally,
    aside: Aside,
) -> None:
    total = sum(Path(name).stat().st_size for name in names if name != STDIN)
    together: list[Block] = []
    with _progress(total) as advance:
        for name in names:
            done = 0
            for block in blocks(name, reading):
                if asked.one_commit:
                    together.append(block)
                else:
                    aside.sync()
                    _commit(db, topic, [block], asked, tally)
                    if asked.sequence is not None:
                        asked = replace(asked, sequence=asked.sequence + 1)
                tally.set_aside = aside.count
                advance(block.done - done)
                done = block.done
        if together:
            aside.sync()
            _commit(db, topic, together, asked, tally)


def _commit(db: Database, topic: Topic, found: list[Block], asked: Asked, tally: Tally) -> None:
    tables = [table for block in found for table in block.tables if table.num_rows]
    if not tables:
        return
    retried = asked.producer is not None or asked.request_id is not None
    before = db.position if retried else 0
    tx = db.transaction(request_id=asked.request_id, producer=asked.producer, sequence=asked.sequence)
    for table in tables:
        if asked.delete:
            tx.delete(topic.name, table)
        elif topic.kind == "table":
            tx.upsert(topic.name, table)
        else:
            tx.append(topic.name, table)
    if asked.unmoved_since is not None:
        tx.require_unmoved(topic.name, asked.unmoved_since, key=asked.unmoved_key)
    position = tx.commit()
    rows = sum(table.num_rows for table in tables)
    if position is None:
        tally.dropped += rows
    elif position <= before:
        tally.repeated += rows
        tally.position = max(tally.position or 0, position)
    else:
        tally.rows += rows
        tally.position = position


def _finish(topic: str, tally: Tally, seconds: float, set_aside: str | None) -> None:
    speed = round(tally.rows / max(seconds, 1e-6))
    said = [f"appended {tally.rows:,} rows to {topic}"]
    if tally.position is not None:
        said.append(f"at position {tally.position}, {speed:,} rows/s")
    if tally.repeated:
        said.append(f"; {tally.repeated:,} were there already")
    if tally.dropped:
        said.append(f"; {tally.dropped:,} were dropped: the topic is full")
    if tally.set_aside:
        said.append(f"; {tally.set_aside:,} did not fit and are in {set_aside}")
    fields = {
        "topic": topic,
        "rows": tally.rows,
        "position": tally.position,
        "repeated": tally.repeated,
        "dropped": tally.dropped,
        "set_aside": tally.set_aside,
        "seconds": round(seconds, 3),
        "rows_per_second": speed,
    }
    answer(fields, " ".join(said).replace(" ;", ";"))


class Aside:
    """The lines that do not fit, on their way into a file that is made when the first one comes."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: IO[str] | None = None
        self.count = 0

    def write(self, name: str, line: int, raw: str, reason: str) -> None:
        assert self._path is not None
        if self._file is None:
            self._file = open(self._path, "a", encoding="utf-8")
        entry = {"file": name, "line": line, "reason": reason, "text": raw}
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        self.count += 1

    def sync(self) -> None:
        """They are safe before the rows around them are committed."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@contextmanager
def _aside(path: str | None) -> Iterator[Aside]:
    aside = Aside(path)
    try:
        yield aside
    finally:
        aside.close()


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """Shows how much of the files is done, on a terminal only."""
    if not total or session().json or not sys.stderr.isatty():
        yield lambda count: None
        return
    with click.progressbar(length=total, file=sys.stderr, label="appending") as bar:
        yield bar.update


def _taken(topic: Topic, delete: bool) -> Schema:
    """The columns that the input may have; those of the key are never NULL."""
    if delete and topic.kind != "table":
        raise Refused(f"{topic.name} is a stream: its rows are never deleted", topic=topic.name)
    columns = [replace(c, nullable=c.nullable and c.name not in topic.key) for c in topic.schema.columns]
    return Schema(tuple(c for c in columns if not delete or c.name in topic.key))


def _key(topic: Topic, texts: tuple[str, ...]) -> tuple[Any, ...] | None:
    """A key as its columns' texts, read as their types."""
    if not texts:
        return None
    if len(texts) != len(topic.key):
        wanted = ", ".join(topic.key) or "no column"
        raise BadOption(f"the key of {topic.name} is ({wanted}): give --unmoved-key {len(topic.key)} times")
    schema = Schema(tuple(topic.schema.column(name) for name in topic.key))
    row = dict(zip(topic.key, texts, strict=True))
    return tuple(from_values(schema, schema.text_plan, [row], topic=topic.name).to_pylist()[0].values())
