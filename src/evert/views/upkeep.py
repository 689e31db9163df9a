"""Looking after the changelogs: snapshots where much has changed, and an end to history that nobody asked for."""

from __future__ import annotations

from evert.catalog import Catalog, Transaction
from evert.errors import Expired
from evert.log import ticks
from evert.log.embedded import EmbeddedLog
from evert.log.files import Revoked
from evert.views import bases, changes, definition
from evert.views.definition import Definition

EPOCHS_KEPT = 7 * 86_400_000_000


def keep(catalog: Catalog, log: EmbeddedLog) -> int:
    """One round of everything that is due. Any process may do it, and several at a time.

    How many bases were made: what they hold, retention can remove from the log now.
    """
    files = log.files
    folded = bases.fold(catalog, log)
    with catalog.read() as tx:
        views = [view for view in definition.all(tx) if view.columns is not None and view.state != "building"]
    for view in views:
        try:
            changes.snapshot(catalog, files, view.feed, view.schema)
        except (Expired, Revoked):  # the history has gone on, or it took too long: there will be another one
            continue
    catalog.write(lambda tx: _expire(tx, views))
    files.sweep()
    return folded


def _expire(tx: Transaction, views: list[Definition]) -> None:
    for view in views:
        if view.options.history is not None:
            changes.expire(tx, view.feed, tx.now - view.options.history)
    tx.run(
        'DELETE FROM epochs WHERE at < ? AND id NOT IN (SELECT max(id) FROM epochs GROUP BY "group")',
        tx.now - EPOCHS_KEPT,
    )
    ticks.prune(tx, min([view.position for view in definition.all(tx)], default=0))
