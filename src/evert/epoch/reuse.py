"""State that is there already: what live views keep, a new view takes over, and is fed with it.

       live view                 new view                     its first epoch
    join ── aggregate      join ── another aggregate      content of join ──> another aggregate

Nodes with equal fingerprints keep the same of the same events. Those on top of which the new view has other nodes
give their content, read from their state; what the other nodes read of topics comes from the log. A view that
would be fed too much at once is built from the log instead, in many epochs. A node that has forgotten something
gives nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evert.catalog import Transaction
from evert.delta.content import Remembers
from evert.epoch import narrow, ranges
from evert.epoch.moments import standing
from evert.epoch.planning import Planning
from evert.plan.graph import Plan
from evert.trace.horizon import limits
from evert.views import states
from evert.views.definition import Definition

if TYPE_CHECKING:
    from evert.database import Database

MOST_ROWS = 4_000_000
"""So many rows are fed to new views in one epoch at most."""


@dataclass(frozen=True)
class Reuse:
    """The states of a view's nodes that others have, by the nodes' names, and the nodes that give their content."""

    states: Mapping[str, int]
    giving: frozenset[str]


NOTHING = Reuse({}, frozenset())


def found(db: Database, planning: Planning, views: Sequence[Definition], upto: int) -> dict[int, Reuse]:
    """What these new views, by their ids, can take over from live views of their group at a position."""
    plans = {view.id: planning.plan(view) for view in views}
    with db.catalog.read() as tx:
        reuses = {view.id: _reuse(tx, view, plans[view.id], upto) for view in views}
        if not any(reuse.states for reuse in reuses.values()):
            return {}
        rows = sum(states.rows(tx, reuse.states[name]) for reuse in reuses.values() for name in reuse.giving)
        topics = {topic for number, plan in plans.items() for topic in _topics(plan, reuses[number])}
        rows += ranges.events(tx, sorted(topics), 0, upto)
    return reuses if rows <= MOST_ROWS else {}


def _reuse(tx: Transaction, view: Definition, plan: Plan, upto: int) -> Reuse:
    if plan.recomputes:
        return NOTHING
    there = states.kept(tx, view, upto)
    same = {node.id: narrow.fitting(there, node.fingerprint, node.needs) for node in plan.nodes[:-1]}
    equal = {node: there[state] for node, state in same.items() if state is not None}
    giving, built = _parted(plan, set(equal), _remembering(tx, plan, upto))
    return Reuse({name: state for name, state in equal.items() if name not in built}, frozenset(giving))


def _remembering(tx: Transaction, plan: Plan, upto: int) -> set[str]:
    """The nodes that know all that they have given so far."""
    able = [node for node in plan.nodes if isinstance(node.operator, Remembers)]
    moments = standing(tx, (rule for node in able for rule in node.forgets), upto)
    return {node.id for node in able if not limits(node.forgets, moments)}


def _parted(plan: Plan, equal: set[str], remembering: set[str]) -> tuple[set[str], set[str]]:
    """The nodes that give their content, and those that are built, if the equal ones need not be."""
    nodes = {node.id: node for node in plan.nodes}
    giving: set[str] = set()
    built: set[str] = set()
    waiting = [node.id for node in plan.nodes if node.id not in equal]
    while waiting:
        node = nodes[waiting.pop()]
        built.add(node.id)
        for source in {chain.source for port in node.ports for chain in port} & nodes.keys():
            if source in equal and source in remembering:
                giving.add(source)
            elif source not in built:
                waiting.append(source)
    return giving, built


def _topics(plan: Plan, reuse: Reuse) -> set[int]:
    """The topics that nodes read which are built."""
    read = {
        chain.source
        for node in plan.nodes
        if node.id not in reuse.states
        for port in node.ports
        for chain in port
    }
    return {leaf.number for leaf in plan.leaves if leaf.of_topic and leaf.id in read}
