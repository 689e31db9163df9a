"""`evert queue`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import click

from evert.cli.base import Group, complete_groups, session, topic_argument
from evert.cli.options import Length
from evert.cli.output import answer, described, listing
from evert.database import Database
from evert.duration import seconds
from evert.errors import BadOption, NotFound
from evert.log.progress import topics_of
from evert.queue import Queue
from evert.values import as_json


@click.group(cls=Group)
def queue() -> None:
    """Treat a stream as a queue: each message goes to one taker, and comes again until it is acknowledged.

    \b
    Example: evert queue take jobs --json
             evert queue ack jobs RECEIPT
    """


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What all commands of a queue take."""
    for option in (
        click.option(
            "--max-attempts",
            type=click.IntRange(1),
            default=5,
            show_default=True,
            help="A message is a dead letter after this many deliveries; say the same in every command.",
        ),
        click.option(
            "--group",
            default="default",
            show_default=True,
            shell_complete=complete_groups,
            help="The queue's consumer group.",
        ),
        topic_argument(),
    ):
        command = option(command)
    return command


@queue.command()
@_options
@click.option("-n", "--count", type=click.IntRange(1), default=1, show_default=True, help="At most so many.")
@click.option(
    "--wait", type=Length(), default="0s", help="Wait so long for the first one, as in '10 seconds'."
)
@click.option(
    "--visibility", type=Length(), default="30 seconds", show_default=True, help="Until it comes again."
)
@click.option("--ordered", is_flag=True, help="Messages of one key come one at a time, in order.")
def take(
    topic: str, group: str, max_attempts: int, count: int, wait: str, visibility: str, ordered: bool
) -> None:
    """Take messages from the queue over TOPIC, and print them with their receipts.

    Example: evert queue take jobs -n 10 --visibility "5 minutes" --json
    """
    with session().open() as db:
        kind = _kind(db, topic, group)
        found = db.queue(
            topic,
            group=group,
            visibility=visibility,
            max_attempts=max_attempts,
            ordered=ordered or kind == "ordered queue",
        ).take(count, timeout=seconds(wait))
        schema = db.definition(topic).schema.arrow
    rows = [{**asdict(message), "row": as_json(message.row, schema)} for message in found]
    listing(rows, ("receipt", "attempts", "row"), empty="there is nothing to take")


@queue.command()
@_options
@click.argument("receipts", nargs=-1, required=True)
def ack(topic: str, group: str, max_attempts: int, receipts: tuple[str, ...]) -> None:
    """The messages of these RECEIPTS are done. All of them or none: exit code 6 if one no longer holds.

    Example: evert queue ack jobs 0.17.2f1c
    """
    with session().open() as db:
        _queue(db, topic, group, max_attempts).ack(receipts)
    answer({"topic": topic, "acknowledged": len(receipts)}, f"{len(receipts)} messages are done")


@queue.command()
@_options
@click.argument("receipts", nargs=-1, required=True)
@click.option("--reason", default="", help="Why; kept with the message.")
@click.option("--delay", type=Length(), default="0s", help="Deliver it again only after this.")
def refuse(
    topic: str, group: str, max_attempts: int, receipts: tuple[str, ...], reason: str, delay: str
) -> None:
    """Give the messages of these RECEIPTS back, to come again or to be dead letters.

    Example: evert queue refuse jobs 0.17.2f1c --reason "no such user" --delay "1 minute"
    """
    with session().open() as db:
        _queue(db, topic, group, max_attempts).refuse(receipts, reason, delay)
    answer({"topic": topic, "refused": len(receipts)}, f"{len(receipts)} messages are given back")


@queue.command()
@_options
def dead(topic: str, group: str, max_attempts: int) -> None:
    """The messages that were given up, with their last reason.

    Example: evert queue dead jobs
    """
    with session().open() as db:
        found = _queue(db, topic, group, max_attempts).dead()
        schema = db.definition(topic).schema.arrow
    rows = [{**asdict(letter), "row": as_json(letter.row, schema)} for letter in found]
    listing(rows, ("partition", "offset", "attempts", "reason", "row"), empty="there are no dead letters")


@queue.command()
@_options
@click.argument("offsets", nargs=-1, metavar="[[P:]OFFSET]...")
@click.option("--discard", is_flag=True, help="Remove them for good instead.")
def replay(topic: str, group: str, max_attempts: int, offsets: tuple[str, ...], discard: bool) -> None:
    """Make dead letters messages again: all of them, or those at OFFSETS (of partition P).

    Example: evert queue replay jobs 17 2:40
    """
    chosen = [_letter(text) for text in offsets] or None
    with session().open() as db:
        found = _queue(db, topic, group, max_attempts)
        count = found.discard_dead(chosen) if discard else found.replay(chosen)
    done = "discarded" if discard else "replayed"
    answer({"topic": topic, done: count}, f"{count} dead letters are {done}")


@queue.command()
@_options
def stats(topic: str, group: str, max_attempts: int) -> None:
    """How many messages are ready, out, delayed, held back and dead.

    Example: evert queue stats jobs
    """
    with session().open() as db:
        described(asdict(_queue(db, topic, group, max_attempts).stats()))


def _queue(db: Database, topic: str, group: str, max_attempts: int) -> Queue:
    """A queue that is there: asking about it must not make it."""
    kind = _kind(db, topic, group)
    if kind is None:
        raise NotFound(
            f"nobody has taken anything from {topic} as {group}",
            hint=f"evert queue take {topic} --group {group}",
            topic=topic,
            group=group,
        )
    return db.queue(topic, group=group, max_attempts=max_attempts, ordered=kind == "ordered queue")


def _kind(db: Database, topic: str, group: str) -> str | None:
    """How the group reads the topic, if it does."""
    definition = db.definition(topic)
    with db.catalog.read() as tx:
        return dict(topics_of(tx, group)).get(definition.id)


def _letter(text: str) -> int | tuple[int, int]:
    partition, colon, offset = text.rpartition(":")
    try:
        return (int(partition), int(offset)) if colon else int(offset)
    except ValueError:
        raise BadOption(
            f"cannot read the offset {text!r}", hint="write 17, or 2:17 for partition 2"
        ) from None
