"""`evert ask`."""

from __future__ import annotations

import click

from evert.ask.scope import unique
from evert.cli.base import Command, session
from evert.cli.sql import STDIN, read_files
from evert.cli.views import hints_for_commands, print_rows

_SECONDS, _ROWS = 30.0, 100_000


@click.command(cls=Command)
@click.argument("query")
@click.option("--at", type=int, metavar="POSITION", help="Everything as it was at this position.")
@click.option("--limit", type=click.IntRange(0), metavar="N", help="Print at most N rows.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=_SECONDS,
    show_default=True,
    metavar="N",
    help="Give up after so long.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(0),
    default=_ROWS,
    show_default=True,
    metavar="N",
    help="Fail if the answer has more rows than this.",
)
def ask(query: str, at: int | None, limit: int | None, seconds: float, max_rows: int) -> None:
    """Answer QUERY, a SELECT of Spark SQL over topics and views, at one position and without Java.

    With - the query comes from stdin.

    \b
    Example: evert ask "SELECT country, count(*) AS n FROM customers GROUP BY country ORDER BY n DESC"
             evert ask "SELECT * FROM revenue JOIN rates USING (country)" --at 1200
             evert ask "SELECT max(_ingested_at) AS newest FROM clicks" --json
    """
    if query == STDIN:
        ((_, query),) = read_files((STDIN,))
    with session().open() as db, hints_for_commands():
        answer = db.ask(query, at=at, max_seconds=seconds, max_rows=max_rows)
    rows = answer.arrow().rename_columns(unique(answer.arrow().schema.names))
    total = rows.num_rows
    print_rows(rows if limit is None else rows.slice(0, limit))
    if session().json:
        return
    shown = f"{total:,} rows" if limit is None or limit >= total else f"{limit:,} of {total:,} rows"
    click.echo(f"at position {answer.position}: {shown}", err=True)
    for name, position in answer.positions.items():
        if position != answer.position:
            click.echo(f"{name} is shown as of position {position}", err=True)
