"""Which columns of a table its node keeps: those that views read, and no others.

    orders (16 columns)      view a reads c0, c4      ──>  one node of c0, c4, c5 if they are built together;
                             view b reads c0, c5           a view that comes later has it if that is enough for it,
                                                           and else one of all columns

So a group has few nodes for a table, however many views come one by one. What is kept is part of the fingerprint by
which a state is found, and not of the fingerprints of nodes above: their content is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from evert.catalog import Transaction
from evert.delta import Upsert
from evert.plan.graph import Node, Plan
from evert.views import states
from evert.views.definition import Definition

Columns = frozenset[int] | None
"""Columns by their places; None is all of them."""


def decided(tx: Transaction, views: Sequence[Definition], plans: Mapping[int, Plan]) -> dict[str, str]:
    """By the fingerprints of tables' nodes, those of the states that views are to have which have none yet."""
    new = [view for view in views if not states.of_view(tx, view.id)]
    needs: dict[str, Columns] = {}
    for view in new:
        for node, table in _tables(plans[view.id]):
            both = _union(needs.get(node.fingerprint, frozenset()), node.needs)
            needs[node.fingerprint] = None if both is not None and len(both) == len(table.columns) else both
    apart = {view.id for view in new} | {view.replaces for view in new}
    return {node: _decided(tx, new[0].group, node, columns, apart) for node, columns in needs.items()}


def _decided(tx: Transaction, group: str, node: str, needs: Columns, apart: Collection[int | None]) -> str:
    there = {
        state
        for view, state in states.fingerprints(tx, group)
        if view not in apart and _parsed(state)[0] == node
    }
    if there:
        return fitting(there, node, needs) or node
    return node if needs is None else f"{node}:{','.join(map(str, sorted(needs)))}"


def fitting(found: Iterable[str], node: str, needs: Columns) -> str | None:
    """Of the fingerprints of states, that of the one which a node can have, and which keeps the least."""
    return min((state for state in found if _covers(state, node, needs)), key=_width, default=None)


def narrowed(tx: Transaction, plan: Plan, numbers: Mapping[str, int]) -> Plan:
    """The plan with nodes of tables that keep what is in the states which they have, by the nodes' names."""
    made = {
        node.id: _narrowed(node, table, _parsed(states.fingerprint(tx, numbers[node.id]))[1])
        for node, table in _tables(plan)
    }
    return replace(plan, nodes=tuple(made.get(node.id, node) for node in plan.nodes)) if made else plan


def _narrowed(node: Node, table: Upsert, kept: Columns) -> Node:
    if kept is None:
        return node
    reads = kept | set(range(len(table.columns), len(table.inputs[0])))
    ports = tuple(tuple(replace(chain, reads=reads) for chain in port) for port in node.ports)
    return replace(node, operator=replace(table, kept=tuple(sorted(kept))), ports=ports)


def _tables(plan: Plan) -> list[tuple[Node, Upsert]]:
    return [(node, node.operator) for node in plan.nodes if isinstance(node.operator, Upsert)]


def _union(one: Columns, other: Columns) -> Columns:
    return None if one is None or other is None else one | other


def _covers(state: str, node: str, needs: Columns) -> bool:
    whose, kept = _parsed(state)
    return whose == node and (kept is None or (needs is not None and needs <= kept))


def _width(state: str) -> tuple[bool, int, str]:
    _, kept = _parsed(state)
    return kept is None, len(kept or ()), state


def _parsed(state: str) -> tuple[str, Columns]:
    """The fingerprint of the node, and which columns are kept."""
    node, mark, places = state.partition(":")
    return node, frozenset(map(int, places.split(","))) if mark else None
