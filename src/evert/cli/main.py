"""The command `evert`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from evert.cli import append, completion, doctor, groups, lag, log, queue, topics, upkeep
from evert.cli.base import Group
from evert.cli.failure import report
from evert.version import __version__


class Root(Group):
    """The commands, with one way to fail."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            result = super().main(words, *rest, **extra)
            sys.stdout.flush()
        except SystemExit:
            raise
        except BaseException as error:
            sys.exit(
                report(error.__cause__ if isinstance(error, _Hidden) and error.__cause__ else error, words)
            )
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """As in click, but without click's own exit code for a broken pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _Hidden from error


class _Hidden(Exception):  # noqa: N818
    """Carries an error past click."""


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="evert", message="%(prog)s %(version)s")
def evert() -> None:
    """A durable log of changes, and views over it that are kept up to date.

    \b
    evert init shop
    evert --db shop topics create clicks "session STRING, url STRING"
    echo '{"session": "a", "url": "/"}' | evert --db shop append clicks
    evert --db shop log clicks --follow
    """


for command in (
    topics.init,
    topics.topics,
    append.append,
    log.log,
    lag.lag,
    groups.groups,
    queue.queue,
    upkeep.compact,
    upkeep.maintain,
    doctor.doctor,
    completion.completion,
):
    evert.add_command(command)


def main() -> NoReturn:
    evert.main(prog_name="evert")
