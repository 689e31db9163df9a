"""The state of views' nodes: each node has one, and equal nodes of views that stand together have one in common.

view   a ─ n0 ─┐            When a view joins its group, nodes that keep the same of the same events are given
               ├─ state     one state. When a view falls behind, because it has stopped, it takes a copy of the
view   b ─ n1 ─┘            list of runs with it: runs never change, so nothing is copied but their names.

What a node keeps is its fingerprint; that of a table's rows says which columns, too, if they are not all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from evert.catalog import Transaction
from evert.errors import Conflict
from evert.log.files import let_go

if TYPE_CHECKING:
    from evert.views.definition import Definition

OUTPUT = "output"
_RUNS = "trace, shard, file, start, bytes, rows, checksum"
_SINCE = (
    "(SELECT group_concat(h.topic || ' ' || h.since)"
    " FROM (SELECT topic, since FROM holds WHERE holder = v.id AND since > 0 ORDER BY topic) h)"
)
"""After which positions a view counts the events of topics."""
_SHOWN = (
    "nodes n JOIN views v ON v.id = n.view"
    " WHERE v.\"group\" = ? AND v.state = 'live' AND v.folded IS NOT NULL AND n.name <> ?"
)
"""The nodes of a group's live views, except their outputs."""


def add(tx: Transaction, view: int, name: str, kind: str, fingerprint: str) -> None:
    """A node with a state of its own, which is empty."""
    tx.run(
        "INSERT INTO nodes (view, name, kind, fingerprint, state) VALUES (?, ?, ?, ?, ?)",
        view,
        name,
        kind,
        fingerprint,
        _fresh(tx),
    )


def of_view(tx: Transaction, view: int) -> dict[str, int]:
    """The states of a view's nodes, by the nodes' names."""
    return dict(tx.all("SELECT name, state FROM nodes WHERE view = ?", view))


def fingerprints(tx: Transaction, group: str) -> list[tuple[int, str]]:
    """The view and the fingerprint of each node of a group."""
    sql = 'SELECT n.view, n.fingerprint FROM nodes n JOIN views v ON v.id = n.view WHERE v."group" = ?'
    return tx.all(sql, group)


def fingerprint(tx: Transaction, state: int) -> str:
    """What a state keeps: the fingerprint of the nodes that have it."""
    found = tx.one("SELECT fingerprint FROM nodes WHERE state = ?", state)
    if found is None:
        raise Conflict("a view was dropped whose state another one was to take over")
    return str(found[0])


def share(tx: Transaction, group: str) -> None:
    """Let equal nodes of a group's live views have one state.

    Nodes are equal if their fingerprints are, and if their views count the events of topics from the same
    positions on. A view's output is its own.
    """
    rows = tx.all(
        f"SELECT n.id, n.state, n.fingerprint, v.position, {_SINCE} FROM {_SHOWN} ORDER BY n.id",
        group,
        OUTPUT,
    )
    first: dict[tuple, int] = {}
    left = set()
    for node, state, *same in rows:
        kept = first.setdefault(tuple(same), state)
        if kept != state:
            tx.run("UPDATE nodes SET state = ? WHERE id = ?", kept, node)
            left.add(state)
    _remove_unused(tx, left)


def kept(tx: Transaction, view: Definition, position: int) -> dict[str, int]:
    """The states, by fingerprint, of nodes that are equal to nodes of this view if they are the same there."""
    (since,) = tx.one(f"SELECT {_SINCE} FROM views v WHERE v.id = ?", view.id) or (None,)
    rows = tx.all(
        f"SELECT n.fingerprint, n.state FROM {_SHOWN} AND v.position = ? AND {_SINCE} IS ?",
        view.group,
        OUTPUT,
        position,
        since,
    )
    return dict(rows)


def rows(tx: Transaction, state: int) -> int:
    """How many rows the runs of a state have."""
    (found,) = tx.one("SELECT total(rows) FROM runs WHERE node = ?", state) or (0,)
    return int(found)


def adopt(tx: Transaction, view: int, found: Mapping[str, int], position: int) -> None:
    """Let nodes of a view have states that live views have at this position."""
    before = of_view(tx, view)
    for name, state in found.items():
        sql = (
            "SELECT 1 FROM nodes n JOIN views v ON v.id = n.view"
            " WHERE n.state = ? AND v.state = 'live' AND v.position = ?"
        )
        if tx.one(sql, state, position) is None:
            raise Conflict("a view was dropped whose state another one was to take over")
        sql = "UPDATE nodes SET state = ?, fingerprint = ? WHERE view = ? AND name = ?"
        tx.run(sql, state, fingerprint(tx, state), view, name)
    _remove_unused(tx, {before[name] for name in found})


def part(tx: Transaction, states: Iterable[int], views: Collection[int]) -> None:
    """These states are about to move on with these views: all others keep them as they are."""
    for state in states:
        for node, view in tx.all("SELECT id, view FROM nodes WHERE state = ?", state):
            if view not in views:
                copy = _fresh(tx)
                tx.run(
                    f"INSERT INTO runs (node, {_RUNS}) SELECT ?, {_RUNS} FROM runs WHERE node = ?",
                    copy,
                    state,
                )
                tx.run("UPDATE nodes SET state = ? WHERE id = ?", copy, node)


def remove(tx: Transaction, view: int) -> None:
    """A view's nodes go, with the states that nobody shares."""
    states = set(of_view(tx, view).values())
    tx.run("DELETE FROM nodes WHERE view = ?", view)
    _remove_unused(tx, states)


def shared_with(tx: Transaction, view: int) -> dict[str, list[str]]:
    """The views that share a state with a view, by the names of its nodes."""
    found: dict[str, list[str]] = {}
    sql = (
        "SELECT mine.name, v.name FROM nodes mine JOIN nodes theirs ON theirs.state = mine.state"
        " JOIN views v ON v.id = theirs.view WHERE mine.view = ? AND v.id <> mine.view ORDER BY v.name"
    )
    for name, other in tx.all(sql, view):
        if other not in found.setdefault(name, []):
            found[name].append(other)
    return found


def _fresh(tx: Transaction) -> int:
    tx.run("INSERT INTO states DEFAULT VALUES")
    (number,) = tx.one("SELECT max(id) FROM states") or (0,)
    return int(number)


def _remove_unused(tx: Transaction, states: Iterable[int]) -> None:
    for state in states:
        if tx.one("SELECT 1 FROM nodes WHERE state = ?", state) is None:
            files = [file for (file,) in tx.all("SELECT DISTINCT file FROM runs WHERE node = ?", state)]
            tx.run("DELETE FROM runs WHERE node = ?", state)
            tx.run("DELETE FROM states WHERE id = ?", state)
            let_go(tx, files)
