"""`evert lag`."""

from __future__ import annotations

from dataclasses import asdict

import click

from evert.cli.base import Command, complete_groups, session, topic_argument
from evert.cli.output import listing
from evert.errors import Expired


@click.command(cls=Command)
@topic_argument(required=False)
@click.option("--group", shell_complete=complete_groups, help="Only this consumer group.")
@click.option("--warn", is_flag=True, help="Exit with code 7 if there is a warning; for cron.")
@click.pass_context
def lag(ctx: click.Context, topic: str | None, group: str | None, warn: bool) -> None:
    """How far each consumer group is behind: in rows, in time, and until retention reaches it.

    Example: evert lag clicks --warn
    """
    with session().open() as db:
        found = [asdict(one) for one in db.lag(topic, group=group)]
    listing(found, tuple(found[0]) if found else (), empty="no group reads anything")
    if warn and any(one["warning"] for one in found):
        ctx.exit(Expired.exit_code)
