"""`evert views` and `evert view`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from evert.cli.base import Command, Group, complete_views, confirmed, session
from evert.cli.output import Sheet, answer, listing
from evert.cli.status import called, note
from evert.database import Database
from evert.errors import BadOption, NoReplacement, NotReady, Stopped
from evert.log.names import folded
from evert.schema.from_arrow import type_from_arrow
from evert.schema.rows import from_values
from evert.schema.schema import Schema
from evert.schema.types import Column
from evert.values import dumps, rows_of
from evert.views import definition as definitions
from evert.views.definition import Definition, unknown

if TYPE_CHECKING:
    from evert.views import View
    from evert.views.status import ViewStatus

_SHOWN = ("view", "state", "position", "rows", "key", "group", "kept")
_PIECE = 1_000


def view_argument(**options: Any) -> Callable[[Any], Any]:
    """The argument NAME of a view, which the shell can complete."""
    return click.argument("name", shell_complete=complete_views, **options)


def find_view(db: Database, name: str) -> View:
    """The view of this name, whatever its case."""
    views = db.views
    for known, view in views.items():
        if folded(known) == folded(name):
            return view
    raise unknown(name, list(views))


@click.command(cls=Command)
def views() -> None:
    """List the views: state, position, rows, key, and whether they are kept incrementally.

    Example: evert views
    """
    with session().open() as db:
        states = db.status()
        with db.catalog.read() as tx:
            known = {(one.name, not one.current, one.held): one for one in definitions.all(tx)}
        pairs = [(one, known.get((one.name, one.replacing, one.held))) for one in states]
        found = [_listed(one, view) for one, view in pairs if view is not None]
    listing(found, _SHOWN, empty="there are no views yet; make one with `evert sql`")
    if not session().json:
        for line in filter(None, map(note, states)):
            click.echo(line, err=True)


@click.group(cls=Group)
def view() -> None:
    """Show the rows of a view, drop it, let a stopped one go on, and see to its replacement.

    Example: evert view show revenue
    """


@view.command()
@view_argument()
@click.option("--at", type=int, metavar="POSITION", help="The rows as they were at this position.")
@click.option(
    "--key", multiple=True, metavar="VALUE", help="Only the rows of this key; once for each of its columns."
)
@click.option("--limit", type=click.IntRange(0), metavar="N", help="At most N rows.")
def show(name: str, at: int | None, key: tuple[str, ...], limit: int | None) -> None:
    """Print the rows of the view NAME, now or as they were at a position.

    \b
    Example: evert view show revenue --limit 10
             evert view show revenue --key CH
             evert view show revenue --at 1200 --json
    """
    with session().open() as db, hints_for_commands():
        found = find_view(db, name)
        seen = found if at is None else found.at(at)
        columns = found.columns
        if key and columns is not None:
            row = seen.get(*key_values(found, columns, key))
            position, rows = seen.position, pa.Table.from_pylist([row] if row else [], columns)
        else:
            answered = seen.answer()
            position, rows = answered.position, answered.rows
    print_rows(rows if limit is None else rows.slice(0, limit))
    if not session().json:
        total = rows.num_rows
        shown = f"{total:,} rows" if limit is None or limit >= total else f"{limit:,} of {total:,} rows"
        click.echo(f"{found.name} at position {position}: {shown}", err=True)


@view.command()
@view_argument()
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(name: str, yes: bool) -> None:
    """Remove the view NAME with its rows and its history; what it reads stays.

    Example: evert view drop revenue --yes
    """
    with session().open() as db:
        found = find_view(db, name)
        confirmed(f"{found.name} and its history go; the topics stay. Drop it?", yes)
        db.drop(found.name)
    answer({"dropped": found.name}, f"the view {found.name} is gone")


@view.command()
@view_argument()
def resume(name: str) -> None:
    """Let the stopped view NAME, and those that read it, go on from where they stopped.

    Example: evert view resume revenue
    """
    with session().open() as db:
        found = find_view(db, name)
        found.resume()
        state, position = found.state, found.position
    said = f"{found.name} goes on from position {position} with the next epoch"
    answer({"view": found.name, "state": state, "position": position}, said)


def print_rows(rows: pa.Table) -> None:
    """Rows of a view as a table, or a JSON object each."""
    sheet = Sheet(rows.schema.names)
    for batch in rows.to_batches(max_chunksize=_PIECE):
        values = rows_of(batch)
        if session().json:
            click.echo("\n".join(map(dumps, values)))
        elif values:
            sheet.write([list(row.values()) for row in values])


def key_values(found: View, columns: pa.Schema, texts: tuple[str, ...]) -> list[Any]:
    """A key as its columns' texts, read as their types."""
    names = tuple(found.key or ())
    if len(texts) != len(names):
        if not names:
            raise BadOption(f"the view {found.name} has no key", hint="declare one: CREATE … KEY (…) AS …")
        raise BadOption(f"the key of {found.name} is ({', '.join(names)}): give --key {len(names)} times")
    types = {column.name: column.type for column in columns}
    schema = Schema(tuple(Column(name, type_from_arrow(types[name], name), nullable=False) for name in names))
    given = dict(zip(names, texts, strict=True))
    return list(from_values(schema, schema.text_plan, [given], topic=found.name).to_pylist()[0].values())


@contextmanager
def hints_for_commands() -> Iterator[None]:
    """Errors of views say what to do in Python; here they name commands."""
    try:
        yield
    except NotReady as error:
        error.hint = "build it with `evert run --once`, or keep all views up to date with `evert run`"
        raise
    except NoReplacement as error:
        error.hint = 'make one that waits with `evert sql "CREATE OR REPLACE MATERIALIZED VIEW … HOLD AS …"`'
        raise
    except Stopped as error:
        name, position = error.details.get("view"), error.details.get("position")
        error.hint = (
            f"correct the cause and `evert view resume {name}`; its rows up to there:"
            f" `evert view show {name} --at {position}`"
        )
        raise


def _listed(one: ViewStatus, handle: Definition) -> dict[str, Any]:
    if session().json:
        return {
            **asdict(one),
            "key": None if handle.key is None else list(handle.key),
            "query": handle.query,
        }
    return {
        "view": called(one),
        "state": one.state,
        "position": one.position if one.position >= 0 else None,
        "rows": one.rows,
        "key": ", ".join(handle.key or ()) or None,
        "group": one.group,
        "kept": f"recomputed: {one.recomputes}" if one.recomputes else "incrementally",
    }
