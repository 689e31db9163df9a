"""`evert groups`."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict

import click

from evert.cli.base import Group, complete_groups, complete_topics, confirmed, session
from evert.cli.output import answer, listing
from evert.cli.times import moment


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def groups(ctx: click.Context) -> None:
    """Show the consumer groups with their members, or move one.

    Example: evert groups
    """
    if ctx.invoked_subcommand is not None:
        return
    with session().open() as db:
        found = [asdict(one) for one in db.groups()]
    if not session().json:
        found = [
            {
                "group": one["group"],
                "kind": one["kind"],
                "topics": ", ".join(one["topics"]),
                "members": ", ".join(member["member"] for member in one["members"]) or "-",
            }
            for one in found
        ]
    listing(found, ("group", "kind", "topics", "members"), empty="there are no consumer groups")


@groups.command()
@click.argument("group", shell_complete=complete_groups)
@click.option(
    "--to", required=True, metavar="PLACE", help="earliest, latest, a position (the rows after it) or a time."
)
@click.option("--topic", shell_complete=complete_topics, help="Only in this topic.")
@click.option("--force", is_flag=True, help="Even if members are alive; they are fenced.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(group: str, to: str, topic: str | None, force: bool, yes: bool) -> None:
    """Let GROUP read from another place on.

    \b
    Example: evert groups reset billing --to earliest --yes
             evert groups reset billing --to "2 hours ago"
    """
    with session().open() as db:
        where = _place(to, db.clock.now())
        confirmed(f"{group} will go on reading at {to}. Move it?", yes)
        db.reset(group, where, topic=topic, force=force)
    answer({"group": group, "to": to, "topic": topic}, f"{group} reads on from {to}")


def _place(text: str, now: int) -> str | int | dt.datetime:
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return word
    if word.isdigit():
        return int(word)
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=moment(text, now))
