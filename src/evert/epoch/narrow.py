"""Which columns of a table its node keeps: those that views read, and no others.

    orders (16 columns)      view a reads c0, c4      ──>  one node of c0, c4, c5 if they are built together;
                             view b reads c0, c5           a view that comes later has it if that is enough for it,
                                                           and else one of all columns, as have all after it

So a group has few nodes for one table, however many views come one by one. What is kept is part of the name under
which a node's state is found, and not of the fingerprints of nodes above: their content is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from evert.catalog import Transaction
from evert.delta import Upsert
from evert.plan.graph import Chain, Node, Plan
from evert.views import states
from evert.views.definition import Definition

Kept = frozenset[int] | None
"""The places of columns; None is all of them."""


def chosen(tx: Transaction, views: Sequence[Definition], plans: Mapping[int, Plan]) -> dict[str, str]:
    """The names of the states of tables for views that have none yet, by the nodes' fingerprints."""
    new = [view for view in views if not states.of_view(tx, view.id)]
    needs: dict[str, Kept] = {}
    for view in new:
        for node in _tables(plans[view.id]):
            needs[node.fingerprint] = _union(needs.get(node.fingerprint, frozenset()), node.needs)
    apart = {view.id for view in new} | {view.replaces for view in new}
    return {
        fingerprint: _name(fingerprint, _chosen(tx, new[0].group, fingerprint, kept, apart))
        for fingerprint, kept in needs.items()
    }


def _chosen(
    tx: Transaction, group: str, fingerprint: str, needs: Kept, apart: Collection[int | None]
) -> Kept:
    others = {
        name
        for view, name in states.names(tx, group)
        if view not in apart and _parsed(name)[0] == fingerprint
    }
    found = fitting(others, fingerprint, needs)
    return needs if not others else _parsed(found)[1] if found is not None else None


def fitting(names: Iterable[str], fingerprint: str, needs: Kept) -> str | None:
    """The state of a table, by its name, that has the columns needed and the fewest others."""
    found = [name for name in names if _covers(name, fingerprint, needs)]
    return min(found, key=_width, default=None)


def narrowed(tx: Transaction, plan: Plan, numbers: Mapping[str, int]) -> Plan:
    """The plan with nodes of tables that keep what is in the states which they have, by the nodes' names."""
    if not any(node.id in numbers for node in _tables(plan)):
        return plan
    return replace(
        plan,
        nodes=tuple(
            _narrowed(node, _parsed(states.name_of(tx, numbers[node.id]))[1])
            if isinstance(node.operator, Upsert)
            else node
            for node in plan.nodes
        ),
    )


def _narrowed(node: Node, kept: Kept) -> Node:
    table = node.operator
    assert isinstance(table, Upsert)
    if kept is None:
        return node
    change = range(len(table.columns), len(table.inputs[0]))
    reads = kept | frozenset(change)

    def reading(chain: Chain) -> Chain:
        return replace(chain, reads=reads)

    ports = tuple(tuple(map(reading, port)) for port in node.ports)
    return replace(node, operator=replace(table, kept=tuple(sorted(kept))), ports=ports)


def _tables(plan: Plan) -> list[Node]:
    return [node for node in plan.nodes if isinstance(node.operator, Upsert)]


def _union(one: Kept, other: Kept) -> Kept:
    return None if one is None or other is None else one | other


def _covers(name: str, fingerprint: str, needs: Kept) -> bool:
    whose, kept = _parsed(name)
    return whose == fingerprint and (kept is None or (needs is not None and needs <= kept))


def _width(name: str) -> tuple[bool, int, str]:
    _, kept = _parsed(name)
    return kept is None, len(kept or ()), name


def _name(fingerprint: str, kept: Kept) -> str:
    return fingerprint if kept is None else f"{fingerprint}:{','.join(map(str, sorted(kept)))}"


def _parsed(name: str) -> tuple[str, Kept]:
    fingerprint, mark, places = name.partition(":")
    return fingerprint, frozenset(map(int, places.split(","))) if mark else None
