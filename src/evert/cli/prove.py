"""`evert prove`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from evert.cli.base import Command, complete_views, session, spark_starts
from evert.cli.output import Sheet
from evert.cli.views import find_view
from evert.errors import Disproved
from evert.values import dumps, rows_of

if TYPE_CHECKING:
    from evert.epoch.prove import Proof

_MOST = 20


@click.command(cls=Command)
@click.argument("views", nargs=-1, metavar="[VIEW]...", shell_complete=complete_views)
@click.option(
    "--most",
    type=click.IntRange(0),
    default=_MOST,
    show_default=True,
    metavar="N",
    help="Print at most so many rows that differ, of each view.",
)
def prove(views: tuple[str, ...], most: int) -> None:
    """Compare views with plain Spark SQL over the whole log; exit code 14 if one differs.

    Rows that Spark computes and the view lacks are marked -, rows that only the view has are marked +.

    \b
    Example: evert prove
             evert prove revenue --json
    """
    wrong: list[str] = []
    with session().open() as db:
        names: list[str | None] = [find_view(db, name).name for name in views] or [None]
        spark_starts()
        for name in names:
            for proof in db.prove(name):
                show_proof(proof, most)
                if not proof.holds:
                    wrong.append(proof.view)
    if wrong:
        raise Disproved(
            f"{', '.join(wrong)} {'differs' if len(wrong) == 1 else 'differ'} from what Spark SQL computes",
            hint="this should not happen: keep a copy of the folder and report it;"
            f" `evert view drop {wrong[0]}` and defining it again builds it anew",
            views=wrong,
        )


def show_proof(proof: Proof, most: int) -> None:
    """One line, and the rows that differ."""
    missing, unexpected = proof.missing, proof.unexpected
    if session().json:
        fields = {
            "view": proof.view,
            "position": proof.position,
            "rows": proof.rows,
            "proved": proof.holds,
            "estimates": list(proof.estimates),
            "missing": _values(missing, most),
            "unexpected": _values(unexpected, most),
        }
        click.echo(dumps(fields))
        return
    verdict = click.style("proved", fg="green") if proof.holds else click.style("differs", fg="red")
    but = f", but for estimates: {', '.join(proof.estimates)}" if proof.estimates else ""
    click.echo(f"{proof.view}: {verdict} at position {proof.position}, {proof.rows:,} rows{but}")
    if proof.holds:
        return
    sheet = Sheet([" ", *missing.schema.names])
    rows = [
        [mark, *row.values()]
        for mark, table in (("-", missing), ("+", unexpected))
        for row in _values(table, most)
    ]
    sheet.write(rows)
    hidden = sum(max(0, table.num_rows - most) for table in (missing, unexpected))
    if hidden:
        click.echo(f"… and {hidden:,} more", err=True)


def _values(rows: pa.Table, most: int) -> list[dict[str, Any]]:
    return [row for batch in rows.slice(0, most).to_batches() for row in rows_of(batch)]
