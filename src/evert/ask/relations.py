"""What a query can name: topics and views, and the position at which all of them are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from evert.ask.types import BIGINT, INT, TIMESTAMP, plain
from evert.catalog import Transaction
from evert.errors import BadOption, UnknownRelation
from evert.log.names import folded
from evert.log.reader import head_of
from evert.log.topic import INGESTED_AT, OFFSET, PARTITION, POSITION, Topic
from evert.schema.from_arrow import type_from_arrow
from evert.schema.types import DataType
from evert.views import definition as definitions
from evert.views import reader as views
from evert.views.definition import DEFAULT_GROUP, Definition
from evert.views.reader import Opened, Seen

if TYPE_CHECKING:
    from evert.database import Database

SYSTEM: dict[str, DataType] = {POSITION: BIGINT, PARTITION: INT, OFFSET: BIGINT, INGESTED_AT: TIMESTAMP}
"""The columns that a stream has beside its own."""


Visible = Callable[[str], bool]
"""Whether who asks may see the relation of a name; the others are as if they were not there."""


class Moved(Exception):
    """What the query was translated for has been altered or replaced meanwhile."""


@dataclass
class Found:
    """A topic or view that a query names, and the columns of it that the query uses."""

    definition: Topic | Definition
    columns: dict[str, DataType]
    sql: str
    used: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def is_view(self) -> bool:
        return isinstance(self.definition, Definition)

    def user(self, column: str) -> Callable[[], None]:
        return lambda: self.used.add(column)


class Catalogued:
    """The topics and views as they are defined in one commit, and those that a query has named."""

    def __init__(self, db: Database, visible: Visible | None = None) -> None:
        with db.catalog.read() as tx:
            known: list[Topic | Definition] = list(db.log.registry.all(tx).values())
            known += [view for view in definitions.all(tx) if view.current]
            known = known if visible is None else [one for one in known if visible(one.name)]
            self._unready = {view.id: views.not_ready(tx, view) for view in _unplanned(known)}
        self._known = {folded(one.name): one for one in known}
        self._named: dict[str, Found] = {}

    @property
    def found(self) -> list[Found]:
        return list(self._named.values())

    @property
    def names(self) -> list[str]:
        return [one.name for one in self._known.values()]

    def has(self, name: str) -> bool:
        return folded(name) in self._known

    def find(self, name: str) -> Found:
        """The topic or view of this name; every one is found once, however often it is named."""
        key = folded(name)
        if key not in self._named:
            if key not in self._known:
                raise self._unknown(name)
            there = self._known[key]
            self._named[key] = Found(there, self._columns(there), f"t{len(self._named)}")
        return self._named[key]

    def _columns(self, one: Topic | Definition) -> dict[str, DataType]:
        if isinstance(one, Definition):
            if one.columns is None:
                raise self._unready[one.id]
            return {column.name: plain(type_from_arrow(column.type, column.name)) for column in one.columns}
        mine = {column.name: plain(column.type) for column in one.schema.columns}
        return mine | SYSTEM if one.kind == "stream" else mine

    def _unknown(self, name: str) -> UnknownRelation:
        names = self.names
        near = get_close_matches(name.lower(), [one.lower() for one in names], n=3)
        close = [one for one in names if one.lower() in near]
        if close:
            hint = "did you mean " + " or ".join(map(repr, close)) + "?"
        else:
            hint = (
                "the topics and views are " + ", ".join(sorted(names)[:20]) if names else "there are none yet"
            )
        return UnknownRelation(f"there is no topic or view {name!r}", hint=hint, name=name)


def _unplanned(known: Sequence[Topic | Definition]) -> list[Definition]:
    return [one for one in known if isinstance(one, Definition) and one.columns is None]


@dataclass(frozen=True)
class Look:
    """The position of an answer, and the views that stand there."""

    position: int
    opened: Mapping[str, Opened]


def look(db: Database, found: Sequence[Found], at: int | None) -> Look:
    """Decide the position, and open the views that are at it, all in one commit."""
    if at is not None:
        return Look(_checked(db.position, at), {})
    named = [one for one in found if one.is_view]
    position = 0

    def see(tx: Transaction) -> list[Seen]:
        nonlocal position
        seen = [views.look(tx, views.readable(tx, one.name)) for one in named]
        for one, there in zip(named, seen, strict=True):
            if isinstance(one.definition, Definition) and there.view.columns != one.definition.columns:
                raise Moved
        position = _frontier(tx, [one.view for one in seen])
        return [one for one in seen if one.view.position == position]

    opened = db.reader.opened(see)
    return Look(position, {one.seen.view.name: one for one in opened})


def _frontier(tx: Transaction, named: Sequence[Definition]) -> int:
    """The newest position at which the views are seen; the log's end if the query names none.

    Views of one group stand together. Between groups it is the default group that counts.
    """
    if not named:
        return head_of(tx)
    if len({view.group for view in named}) == 1:
        return max(view.position for view in named)
    shown = [
        view.position
        for view in definitions.all(tx)
        if view.current and view.group == DEFAULT_GROUP and view.state == "live"
    ]
    return max(shown) if shown else min(view.position for view in named)


def _checked(head: int, at: int) -> int:
    if not isinstance(at, int) or isinstance(at, bool) or at < 0:
        raise BadOption(f"a position is a whole number from 0 on, not {at!r}")
    if at > head:
        raise BadOption(f"the log ends at position {head}, so there is no answer at {at} yet", position=head)
    return at
