"""Defining a view: it is planned first, and what cannot be planned is refused before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evert.catalog import Transaction
from evert.duration import Duration
from evert.epoch.planning import Planning, explained, group_of
from evert.errors import BadName, Refused
from evert.log import holds
from evert.log.topic import LATE
from evert.plan.graph import Plan
from evert.plan.now import CLOCK_ID
from evert.views import bases, earlier, waiting
from evert.views import definition as definitions
from evert.views.definition import Definition, Read
from evert.views.record import Emit, RefreshPolicy

if TYPE_CHECKING:
    from evert.database import Database


@dataclass(frozen=True)
class Wanted:
    """A view as a user asks for it."""

    name: str
    query: str | Callable[[Any], Any]
    key: str | Sequence[str] | None = None
    group: str | None = None
    history: Duration | None = definitions.DEFAULT_HISTORY
    interval: Duration | None = None
    refresh: RefreshPolicy = "auto"
    emit: Emit = "changes"
    comment: str | None = None
    replace: bool = False
    hold: bool = False

    @property
    def text(self) -> str:
        """The query as the catalog keeps it: SQL, or where the function is found."""
        if isinstance(self.query, str):
            return self.query
        name = getattr(self.query, "__qualname__", "")
        if not name or "<lambda>" in name:
            raise BadName("a view of a function is stored by the function's name: give it one with def")
        return f"{self.query.__module__}:{name}"

    @property
    def kind(self) -> definitions.Kind:
        return "sql" if isinstance(self.query, str) else "function"


def define(db: Database, planning: Planning, wanted: Wanted) -> Definition:
    """Plan a view and write it down."""
    if not isinstance(wanted.query, str):
        _refuse_namesake(db, planning.functions.get(wanted.text), wanted)
        planning.functions[wanted.text] = wanted.query
    if wanted.emit == "close":
        return _with_stragglers(db, planning, wanted)
    return _define(db, planning, lambda tx: _create(tx, wanted))


def _refuse_namesake(db: Database, known: Callable[[Any], Any] | None, wanted: Wanted) -> None:
    """A function is found by its name: two of one name, such as closures, cannot be what two views are made of."""
    if known is None or _is_same(known, wanted.query):
        return
    with db.catalog.read() as tx:
        own = definitions.lookup(tx, wanted.name)
        others = [one for one in definitions.all(tx) if one.kind == "function" and one.query == wanted.text]
    for other in others:
        if own is None or other.name not in (own.name, own.name + LATE):
            raise Refused(
                f"another function called {wanted.text} is what the view {other.name} is made of",
                hint="a view finds its function by its module and name: give each function its own",
                view=other.name,
            )


def _is_same(one: Any, other: Any) -> bool:
    """Whether two functions are the same, though they may have been defined twice, as by a cell run again."""
    if one is other:
        return True
    with suppress(ValueError):  # a cell is empty, or its value does not say whether it equals another
        return bool(_content(one) == _content(other))
    return False


def _content(function: Any) -> tuple[Any, ...]:
    cells = tuple(cell.cell_contents for cell in getattr(function, "__closure__", None) or ())
    return getattr(function, "__code__", function), getattr(function, "__defaults__", None), cells


def _with_stragglers(db: Database, planning: Planning, wanted: Wanted) -> Definition:
    """A view of closed windows, and the view of what comes too late for them: both or none."""
    late = replace(wanted, name=wanted.name + LATE, emit="late", key=None, comment=None)
    with db.catalog.read() as tx:
        new = definitions.lookup(tx, late.name) is None
    _define(db, planning, lambda tx: _create(tx, late))
    try:
        return _define(db, planning, lambda tx: _create(tx, wanted))
    except Exception:
        if new:
            db.catalog.write(lambda tx: definitions.drop(tx, late.name))
        raise


def go_back(db: Database, planning: Planning, name: str) -> Definition:
    """Replace a view by the newest of its earlier definitions that is another one than the present."""
    with db.catalog.read() as tx:
        view = definitions.find(tx, name)
        asked = earlier.before(tx, view).asked
    return _define(db, planning, lambda tx: definitions.put(tx, view.name, *asked, replace=True))


def _define(db: Database, planning: Planning, create: Callable[[Transaction], Definition]) -> Definition:
    undone: list[Definition] = []

    def look(tx: Transaction) -> None:
        undone.append(create(tx))
        raise _Rehearsed

    with suppress(_Rehearsed):
        db.catalog.write(look)
    view = undone[0]
    if view.columns is not None:
        return db.catalog.write(lambda tx: _again(tx, create))
    plan = planning.first(view)
    with db.catalog.read() as tx:
        upstream = [definitions.find(tx, leaf.name) for leaf in plan.reads if leaf.kind == "view"]
        group = group_of(view, plan, upstream)
        if view.replaces is not None:
            _check_readers(tx, view, plan, upstream, group)
    reads = planning.reads(plan)
    if any(leaf.id == CLOCK_ID for leaf in plan.leaves):
        db.log.tick()

    def work(tx: Transaction) -> Definition:
        made = create(tx)
        tx.run("INSERT INTO engine VALUES ('shards', ?) ON CONFLICT DO NOTHING", str(db.config.shards))
        if made.columns is None:
            _planned(tx, made, plan, reads, group)
            _hold(tx, made, reads)
            for read in reads:
                if read.kind == "view":
                    waiting.refuse_new_reader(tx, read.id)
        found = definitions.by_id(tx, made.id)
        assert found is not None
        return found

    made = db.catalog.write(work)
    if made.fingerprint == plan.fingerprint:  # else another process was first
        planning.keep(made, plan)
    return made


def _again(tx: Transaction, create: Callable[[Transaction], Definition]) -> Definition:
    """A definition that is there already: what it gives up goes, and one whose code was absent goes on."""
    view = create(tx)
    if view.state == "absent":
        definitions.go_on(tx, view)
    return view


def rebuild(tx: Transaction, view: Definition) -> None:
    """Build a view anew from the log; one that has been shown, beside itself."""
    if view.state == "building" or not view.current:
        definitions.restart(tx, view)
    elif definitions.replacement_of(tx, view) is None:
        made = definitions.twin(tx, view)
        _hold(tx, made, made.reads)


def renew(db: Database, planning: Planning, view: Definition) -> None:
    """A view's query has another plan than its state was made by: build it anew, beside itself if it was shown.

    That happens when a column that it reads was widened. It goes on reading the columns that it has read.
    """
    plan = planning.plan(view)

    def work(tx: Transaction) -> None:
        now = definitions.by_id(tx, view.id)
        if now is None or now.fingerprint != view.fingerprint:
            return
        if now.state == "building" or not now.current:
            definitions.restart(tx, now)
            made = now
        else:
            _stop_for_rebuild(tx, now)
            if definitions.replacement_of(tx, now) is not None:
                return
            made = definitions.twin(tx, now)
        _planned(tx, made, plan, now.reads, now.group)
        _hold(tx, made, now.reads)

    db.catalog.write(work)


def _stop_for_rebuild(tx: Transaction, view: Definition) -> None:
    """Neither a view nor what reads it goes on with rows of an old plan."""
    readers = [view]
    while readers:
        one = readers.pop()
        if one.current and one.state in ("live", "resuming"):
            message = f"what {view.name} reads has changed; it is being rebuilt from the log"
            error = {"error": "rebuilding", "message": message, "epoch": one.position}
            definitions.mark(tx, one.id, "stopped", error=error)
        readers += definitions.readers_of(tx, "view", one.id)


def _planned(tx: Transaction, view: Definition, plan: Plan, reads: Sequence[Read], group: str) -> None:
    definitions.planned(
        tx,
        view.id,
        columns=plan.columns,
        key=plan.key,
        reads=reads,
        explanation=explained(plan),
        recomputes=plan.recomputes,
        fingerprint=plan.fingerprint,
        group=group,
    )


def _hold(tx: Transaction, view: Definition, reads: Sequence[Read]) -> None:
    for read in reads:
        if read.kind != "view":
            since = _since(tx, view, read)
            before = None if view.replaces is None else holds.of_holder(tx, read.id, view.replaces)
            holds.take(tx, read.id, view.id, since, since if before is None else max(since, before.upto))
        if read.kind == "versions":
            holds.needs_versions(tx, read.id, view.id)


def _since(tx: Transaction, view: Definition, read: Read) -> int:
    """After which position a view counts a topic's rows.

    It is where the log begins now, or will when what has been made into a base goes. A replacement that needs
    nothing that retention has removed counts what the view counted whose place it takes.
    """
    (gone,) = tx.one("SELECT gone FROM topics WHERE id = ?", read.id) or (0,)
    gone = max([gone, *(base.upto for base in bases.of_topic(tx, read.id, 0))])
    before = None if view.replaces is None else holds.of_holder(tx, read.id, view.replaces)
    if before is None:
        return int(gone)
    needed = set(read.columns or ())
    enough = all(needed <= set(base.columns) for base in bases.of_topic(tx, read.id, before.since))
    return before.since if enough and read.columns is not None else max(int(gone), before.since)


class _Rehearsed(Exception):
    """Raised to take back a definition that was only tried."""


def _create(tx: Transaction, wanted: Wanted) -> Definition:
    return definitions.create(
        tx,
        wanted.name,
        wanted.text,
        kind=wanted.kind,
        key=wanted.key,
        group=wanted.group,
        history=wanted.history,
        interval=wanted.interval,
        refresh=wanted.refresh,
        emit=wanted.emit,
        comment=wanted.comment,
        replace=wanted.replace,
        hold=wanted.hold,
    )


def _check_readers(
    tx: Transaction, view: Definition, plan: Plan, upstream: Sequence[Definition], group: str
) -> None:
    """A replacement must not read itself, nor change columns or group while other views read it."""
    old = definitions.by_id(tx, view.replaces or 0)
    if old is None:
        return
    below_it, seen = list(upstream), set()
    while below_it:
        below = below_it.pop()
        if below.id == old.id:
            raise Refused(f"the view {view.name} would read itself", view=view.name)
        for read in below.reads:
            if read.kind == "view" and read.id not in seen:
                seen.add(read.id)
                found = definitions.by_id(tx, read.id)
                below_it += [] if found is None else [found]
    waiting.refuse_other_columns(tx, old, view.id, plan.columns, group)
