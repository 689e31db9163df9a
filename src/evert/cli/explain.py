"""`evert explain`."""

from __future__ import annotations

import click

from evert.cli.base import Command, complete_views, session, spark_starts
from evert.cli.output import answer


@click.command(cls=Command)
@click.argument("target", metavar="NAME|SELECT", shell_complete=complete_views)
@click.option("--analyze", is_flag=True, help="Say what each node of the view did in the last epoch.")
def explain(target: str, analyze: bool) -> None:
    """How a view, or a query that could be one, is kept: its nodes, their state, and what is recomputed.

    \b
    Example: evert explain revenue
             evert explain --analyze revenue
             evert explain "SELECT url, count(*) FROM clicks GROUP BY url"
    """
    with session().open() as db:
        spark_starts()
        text = str(db.explain(target, analyze=analyze))
    answer({"target": target, "explanation": text}, text)
