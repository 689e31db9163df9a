"""Which positions a view has answers for.

An epoch brings a view from one position to another, its frontier; between two frontiers there is no answer. The
answer at a position is the one of the last frontier at or before it.
"""

from __future__ import annotations

from evert.catalog import Transaction
from evert.errors import BadOption
from evert.views import changes
from evert.views.definition import Definition


def frontier(tx: Transaction, view: Definition, position: int) -> int | None:
    """The last frontier of a view at or before a position; None if its history does not reach so far back.

    An epoch that changed nothing has no entry in the changelog; it is found among the group's epochs, from the
    one on with which the view joined.
    """
    if not isinstance(position, int) or isinstance(position, bool):
        raise BadOption(f"a position is a whole number, not {position!r}")
    if position >= view.position:
        return view.position
    last = changes.last_change(tx, view.feed, position)
    if position < view.options.begins:
        return None
    if last is None:
        return last
    (epoch,) = tx.one(
        'SELECT max(upto) FROM epochs WHERE "group" = ? AND shown = 1 AND upto >= ? AND upto <= ?',
        view.group,
        max(last, view.options.since),
        position,
    ) or (None,)
    return last if epoch is None else int(epoch)


def begin(tx: Transaction, view: Definition) -> int | None:
    """The position where the history of a view begins; changes after it are all there."""
    found = changes.first(tx, view.feed)
    return None if found is None else max(found, view.options.begins)
