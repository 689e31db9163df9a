"""`evert view` for views that are replaced: compare, switch, abandon, rollback, earlier."""

from __future__ import annotations

from itertools import chain, islice

import click

from evert.cli.base import session, spark_starts
from evert.cli.output import Sheet, answer, listing
from evert.cli.subscribe import signed
from evert.cli.times import iso, since_1970
from evert.cli.views import find_view, hints_for_commands, view, view_argument
from evert.values import dumps, rows_of
from evert.views.waiting import Comparison

__all__ = ["view"]

_MOST = 20
_EARLIER = ("position", "time", "query")


@view.command()
@view_argument()
@click.option(
    "--most",
    type=click.IntRange(0),
    default=_MOST,
    show_default=True,
    metavar="N",
    help="Print at most so many rows that differ.",
)
def compare(name: str, most: int) -> None:
    """Print the rows that differ between the view NAME and the replacement that is held: + only new, - only old.

    \b
    Example: evert view compare revenue
             evert view compare revenue --json
    """
    with session().open() as db, hints_for_commands():
        _show(db.compare(find_view(db, name).name), most)


@view.command()
@view_argument()
def switch(name: str) -> None:
    """Let the replacement that is held take the place of the view NAME, with the next epoch.

    Example: evert view switch revenue
    """
    with session().open() as db, hints_for_commands():
        found = find_view(db, name)
        db.switch(found.name)
    answer(
        {"switching": found.name}, f"the new {found.name} takes the place of the old one with the next epoch"
    )


@view.command()
@view_argument()
def abandon(name: str) -> None:
    """Give up the replacement of the view NAME, which stays as it is.

    Example: evert view abandon revenue
    """
    with session().open() as db, hints_for_commands():
        found = find_view(db, name)
        db.abandon(found.name)
    answer({"abandoned": found.name}, f"the new {found.name} is given up; the old one stays")


@view.command()
@view_argument()
def rollback(name: str) -> None:
    """Replace the view NAME by what it was before it was replaced.

    Example: evert view rollback revenue
    """
    with session().open() as db:
        found = find_view(db, name)
        spark_starts()
        db.rollback(found.name)
    said = f"{found.name} as it was is built beside the present one by the next refresh, and takes its place"
    answer({"rolling_back": found.name}, said)


@view.command()
@view_argument()
@click.option("--forget", is_flag=True, help="Do not keep them any longer.")
def earlier(name: str, forget: bool) -> None:
    """List what the view NAME was before it was replaced, newest first, and when it was replaced.

    Example: evert view earlier revenue
    """
    with session().open() as db:
        found = find_view(db, name)
        kept = db.earlier(found.name, forget=forget)
    rows = [
        {"position": one.position, "time": iso(since_1970(one.at)), "kind": one.kind, "query": one.query}
        for one in kept
    ]
    listing(rows, _EARLIER, empty=f"nothing earlier is kept of {found.name}")
    if forget and not session().json:
        click.echo(f"the earlier definitions of {found.name} are forgotten", err=True)


def _show(found: Comparison, most: int) -> None:
    if session().json:
        rows = [row for batch in found.rows.slice(0, most).to_batches() for row in rows_of(batch)]
        counts = {name: getattr(found, name) for name in ("view", "position", "added", "removed", "same")}
        click.echo(dumps({**counts, "rows": rows}))
        return
    lines = list(islice(chain.from_iterable(signed(found.rows)), most))
    if lines:
        Sheet([" ", *lines[0][1]]).write([[sign, *row.values()] for sign, row in lines])
    click.echo(
        f"{found.view} at position {found.position}: {found.added:,} rows only in the new one,"
        f" {found.removed:,} only in the old one, {found.same:,} in both",
        err=True,
    )
