"""The options of topics as they are written on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from evert.duration import microseconds
from evert.errors import BadOption
from evert.size import size_of

NONE = "none"


class Size(click.ParamType):
    """Bytes: `5000000`, `5 MB`, `4 GiB`, or `none`."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NONE or not isinstance(value, str):
            return value
        try:
            return size_of(value)
        except BadOption as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)


class Length(click.ParamType):
    """A duration: `7 days`, `90s`, or `none`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NONE:
            return value
        try:
            microseconds(value)
        except BadOption as error:
            self.fail(f"{error.message}; {error.hint}", param, ctx)
        return value


class Rows(click.ParamType):
    """A number of rows, or `none`."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == NONE else click.INT.convert(value, param, ctx)


_OPTIONS = (
    click.option("--retain", type=Length(), help="Remove rows that are older than this, as in '7 days'."),
    click.option(
        "--retain-bytes", type=Size(), help="Remove the oldest rows beyond this size, as in '5 GB'."
    ),
    click.option("--history", type=Length(), help="Tables: keep replaced rows for this long."),
    click.option("--tombstones", type=Length(), help="Tables: keep deletes for this long."),
    click.option(
        "--when-full",
        type=click.Choice(["buffer", "block", "drop"]),
        help="What an append does when the slowest consumer group is --capacity rows behind.",
    ),
    click.option("--capacity", type=Rows(), help="How many rows the slowest consumer group may be behind."),
    click.option("--max-bytes", type=Size(), help="Refuse appends beyond this size."),
    click.option("--block-timeout", type=Length(), help="How long an append waits under --when-full block."),
    click.option("--comment", help="What the topic is, for people."),
    click.option("--event-time", metavar="COLUMN", help="The column that says when an event happened."),
    click.option("--lateness", type=Length(), help="How long to wait for events that come late."),
    click.option(
        "--late",
        type=click.Choice(["correct", "drop"]),
        help="Events that are later than that: they correct the views, or are set aside in <topic>.late.",
    ),
    click.option("--source", metavar="COLUMN", help="The column that says who sent an event."),
    click.option(
        "--occurred", metavar="COLUMN", help="The column with an event's time, by its source's clock."
    ),
    click.option("--sent", metavar="COLUMN", help="The column with the time it was sent, by the same clock."),
    click.option(
        "--received",
        metavar="COLUMN",
        help="The column with the time it came; without it, the time of the append.",
    ),
    click.option("--min-delay", type=Length(), help="The most that the quickest messages of a source take."),
    click.option(
        "--idle-after", type=Length(), help="A source that is silent for so long is not waited for."
    ),
    click.option(
        "--forget-after", type=Length(), help="Events that are later by more than this are always set aside."
    ),
)


def topic_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that `topics create` and `topics alter` share."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that the user mentioned; `none` takes a bound away."""
    return {name: None if value == NONE else value for name, value in options.items() if value is not None}
