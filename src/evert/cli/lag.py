"""`evert lag`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from evert.cli.base import Command, complete_groups, session, topic_argument
from evert.cli.output import listing
from evert.errors import Expired, NotFound
from evert.log.lag import Lag

_SHOWN = ("group", "topic", "partition", "rows behind", "seconds", "seconds left", "warning")


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
        found = db.lag(topic, group=group)
    if group is not None and not found:
        raise NotFound(
            f"the group {group} reads nothing of it", hint="see the groups with `evert groups`", group=group
        )
    listing([_shown(one) for one in found], _SHOWN, empty="no group reads anything")
    if warn and any(one.warning for one in found):
        ctx.exit(Expired.exit_code)


def _shown(one: Lag) -> dict[str, Any]:
    if session().json:
        return asdict(one)
    return {
        "group": one.group,
        "topic": one.topic,
        "partition": one.partition,
        "rows behind": one.events,
        "seconds": round(one.seconds, 1),
        "seconds left": None if one.expires_in is None else round(one.expires_in),
        "warning": one.warning or "",
    }
