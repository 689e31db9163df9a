"""Replacements that somebody asked for: to be compared with the view that runs, let in, or given up.

running  ──────────────F ── F' ── F''
new      ··· built ····F ── F' ── F''   compare at any of them; then switch, or abandon
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from evert.catalog import Transaction
from evert.errors import NoReplacement, NotReady, Refused
from evert.schema.from_arrow import type_from_arrow
from evert.trace.consolidate import consolidate
from evert.views import changes, definition, reader
from evert.views.changes import Entry
from evert.views.definition import Definition
from evert.views.feed import surface_schema
from evert.views.frontier import frontier
from evert.views.reader import Reader


@dataclass(frozen=True)
class Comparison:
    """What differs between a view and its replacement at a position.

    `rows` has the columns and `_weight`: how often a row is only in the new one, or if it is negative, only in
    the old one. `old` and `new` are how many rows each has.
    """

    view: str
    position: int
    old: int
    new: int
    rows: pa.Table

    @property
    def added(self) -> int:
        """How many rows only the new one has."""
        weights = self.rows.column(self.rows.num_columns - 1).to_numpy()
        return int(weights[weights > 0].sum())

    @property
    def removed(self) -> int:
        """How many rows only the old one has."""
        return self.added + self.old - self.new

    @property
    def same(self) -> int:
        """How many rows both have."""
        return self.new - self.added


def release(tx: Transaction, name: str) -> Definition:
    """Let a replacement take the place of its view as soon as it is built and stands where the view does."""
    view = definition.find(tx, name)
    new = replacement(tx, view)
    _refuse_stopped(new)
    if new.columns is not None:
        refuse_other_columns(tx, view, new.id, new.columns, new.group)
    tx.run("UPDATE views SET held = 0 WHERE id = ?", new.id)
    return new


def abandon(tx: Transaction, name: str) -> Definition:
    """Give up the replacement of a view."""
    new = replacement(tx, definition.find(tx, name))
    definition.abandon(tx, new.id)
    return new


def replacement(tx: Transaction, view: Definition) -> Definition:
    """The replacement of a view that somebody asked for: not one by itself, after damage."""
    for other in definition.replacements_of(tx, view):
        if other.asked != view.asked:
            return other
    raise NoReplacement(
        f"the view {view.name} has no replacement",
        hint="define one with replace=True, and hold=True if it is to wait",
        view=view.name,
    )


def refuse_other_columns(tx: Transaction, old: Definition, new: int, columns: pa.Schema, group: str) -> None:
    """A replacement must not change columns or group while other views read what it replaces."""
    readers = sorted({r.name for r in definition.readers_of(tx, "view", old.id) if r.id != new})
    if not readers:
        return
    if group != old.group:
        what = f"cannot move from the group {old.group} to {group}"
    elif old.columns is None or not old.columns.equals(columns):
        what = "cannot change its columns"
    else:
        return
    raise Refused(
        f"the view {old.name} {what} while {', '.join(readers)} reads it",
        hint=f"drop {readers[0]}, replace {old.name}, and define {readers[0]} again",
        view=old.name,
    )


def refuse_new_reader(tx: Transaction, view: int) -> None:
    """A view that is about to change its columns or its group gets no new readers."""
    old = definition.by_id(tx, view)
    if old is None or old.columns is None:
        return
    for new in definition.replacements_of(tx, old):
        if new.held or new.asked == old.asked or new.columns is None:
            continue
        if new.group != old.group or not new.columns.equals(old.columns):
            raise Refused(
                f"the view {old.name} is being replaced by one of other columns or of another group",
                hint="call db.refresh() first, or give the replacement up with db.abandon()",
                view=old.name,
            )


def compare(views: Reader, name: str) -> Comparison:
    """The rows that differ between a view and its replacement, at one position at which both have stood."""

    def look(tx: Transaction) -> tuple[Definition, int, list[tuple[Definition, list[Entry]]]]:
        old = reader.readable(tx, name)
        new = replacement(tx, old)
        _refuse_stopped(new)
        if new.columns is None or new.state != "live":
            (head,) = tx.one("SELECT head FROM state") or (0,)
            raise NotReady(
                f"the replacement of {old.name} is being built (at position {max(new.position, 0)} of {head})",
                hint="call db.refresh(), or keep views up to date with db.run()",
                view=old.name,
            )
        _check_columns(old, new)
        position = _common(tx, old, new)
        both = [(one, changes.entries_at(tx, views.folder, one.feed, position)) for one in (old, new)]
        return old, position, both

    old, position, both = changes.look_again(views.catalog, look)
    before, after = (changes.consolidated(one.feed, entries, old.schema) for one, entries in both)
    rows = difference(after, before)
    shown = pa.Table.from_arrays(rows.columns, schema=surface_schema(old))
    return Comparison(old.name, position, reader.total(before), reader.total(after), shown)


def difference(new: pa.Table, old: pa.Table) -> pa.Table:
    """Rows with their weights, and others of the same columns: the one minus the other."""
    weights = pc.negate(old.column(old.num_columns - 1))
    gone = old.set_column(old.num_columns - 1, changes.WEIGHT, weights)
    names = [*(f"c{i}" for i in range(new.num_columns - 1)), changes.WEIGHT]
    both = pa.concat_tables([new.rename_columns(names), gone.rename_columns(names)])
    return consolidate(both).select(names).rename_columns(new.schema.names)


def _common(tx: Transaction, old: Definition, new: Definition) -> int:
    """A position at which both have stood: where the one stands that is behind."""
    if old.position >= new.position and frontier(tx, old, new.position) == new.position:
        return new.position
    if changes.last_change(tx, new.feed, old.position) == old.position:
        return old.position
    raise NotReady(
        f"the view {old.name} is at position {old.position}, and its replacement at {new.position}",
        hint="call db.refresh(), or keep views up to date with db.run()",
        view=old.name,
    )


def _check_columns(old: Definition, new: Definition) -> None:
    before, after = ({field.name: _spoken(field) for field in one.schema} for one in (old, new))
    if list(before.items()) == list(after.items()) and len(before) == len(old.schema) == len(new.schema):
        return
    said = [
        *_listed("only the new one has", [name for name in after if name not in before]),
        *_listed("only the old one has", [name for name in before if name not in after]),
        *(
            f"{name} is {after[name]} and was {before[name]}"
            for name in before
            if name in after and before[name] != after[name]
        ),
    ]
    raise Refused(
        f"the view {old.name} and its replacement have other columns:"
        f" {'; '.join(said) or 'they come in another order'}",
        hint="rows can be compared only if the columns are the same",
        view=old.name,
    )


def _spoken(field: pa.Field) -> str:
    """A column's type in Spark's words where it has some."""
    try:
        return type_from_arrow(field.type, field.name).ddl()
    except Refused:
        return str(field.type)


def _listed(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} {', '.join(names)}"] if names else []


def _refuse_stopped(new: Definition) -> None:
    if new.state not in ("stopped", "absent"):
        return
    why = (new.error or {}).get("message") or "it failed"
    raise Refused(
        f"the replacement of {new.name} has stopped at position {new.position}: {why}",
        hint="correct the cause and call db.refresh(), or give it up with db.abandon()",
        view=new.name,
        position=new.position,
    )
