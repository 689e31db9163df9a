"""What every command shares: where the database is, and how the answer is written."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evert.catalog.sqlite import FILE
from evert.database import Database
from evert.database import open as open_database
from evert.errors import EvertError, NotADatabase, Refused

_KEY = "evert.session"
_STARTED = "evert.started"


@dataclass
class Session:
    """The options that are accepted before and after the name of any command."""

    db: str | None = None
    json: bool = False
    traceback: bool = False

    def folder(self) -> Path:
        """The database's folder: `--db`, else EVERT_DB, else the current folder if it holds a database."""
        named = self.db or os.environ.get("EVERT_DB")
        if named:
            return Path(named)
        if Path(FILE).exists():
            return Path()
        raise NotADatabase(
            "no database is named, and the current folder holds none",
            hint="give --db PATH, set EVERT_DB, or make one with `evert init PATH`",
        )

    def open(self) -> Database:
        return open_database(self.folder(), create=False)


def session() -> Session:
    """The session of the command that runs."""
    return _of(click.get_current_context())


def _of(ctx: click.Context) -> Session:
    found: Session = ctx.meta.setdefault(_KEY, Session())
    return found


def _set(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value and param.name:
        setattr(_of(ctx), param.name, value)


def _shared() -> list[click.Parameter]:
    return [
        click.Option(
            ["--db"],
            metavar="PATH",
            expose_value=False,
            callback=_set,
            is_eager=True,
            help="The database's folder (or set EVERT_DB; default: the current folder).",
            type=click.Path(file_okay=False),
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            expose_value=False,
            callback=_set,
            is_eager=True,
            help="Write JSON: one object a line, errors too.",
        ),
        click.Option(
            ["--traceback"],
            is_flag=True,
            expose_value=False,
            callback=_set,
            is_eager=True,
            help="Show where in the code an error came from (or set EVERT_TRACEBACK=1).",
        ),
    ]


class Command(click.Command):
    """A command with the shared options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_shared())


class Group(click.Group):
    """A family of commands, with the shared options."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_shared())


def spark_starts() -> None:
    """Spark takes seconds to start: say so, once, to a person who waits."""
    meta = click.get_current_context().meta
    if sys.stderr.isatty() and not session().json and not meta.get(_STARTED):
        click.echo("starting Spark …", err=True)
    meta[_STARTED] = True


def confirmed(question: str, yes: bool) -> None:
    """Go on only if the user said yes, on the command line or now."""
    if yes:
        return
    if session().json or not sys.stdin.isatty():
        raise Refused(f"{question} Nobody is there to ask.", hint="say yes with --yes")
    if not click.confirm(question, err=True):
        raise Refused("nothing was done")


def complete_topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Topic names for the shell. Never fails and never makes a database."""
    return _names(ctx, "SELECT name FROM topics ORDER BY name", incomplete)


def complete_views(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of views for the shell."""
    return _names(ctx, "SELECT name FROM views WHERE folded IS NOT NULL ORDER BY name", incomplete)


def complete_groups(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Names of consumer groups for the shell."""
    return _names(ctx, 'SELECT DISTINCT "group" FROM consumed ORDER BY 1', incomplete)


def _names(ctx: click.Context, sql: str, incomplete: str) -> list[str]:
    import sqlite3
    from contextlib import closing

    try:
        path = (_of(ctx).folder() / FILE).resolve()
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1)) as catalog:
            return [name for (name,) in catalog.execute(sql) if name.startswith(incomplete)]
    except (EvertError, OSError, sqlite3.Error):
        return []


def topic_argument(**options: Any) -> Callable[[Any], Any]:
    """The argument TOPIC, which the shell can complete."""
    return click.argument("topic", shell_complete=complete_topics, **options)
