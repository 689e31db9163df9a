"""`evert subscribe`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click
import pyarrow as pa

from evert.cli.base import Command, session
from evert.cli.output import Sheet
from evert.cli.show import check_reader
from evert.cli.views import find_view, hints_for_commands, view_argument
from evert.values import dumps, rows_of
from evert.views import View
from evert.views.feed import WEIGHT, Change

_PIECE = 1_000
_QUIET = 1.0


@click.command(cls=Command)
@view_argument(metavar="VIEW")
@click.option("--after", type=int, metavar="POSITION", help="Only what changed after this position.")
@click.option("--follow/--no-follow", default=True, help="Wait for more changes, until interrupted.")
def subscribe(name: str, after: int | None, follow: bool) -> None:
    """Print the rows of VIEW and then every change to them: + a row that came, - one that went.

    With --after there are only the changes; to go on later, give the last position that was printed. If the
    history does not go back so far, all rows come again.

    \b
    Example: evert subscribe revenue
             evert subscribe revenue --after 1200 --no-follow --json
    """
    with session().open() as db, hints_for_commands():
        view = find_view(db, name)
        printer = Printer()
        for change in _changes(view, after, follow):
            printer.write(change)
            sys.stdout.flush()


def _changes(view: View, after: int | None, follow: bool) -> Iterator[Change]:
    """The changes; while none come, look now and then whether somebody still reads what we print."""
    while True:
        for change in view.changes(after, follow=follow, timeout=_QUIET, progress=session().json):
            yield change
            after = change.position
        if not follow:
            return
        check_reader()


class Printer:
    """One line a row. In JSON a line `progress` says that all up to its position has been printed."""

    def __init__(self) -> None:
        self._sheet: Sheet | None = None
        self._columns: list[str] = []

    def write(self, change: Change) -> None:
        if change.kind == "reset":
            self._reset(change.position)
        for piece in signed(change.rows):
            self._rows(change.position, piece)
        if session().json and change.kind != "reset":
            click.echo(dumps({"_op": "progress", "_position": change.position}))

    def _reset(self, position: int) -> None:
        self._sheet = None
        if session().json:
            click.echo(dumps({"_op": "reset", "_position": position}))
        else:
            click.echo("the rows so far do not count any more; all rows come again", err=True)

    def _rows(self, position: int, rows: list[tuple[str, dict[str, Any]]]) -> None:
        if session().json:
            lines = [dumps({"_op": sign, "_position": position, **row}) for sign, row in rows]
            click.echo("\n".join(lines))
            return
        columns = list(rows[0][1])
        if self._sheet is None or columns != self._columns:
            self._sheet, self._columns = Sheet([" ", "position", *columns]), columns
        self._sheet.write([[sign, position, *row.values()] for sign, row in rows])


def signed(rows: pa.Table) -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """The rows in pieces, each with its sign and as often as its weight says; first those that went."""
    weights = rows.column(WEIGHT).to_numpy()
    plain = rows.drop_columns([WEIGHT])
    for sign, chosen in (("-", weights < 0), ("+", weights > 0)):
        counts = iter(abs(weights[chosen]).tolist())
        for batch in plain.filter(pa.array(chosen)).to_batches(max_chunksize=_PIECE):
            piece = [(sign, row) for row in rows_of(batch) for _ in range(next(counts))]
            if piece:
                yield piece
