"""Views as the catalog defines them: create, find, replace, stop, resume, drop.

A view is defined before Spark has seen its query: its state is *building*, and its columns are unknown until it
is planned. A replacement is a definition of its own that has no name yet; it is built beside the view that it
will replace, and takes its name in one commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from typing import Any, get_args

import pyarrow as pa

from evert.catalog import Transaction
from evert.duration import Duration, microseconds
from evert.errors import BadOption, Refused, TopicExists, UnknownView, ViewExists
from evert.log import holds
from evert.log.files import let_go
from evert.log.names import check_name, folded
from evert.log.topic import LATE, Topic
from evert.views import earlier, states
from evert.views.record import (
    COLUMNS,
    NOWHERE,
    Definition,
    Emit,
    Kind,
    Options,
    Read,
    RefreshPolicy,
    State,
    parsed,
)

DEFAULT_GROUP = "default"
DEFAULT_HISTORY: Duration = "7 days"


def create(
    tx: Transaction,
    name: str,
    query: str,
    *,
    kind: Kind = "sql",
    key: str | Sequence[str] | None = None,
    group: str | None = None,
    history: Duration | None = DEFAULT_HISTORY,
    interval: Duration | None = None,
    refresh: RefreshPolicy = "auto",
    emit: Emit = "changes",
    comment: str | None = None,
    replace: bool = False,
    hold: bool = False,
) -> Definition:
    """Define a view. The same definition again is fine; another one is refused, or with `replace` built beside."""
    if hold and not replace:
        raise BadOption("only a replacement can be held", hint="say replace=True too")
    name = check_name(name, "view")
    options = _options(key, group, history, interval, refresh, emit, comment)
    return put(tx, name, kind, query, options, replace=replace, hold=hold)


def put(
    tx: Transaction, name: str, kind: Kind, query: str, options: Options, *, replace: bool, hold: bool = False
) -> Definition:
    """Define a view by options that are checked. With `hold` a replacement waits when it is built.

    A view has at most one replacement that somebody asked for, and beside it one by itself.
    """
    taken = tx.one("SELECT name, kind FROM topics WHERE folded = ?", folded(name))
    if taken:
        raise TopicExists(
            f"the {taken[1]} {taken[0]} exists, so a view cannot be named {name}",
            hint="choose another name: topics and views share their names",
            topic=taken[0],
        )
    there = lookup(tx, name)
    if there is None:
        return _insert(tx, name, folded(name), None, kind, query, options)
    if there.name != name:
        raise ViewExists(
            f"{name} differs from the existing view {there.name} in case only",
            hint="choose another name: names are compared without regard to case",
            view=there.name,
        )
    wanted = (kind, query, options.asked)
    beside = replacements_of(tx, there)
    if there.asked == wanted:
        for other in beside:
            if replace and not other.held and other.asked != wanted:
                _remove(tx, other)
        return _commented(tx, there, options.comment)
    if not replace:
        what = "query" if (there.kind, there.query) != (kind, query) else "options"
        raise ViewExists(
            f"the view {name} exists with another {what}",
            hint="replace it with replace=True: the new one is built beside it and then takes its place",
            view=name,
        )
    for other in beside:
        if other.asked == wanted:
            tx.run("UPDATE views SET held = ? WHERE id = ?", int(hold), other.id)
            return by_id(tx, other.id) or other
    for other in beside:
        if not hold or other.asked != there.asked:
            _remove(tx, other)
    return _insert(tx, name, None, there.id, kind, query, options, hold)


def find(tx: Transaction, name: str) -> Definition:
    """The view of this name, as it is read now."""
    found = lookup(tx, name)
    if found is None:
        names = [
            known for (known,) in tx.all("SELECT name FROM views WHERE folded IS NOT NULL ORDER BY name")
        ]
        raise unknown(name, names)
    return found


def lookup(tx: Transaction, name: str) -> Definition | None:
    """The view of this name, if there is one."""
    row = tx.one(f"SELECT {COLUMNS} FROM views WHERE folded = ?", folded(name))
    return None if row is None else parsed(row)


def by_id(tx: Transaction, view: int) -> Definition | None:
    """A view or a replacement by its id, if it is still there."""
    row = tx.one(f"SELECT {COLUMNS} FROM views WHERE id = ?", view)
    return None if row is None else parsed(row)


def all(tx: Transaction) -> list[Definition]:
    """All views in the order of their definition, and replacements under construction."""
    return [parsed(row) for row in tx.all(f"SELECT {COLUMNS} FROM views ORDER BY id")]


def replacements_of(tx: Transaction, view: Definition) -> list[Definition]:
    """The replacements of a view that are being built or wait."""
    rows = tx.all(f"SELECT {COLUMNS} FROM views WHERE replaces = ? ORDER BY id", view.id)
    return [parsed(row) for row in rows]


def replacement_of(tx: Transaction, view: Definition) -> Definition | None:
    """The replacement that takes the place of a view by itself as soon as it is built, if there is one."""
    return next((other for other in replacements_of(tx, view) if not other.held), None)


def readers_of(tx: Transaction, kind: str, number: int) -> list[Definition]:
    """The views, and replacements, that read a topic (kind stream or table) or a view."""
    is_view = kind == "view"
    return [
        view
        for view in all(tx)
        if any(read.id == number and (read.kind == "view") == is_view for read in view.reads)
    ]


def refuse_if_read(tx: Transaction, kind: str, number: int, name: str, action: str) -> None:
    """Refuse to drop or alter what a view reads, naming the view."""
    readers = sorted({view.name for view in readers_of(tx, kind, number)})
    if readers:
        who = (
            f"the view {readers[0]} reads it"
            if len(readers) == 1
            else f"the views {', '.join(readers)} read it"
        )
        raise Refused(f"{name} cannot be {action}: {who}", hint=f"drop {readers[0]} first", view=readers[0])


def refuse_topic(tx: Transaction, topic: Topic, action: str) -> None:
    """Refuse to drop or alter a topic that a view reads."""
    refuse_if_read(tx, topic.kind, topic.id, f"the {topic.kind} {topic.name}", action)


def planned(
    tx: Transaction,
    view: int,
    *,
    columns: pa.Schema,
    key: Sequence[str] | None,
    reads: Iterable[Read],
    explanation: str,
    recomputes: str | None,
    fingerprint: str,
    group: str | None = None,
) -> None:
    """What planning found out about a view."""
    tx.run(
        "UPDATE views SET columns = ?, key = ?, reads = ?, explanation = ?, recomputes = ?, fingerprint = ?,"
        ' "group" = coalesce(?, "group") WHERE id = ?',
        columns.serialize().to_pybytes(),
        None if key is None else json.dumps(list(key)),
        json.dumps([asdict(read) for read in reads]),
        explanation,
        recomputes,
        fingerprint,
        group,
        view,
    )


def mark(
    tx: Transaction,
    view: int,
    state: State,
    *,
    position: int | None = None,
    error: dict[str, Any] | None = None,
) -> None:
    """Set the state of a view; the position stays unless given, the error goes unless given."""
    tx.run(
        "UPDATE views SET state = ?, position = coalesce(?, position), at = ?, error = ? WHERE id = ?",
        state,
        position,
        tx.now,
        None if error is None else json.dumps(error),
        view,
    )


def joined(tx: Transaction, view: Definition, position: int) -> None:
    """A view has caught up with its group: from here on they go together."""
    tx.run("UPDATE views SET options = ? WHERE id = ?", replace(view.options, since=position).text, view.id)


def resume(tx: Transaction, name: str) -> Definition:
    """Let a stopped view, and the stopped ones that read it, catch up from where they stopped."""
    view = find(tx, name)
    if view.state == "resuming":
        return view
    if view.state != "stopped":
        raise Refused(f"the view {view.name} is not stopped", view=view.name)
    for read in view.reads:
        below = by_id(tx, read.id) if read.kind == "view" else None
        if below is not None and below.state == "stopped":
            raise Refused(
                f"the view {view.name} cannot go on while {below.name}, which it reads, is stopped",
                hint=f"resume {below.name}",
                view=view.name,
            )
    if (reason := lost(tx, view)) is not None:
        raise Refused(f"the view {view.name} cannot go on: {reason}", hint="replace it", view=view.name)
    _go_on(tx, [view])
    return find(tx, name)


def lost(tx: Transaction, view: Definition) -> str | None:
    """Why a view cannot go on from where it is: events that it has not seen are gone; None if they are not."""
    for read in view.reads:
        hold = None if read.kind == "view" else holds.of_holder(tx, read.id, view.id)
        if hold is not None and hold.upto > max(view.position, hold.since):
            return f"events of {read.name} that it has not seen are gone: replace the view"
    return None


def go_on(tx: Transaction, view: Definition) -> None:
    """Let a view catch up from where it is."""
    mark(tx, view.id, "building" if view.position == NOWHERE else "resuming", error=view.error)


def _go_on(tx: Transaction, views: Sequence[Definition]) -> None:
    """Let those of the views that have stopped catch up, and the stopped ones that read them."""
    waiting = list(views)
    while waiting:
        next_ = waiting.pop()
        if next_.state == "stopped" and lost(tx, next_) is None:
            go_on(tx, next_)
            waiting.extend(readers_of(tx, "view", next_.id))


def twin(tx: Transaction, view: Definition) -> Definition:
    """A replacement of a view by itself: the same query over the same columns of what it reads."""
    options = replace(view.options, since=NOWHERE, begins=NOWHERE)
    made = _insert(tx, view.name, None, view.id, view.kind, view.query, options)
    planned(
        tx,
        made.id,
        columns=view.schema,
        key=view.key,
        reads=view.reads,
        explanation=view.explanation,
        recomputes=view.recomputes,
        fingerprint=view.fingerprint,
        group=view.group,
    )
    return replace(made, reads=view.reads)


def restart(tx: Transaction, view: Definition) -> None:
    """Build a view that has never been shown from the beginning again."""
    _remove_feed(tx, view.feed)
    states.remove(tx, view.id)
    mark(tx, view.id, "building", position=NOWHERE)


def switch(tx: Transaction, view: int, position: int) -> Definition:
    """Let a replacement that has caught up take the name of the view that it replaces.

    It inherits the change feed if the columns are the same; then the caller publishes what is different as one
    delta at `position`, which must be after everything that the feed has. Else readers of the old feed get a
    reset. The old view's state is gone afterwards. Views that stopped because the old one did go on.
    """
    new = by_id(tx, view)
    if new is None or new.replaces is None:
        raise Refused("only a replacement under construction can take the place of a view")
    old = by_id(tx, new.replaces)
    feed, begins = new.feed, position
    if old is not None:
        _settle_others(tx, old, new)
        if old.asked != new.asked:
            earlier.keep(tx, old, position)
        if old.columns is not None and new.columns is not None and old.columns.equals(new.columns):
            _remove_feed(tx, new.feed)
            feed, begins = old.feed, old.options.begins
        for reader in readers_of(tx, "view", old.id):
            if reader.id != new.id:
                _redirect(tx, reader, old.id, new.id)
        _remove(tx, old, keep_feed=feed)
    options = replace(new.options, since=position, begins=begins)
    tx.run(
        "UPDATE views SET folded = ?, replaces = NULL, held = 0, feed = ?, options = ?, state = 'live',"
        " position = ?, at = ?, error = NULL WHERE id = ?",
        folded(new.name),
        feed,
        options.text,
        position,
        tx.now,
        new.id,
    )
    _go_on(tx, readers_of(tx, "view", new.id))
    return find(tx, new.name)


def drop(tx: Transaction, name: str) -> Definition:
    """Remove a view with its rows, its history, its state and its earlier definitions; refused while another view
    reads it.
    """
    view = find(tx, name)
    others = [r for r in readers_of(tx, "view", view.id) if r.replaces != view.id]
    if others:
        refuse_if_read(tx, "view", view.id, f"the view {view.name}", "dropped")
    for other in replacements_of(tx, view):
        _remove(tx, other)
    _remove(tx, view)
    earlier.forget(tx, view.name)
    stragglers = lookup(tx, view.name + LATE)
    if stragglers is not None and stragglers.options.emit == "late":
        drop(tx, stragglers.name)
    return view


def abandon(tx: Transaction, view: int) -> None:
    """Give up a replacement under construction."""
    found = by_id(tx, view)
    if found is not None and not found.current:
        _remove(tx, found)


def unknown(name: str, names: Sequence[str]) -> UnknownView:
    close = get_close_matches(name, names, n=1)
    if close:
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"there are {', '.join(names[:20])}" if names else "define one with db.view()"
    return UnknownView(f"there is no view {name!r}", hint=hint)


def _settle_others(tx: Transaction, old: Definition, new: Definition) -> None:
    """Other replacements of a view that is replaced: of a view by itself they go on to replace it, else they go."""
    for other in replacements_of(tx, old):
        if other.id == new.id:
            continue
        if old.asked == new.asked:
            tx.run("UPDATE views SET replaces = ? WHERE id = ?", new.id, other.id)
        else:
            _remove(tx, other)


def _remove(tx: Transaction, view: Definition, keep_feed: int | None = None) -> None:
    if view.feed != keep_feed:
        _remove_feed(tx, view.feed)
    states.remove(tx, view.id)
    holds.release(tx, view.id)
    tx.run("DELETE FROM views WHERE id = ?", view.id)


def _remove_feed(tx: Transaction, feed: int) -> None:
    sql = "SELECT DISTINCT file FROM changes WHERE feed = ? AND file IS NOT NULL"
    files = [file for (file,) in tx.all(sql, feed)]
    tx.run("DELETE FROM changes WHERE feed = ?", feed)
    let_go(tx, files)


def _redirect(tx: Transaction, reader: Definition, old: int, new: int) -> None:
    reads = [
        replace(read, id=new) if read.kind == "view" and read.id == old else read for read in reader.reads
    ]
    tx.run("UPDATE views SET reads = ? WHERE id = ?", json.dumps([asdict(read) for read in reads]), reader.id)


def _insert(
    tx: Transaction,
    name: str,
    folded_name: str | None,
    replaces: int | None,
    kind: Kind,
    query: str,
    options: Options,
    held: bool = False,
) -> Definition:
    tx.run(
        'INSERT INTO views (name, folded, replaces, feed, kind, query, options, "group", reads, columns, key,'
        " explanation, recomputes, fingerprint, state, position, at, error, created, held)"
        " VALUES (?, ?, ?, 0, ?, ?, ?, ?, '[]', NULL, NULL, '', NULL, '', 'building', ?, ?, NULL, ?, ?)",
        name,
        folded_name,
        replaces,
        kind,
        query,
        options.text,
        options.group or DEFAULT_GROUP,
        NOWHERE,
        tx.now,
        tx.now,
        int(held),
    )
    (number,) = tx.one("SELECT max(id) FROM views") or (0,)
    tx.run("UPDATE views SET feed = id WHERE id = ?", number)
    made = by_id(tx, number)
    assert made is not None
    return made


def _commented(tx: Transaction, view: Definition, comment: str | None) -> Definition:
    """The view with another comment, if one is given."""
    if comment is None or comment == view.options.comment:
        return view
    options = replace(view.options, comment=comment)
    tx.run("UPDATE views SET options = ? WHERE id = ?", options.text, view.id)
    return replace(view, options=options)


def _options(
    key: str | Sequence[str] | None,
    group: str | None,
    history: Duration | None,
    interval: Duration | None,
    refresh: RefreshPolicy,
    emit: Emit,
    comment: str | None,
) -> Options:
    columns = (key,) if isinstance(key, str) else None if key is None else tuple(key)
    if columns is not None and (not columns or any(not isinstance(name, str) for name in columns)):
        raise BadOption(f"key names one or more columns, not {key!r}", hint='key="id" or key=("shop", "id")')
    if refresh not in get_args(RefreshPolicy):
        raise BadOption(f"there is no refresh policy {refresh!r}", hint='"auto", "strict" or "full"')
    if emit not in get_args(Emit):
        raise BadOption(f"a view cannot emit {emit!r}", hint='"changes" or "close"')
    if comment is not None and not isinstance(comment, str):
        raise BadOption(f"a comment is a text, not {comment!r}")
    return Options(
        history=None if history is None else microseconds(history),
        interval=None if interval is None else microseconds(interval),
        key=columns,
        group=None if group is None else check_name(group, "group"),
        refresh=refresh,
        emit=emit,
        comment=comment,
    )
