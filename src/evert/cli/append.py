"""`evert append`."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from typing import Any

import click

from evert.cli.appending import Asked, Tally, append_files, key_of, taken
from evert.cli.aside import set_aside_in
from evert.cli.base import Command, session, topic_argument
from evert.cli.output import answer
from evert.cli.replay import replay as replay_lines
from evert.cli.sources import STDIN, Reading, format_of
from evert.errors import EvertError


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
@click.option(
    "--producer", help="Together with --sequence: run again after a crash, nothing is appended twice."
)
@click.option(
    "--sequence", type=int, help="The producer's number for the first commit; it counts up from there."
)
@click.option(
    "--unmoved-since",
    type=int,
    metavar="POSITION",
    help="Only if the topic has no row after POSITION; one commit.",
)
@click.option("--unmoved-key", multiple=True, help="... or no row of this key; once for each of its columns.")
@click.option(
    "--set-aside",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Add lines that do not fit to FILE, with their reasons, and go on.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Try the lines that were set aside in FILE again; those that still do not fit stay in it.",
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
    replay: str | None,
    header: bool,
    delimiter: str | None,
    null: str,
    unmoved_key: tuple[str, ...],
    **asked: Any,
) -> None:
    """Append the rows in FILES, or in stdin, to TOPIC; rows of a table replace those of the same key.

    JSON lines, CSV (both also as .gz) or Parquet. Rows that trickle in through a pipe are committed within
    half a second; with --producer, --request-id or --unmoved-since only by their number.

    \b
    Example: evert append clicks today.jsonl
             tail -f app.log | evert append clicks
             evert append users users.csv --set-aside bad.jsonl
             evert append users --replay bad.jsonl
    """
    if replay is not None:
        others = (*files, *unmoved_key, set_aside, form, delimiter, *asked.values())
        if any(value is not None and value is not False for value in others):
            raise click.UsageError("--replay goes without files and other options")
        _replay(topic, replay)
        return
    names = files or (STDIN,)
    for name in names:
        form or format_of(name)
    if asked["unmoved_since"] is None and unmoved_key:
        raise click.UsageError("--unmoved-key needs --unmoved-since")
    if not files and sys.stdin.isatty():
        click.echo("reading rows from the terminal; end with Ctrl-D", err=True)
    tally, started = Tally(), time.monotonic()
    with session().open() as db:
        definition = db.definition(topic)
        request = Asked(**asked, unmoved_key=key_of(definition, unmoved_key))
        with set_aside_in(set_aside, definition.name, request.delete) as aside:
            reading = Reading(
                schema=taken(definition, request.delete),
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
                append_files(db, definition, names, reading, request, tally, aside)
            except EvertError as error:
                error.details |= {"appended": tally.rows, "appended_upto": tally.position}
                raise
            except KeyboardInterrupt:
                where = f"up to position {tally.position}"
                click.echo(f"interrupted after {tally.rows:,} rows, {where}", err=True)
                raise
    _finish(definition.name, tally, time.monotonic() - started, set_aside)


def _replay(topic: str, path: str) -> None:
    with session().open() as db:
        definition = db.definition(topic)
        done = replay_lines(db, definition, path)
    said = [f"appended {done.rows:,} rows to {definition.name}"]
    if done.position is not None:
        said.append(f" at position {done.position}")
    if done.repeated:
        said.append(f"; {done.repeated:,} were there already")
    remain = f"{done.remaining:,} lines remain in {path}" if done.remaining else f"{path} is done and gone"
    answer({"topic": definition.name, **asdict(done)}, f"{''.join(said)}; {remain}")


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
