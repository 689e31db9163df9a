"""The command `evert`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from evert.cli.base import Group
from evert.cli.failure import report
from evert.version import __version__

COMMANDS = {
    "init": "topics",
    "run": "run",
    "sql": "sql",
    "topics": "topics",
    "append": "append",
    "log": "log",
    "views": "views",
    "view": "replacing",
    "ask": "ask",
    "subscribe": "subscribe",
    "explain": "explain",
    "status": "status",
    "prove": "prove",
    "lag": "lag",
    "groups": "groups",
    "queue": "queue",
    "compact": "upkeep",
    "maintain": "upkeep",
    "serve": "serve",
    "tokens": "serve",
    "hooks": "serve",
    "demo": "demo",
    "doctor": "doctor",
    "completion": "completion",
}
"""The commands in the order of the help, and the modules of `evert.cli` that they are in."""


class Root(Group):
    """The commands, each imported when it is asked for, with one way to fail."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"evert.cli.{COMMANDS[cmd_name]}"), cmd_name)
        return command

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


class _Hidden(Exception):
    """Carries an error past click."""


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="evert", message="%(prog)s %(version)s")
def evert() -> None:
    """A durable log of changes, and views over it that are kept up to date.

    \b
    evert init shop
    evert --db shop topics create clicks "session STRING, url STRING"
    echo '{"session": "a", "url": "/"}' | evert --db shop append clicks
    evert --db shop sql "CREATE MATERIALIZED VIEW per_url AS SELECT url, count(*) AS n FROM clicks GROUP BY url"
    evert --db shop run --once
    evert --db shop view show per_url
    """


def main() -> NoReturn:
    evert.main(prog_name="evert")
