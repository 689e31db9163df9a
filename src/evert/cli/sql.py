"""`evert sql`."""

from __future__ import annotations

import sys
from contextlib import suppress

import click

from evert.cli.base import Command, session, spark_starts
from evert.cli.failure import report
from evert.cli.output import Sheet
from evert.database import Database
from evert.errors import EvertError
from evert.plan.statements import CreateView, Explain, Refresh, Statement, finished, parse
from evert.statements import Result, each_result
from evert.values import dumps

STDIN = "-"
_PROMPT, _MORE = "evert> ", "    -> "
_LEAVE = {"exit", "quit", "\\q"}


@click.command(cls=Command)
@click.argument("text", required=False)
@click.option(
    "--file",
    "-f",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    help="Run the statements in this file; may be given several times.",
)
def sql(text: str | None, files: tuple[str, ...]) -> None:
    """Run statements such as CREATE MATERIALIZED VIEW, SHOW and EXPLAIN, separated by semicolons.

    They come from TEXT, from files, or from stdin (-). On a terminal, without any of them, it asks for
    statements; each ends with a semicolon.

    \b
    Example: evert sql "CREATE MATERIALIZED VIEW per_url AS SELECT url, count(*) AS n FROM clicks GROUP BY url"
             evert sql -f shop.sql
             evert sql "SHOW VIEWS" --json
    """
    if text is not None and files:
        raise click.UsageError("give statements or files of them, not both")
    with session().open() as db:
        if text is None and not files and sys.stdin.isatty():
            _converse(db)
        elif text is not None and text != STDIN:
            run_texts(db, [(None, text)])
        else:
            run_texts(db, read_files(files or (STDIN,)))


def read_files(names: tuple[str, ...]) -> list[tuple[str | None, str]]:
    """The texts of files, each with its name; that of stdin has none."""
    found: list[tuple[str | None, str]] = []
    for name in names:
        try:
            with click.open_file(name, encoding="utf-8-sig") as file:
                found.append((None if name == STDIN else name, file.read()))
        except UnicodeDecodeError as error:
            raise click.UsageError(f"{name} is not a text in UTF-8: {error}") from None
    return found


def run_texts(db: Database, texts: list[tuple[str | None, str]], *, quiet: bool = False) -> None:
    """Run all statements, and print what they say as they are done; none is run if one cannot be read."""
    read = [parse(text, source) for source, text in texts]
    _tell_of_spark([statement for statements in read for statement in statements])
    for source, text in texts:
        for result in each_result(db, text, source=source):
            if not quiet:
                show_result(result)


def _tell_of_spark(statements: list[Statement]) -> None:
    if any(isinstance(statement, CreateView | Explain | Refresh) for statement in statements):
        spark_starts()


def show_result(result: Result) -> None:
    """Print what a statement says."""
    if session().json:
        if not result.columns:
            click.echo(dumps({"kind": result.kind, "message": result.message}))
        for row in result.rows:
            click.echo(dumps(dict(zip(result.columns, row, strict=True))))
        return
    if result.message:
        click.echo(result.message, err=bool(result.columns) and not result.rows)
    if result.rows:
        Sheet(result.columns, null="-").write(result.rows)


def _converse(db: Database) -> None:
    """Take statements from a person at the terminal."""
    with suppress(ImportError):
        import readline  # noqa: F401  (it makes `input` edit lines and remember them)

    click.echo("Statements end with a semicolon; Ctrl-D leaves.", err=True)
    lines: list[str] = []
    while True:
        try:
            line = input(_MORE if lines else _PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            lines = []
            continue
        if not lines and line.strip().rstrip(";").lower() in _LEAVE:
            return
        lines = [*lines, line] if lines or line.strip() else []
        text = "\n".join(lines)
        if finished(text):
            lines = []
            _try(db, text)


def _try(db: Database, text: str) -> None:
    """Run what was typed; what goes wrong is told, and the conversation goes on."""
    try:
        _tell_of_spark(parse(text))
        for result in each_result(db, text):
            show_result(result)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
    except EvertError as error:
        report(error, ["--json"] if session().json else [])
