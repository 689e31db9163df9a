"""Replacing a view: the new one is built beside the old one and takes its place in one commit.

    old  ──────────────F
    new  ··· built ····F ══ the group's next epoch ══> F'   (published: new(F') - old(F))

What the views that read it are told is the same: the difference at F, and what the new one changes after it. A
replacement that is held goes on beside the old one, in epochs of its own, until it is let in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from evert.catalog import Transaction
from evert.views import changes, waiting
from evert.views.definition import Definition, by_id

if TYPE_CHECKING:
    from evert.database import Database


@dataclass(frozen=True)
class Switch:
    """A replacement that is ready, the view whose place it takes, and new - old if both have the same columns."""

    new: Definition
    old: Definition
    difference: pa.Table | None


def one_each(ready: Iterable[Definition]) -> list[Definition]:
    """Of replacements of the same view, the one that takes its place first: the newest."""
    return list({view.replaces: view for view in ready}.values())


def switches(db: Database, ready: Sequence[Definition]) -> list[Switch]:
    """What it takes to let replacements take their places."""
    found = []
    for new in ready:

        def look(tx: Transaction, new: Definition = new) -> tuple[Definition | None, list, list]:
            old = by_id(tx, new.replaces or 0)
            if old is None:
                return None, [], []
            before = [] if old.position < 0 else changes.entries_at(tx, db.path, old.feed, old.position)
            return old, changes.entries_at(tx, db.path, new.feed, new.position), before

        old, content, before = changes.look_again(db.catalog, look)
        if old is not None:
            found.append(Switch(new, old, _difference(new, old, content, before)))
    return found


def _difference(
    new: Definition, old: Definition, content: Sequence[changes.Entry], before: Sequence[changes.Entry]
) -> pa.Table | None:
    if old.columns is None or not old.columns.equals(new.schema):
        return None
    arrived = changes.consolidated(new.feed, content, new.schema)
    gone = changes.consolidated(old.feed, before, new.schema)
    return waiting.difference(arrived, gone)
