"""`evert compact` and `evert maintain`."""

from __future__ import annotations

import click

from evert.cli.base import Command, session, topic_argument
from evert.cli.output import answer


@click.command(cls=Command)
@topic_argument()
def compact(topic: str) -> None:
    """Compact the table TOPIC now: the latest row of each key stays.

    Example: evert compact users
    """
    with session().open() as db:
        removed = db.compact(topic)
    answer({"topic": topic, "removed": removed}, f"{removed:,} rows of {topic} were replaced and are gone")


@click.command(cls=Command)
def maintain() -> None:
    """Do all upkeep now: seal tails, apply retention, compact, remove old files.

    A program that appends does this in the background; nothing has to call it.

    Example: evert maintain
    """
    with session().open() as db:
        db.maintain()
        position = db.position
    answer({"position": position}, f"everything is in order at position {position}")
