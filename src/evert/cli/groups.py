"""`evert groups`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import asdict

import click
import pyarrow as pa

from evert.cli.base import Group, complete_groups, complete_topics, confirmed, session
from evert.cli.options import Length
from evert.cli.output import answer, listing
from evert.cli.show import check_reader, show_rows
from evert.cli.times import moment
from evert.duration import seconds
from evert.log.groups import matching


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


@groups.command()
@click.argument("group", shell_complete=complete_groups)
@click.argument("topics", nargs=-1, required=True, shell_complete=complete_topics)
@click.option(
    "--max-rows", type=click.IntRange(1), default=100, show_default=True, help="At most so many at once."
)
@click.option("--commit", is_flag=True, help="Store how far it got once the rows are written.")
@click.option("--follow", "-f", is_flag=True, help="Wait for more rows, until interrupted.")
@click.option("--wait", type=Length(), default="1 second", show_default=True, help="Wait so long for rows.")
@click.option("--bare", is_flag=True, help="Without the columns that the log adds.")
def consume(
    group: str, topics: tuple[str, ...], max_rows: int, commit: bool, follow: bool, wait: str, bare: bool
) -> None:
    """Print the next rows that GROUP has not read of TOPICS, which may be patterns such as 'click*'.

    Without --commit the same rows come again the next time.

    Example: evert groups consume billing orders --commit --json
    """
    with session().open() as db, db.consumer(group, topics) as member:

        def rows() -> Iterator[tuple[str, pa.RecordBatch]]:
            while True:
                for batch in member.poll(seconds(wait), max_rows):
                    yield batch.topic, batch.rows
                if commit:
                    member.commit()
                if not follow:
                    return
                check_reader()

        show_rows(
            rows(), {topic.name: topic for topic in matching(db.log.topics().values(), topics)}, bare=bare
        )


def _place(text: str, now: int) -> str | int | dt.datetime:
    word = text.strip().lower()
    if word in ("earliest", "latest"):
        return word
    if word.isdigit():
        return int(word)
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=moment(text, now))
