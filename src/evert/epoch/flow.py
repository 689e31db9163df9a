"""The dataflow of several views: their plans joined into one graph, in levels.

A node's level is the number of exchanges below it; one whose rows stay in their shards has the level of its source.
A view that reads another view of the same flow is fed by that view's output node; a view that is not part of the
flow is a leaf, fed with its changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import pyarrow as pa

from evert.delta import Operator
from evert.delta.content import Content, Remembers
from evert.epoch.inputs import source_schema
from evert.epoch.reuse import NOTHING, Reuse
from evert.plan.graph import Chain, Leaf, Plan
from evert.trace.horizon import Forgets
from evert.views.states import OUTPUT


@dataclass(frozen=True)
class Part:
    """A view in a flow: its plan and the numbers of its nodes, by their names in the plan."""

    view: str
    plan: Plan
    nodes: Mapping[str, int]
    since: Mapping[str, int] = field(default_factory=dict)
    """After which position the view counts the events of a topic, by its leaf; views that differ are fed apart."""
    reuse: Reuse = NOTHING
    """The nodes that are not computed, because their state is there already."""

    @property
    def output(self) -> int:
        return self.nodes[OUTPUT]


@dataclass(frozen=True, eq=False)
class Step:
    """A chain from a source of the flow to a port of a node."""

    source: str
    port: int
    chain: Chain

    def crosses(self, *, inline: bool) -> bool:
        """Whether its rows go through an exchange, if workers evaluate chains `inline` where they can."""
        return not (inline and self.chain.stays and self.chain.inline is not None)


@dataclass(frozen=True, eq=False)
class FlowNode:
    """A node of the flow. Its delta, if anything consumes it, is the source `source`."""

    id: int
    view: str
    operator: Operator
    steps: tuple[Step, ...]
    level: int = 0
    names: tuple[str, ...] = ()
    """The real names of the columns, if this is the output of a view."""
    forgets: tuple[Forgets, ...] = ()
    reads: int | None = None
    """The node whose state it reads, if that is not its own."""

    @property
    def source(self) -> str:
        return f"n{self.id}"


@dataclass(frozen=True, eq=False)
class Flow:
    """What one Spark job computes."""

    leaves: Mapping[str, Leaf]
    nodes: tuple[FlowNode, ...]
    outputs: Mapping[str, int] = field(default_factory=dict)
    since: Mapping[str, int] = field(default_factory=dict)
    """After which position the events of a leaf count, where that matters."""

    @property
    def depth(self) -> int:
        return max((node.level for node in self.nodes), default=0)

    def at(self, level: int) -> list[FlowNode]:
        return [node for node in self.nodes if node.level == level]

    @property
    def consumed(self) -> set[str]:
        """The sources that some node takes in."""
        return {step.source for node in self.nodes for step in node.steps}

    def wanted(self, source: str) -> frozenset[int] | None:
        """The columns of a source that matter to somebody; None is all of them."""
        read = [step.chain.reads for node in self.nodes for step in node.steps if step.source == source]
        known = [places for places in read if places is not None]
        return frozenset().union(*known) if len(known) == len(read) else None

    def columns(self, source: str) -> pa.Schema:
        """The columns of a source, without its weight."""
        if source in self.leaves:
            return source_schema(self.leaves[source])
        node = next(node for node in self.nodes if node.source == source)
        return node.operator.output

    def fed_by(self, sources: set[str]) -> Flow:
        """The part of the flow that a delta of these leaves can reach."""
        reached = set(sources)
        kept = []
        for node in self.nodes:
            steps = tuple(step for step in node.steps if step.source in reached)
            if steps:
                reached.add(node.source)
                kept.append((node, steps))
        leaves = {name: leaf for name, leaf in self.leaves.items() if name in sources}
        nodes = tuple(replace(node, steps=steps) for node, steps in kept)
        return replace(self, leaves=leaves, nodes=nodes).levelled(inline=True)

    def levelled(self, *, inline: bool) -> Flow:
        """The same with the levels that nodes have if workers evaluate chains `inline` where they can."""
        levels: dict[str, int] = dict.fromkeys(self.leaves, 0)
        nodes = []
        for node in self.nodes:
            level = max((levels[step.source] + step.crosses(inline=inline) for step in node.steps), default=1)
            levels[node.source] = level
            nodes.append(replace(node, level=level))
        return replace(self, nodes=tuple(nodes))


def joined(parts: Sequence[Part], also: Set[str] = frozenset()) -> Flow:
    """One flow of several views, each after the views it reads; a node that several have is there once.

    Views named in `also` feed their readers as leaves too: what replaces them differs from what was there.
    """
    leaves: dict[str, Leaf] = {}
    nodes: list[FlowNode] = []
    there: set[str] = set()
    outputs = {part.view: part.output for part in parts}
    since: dict[str, int] = {}
    counted: dict[str, set[int | None]] = {}
    for part in parts:
        for leaf in part.plan.leaves:
            counted.setdefault(leaf.id, set()).add(part.since.get(leaf.id))
    for part in in_order(parts):
        sources: dict[str, list[str]] = {}
        if part.plan.recomputes:
            query = query_leaf(part)
            leaves[query.id] = query
            whole = Step(query.id, 0, Chain(query.id, many=False, build=lambda row: row))
            names = tuple(part.plan.columns.names)
            nodes.append(FlowNode(part.output, part.view, part.plan.output.operator, (whole,), names=names))
            there.add(nodes[-1].source)
            continue
        for leaf in part.plan.leaves:
            if leaf.kind == "view" and leaf.name in outputs:
                sources[leaf.id] = [f"n{outputs[leaf.name]}"]
                if leaf.name not in also:
                    continue
            name = f"{leaf.id}_{part.output}" if leaf.kind == "constant" else leaf.id
            if leaf.id in part.since:
                if len(counted[leaf.id]) > 1:
                    name = f"{leaf.id}_since_{part.since[leaf.id]}"
                since[name] = part.since[leaf.id]
            known = leaves.setdefault(name, leaf)
            if known.schema != leaf.schema:
                name = f"{name}_{part.output}"
                since[name] = part.since.get(leaf.id, 0)
                leaves[name] = leaf
            sources.setdefault(leaf.id, []).append(name)
        for node in part.plan.nodes:
            last = node is part.plan.nodes[-1]
            number = part.nodes[OUTPUT if last else node.id]
            if f"n{number}" in there:  # of a view before this one, which has the same node
                sources[node.id] = [f"n{number}"]
                continue
            steps: tuple[Step, ...] = ()
            operator = node.operator
            if node.id in part.reuse.giving and isinstance(operator, Remembers):
                operator = Content(operator)
            elif node.id in part.reuse.states:
                continue
            else:
                steps = tuple(
                    Step(source, port, chain)
                    for port, chains in enumerate(node.ports)
                    for chain in chains
                    for source in sources[chain.source]
                )
            names = tuple(part.plan.columns.names) if last else ()
            forgets = node.forgets if steps else ()
            reads = None if node.reads is None else part.nodes[node.reads]
            made = FlowNode(
                *(number, part.view, operator, steps),
                names=names,
                forgets=forgets,
                reads=reads,
            )
            sources[node.id] = [made.source]
            there.add(made.source)
            nodes.append(made)
    read = {step.source for node in nodes for step in node.steps}
    leaves = {name: leaf for name, leaf in leaves.items() if name in read}
    return Flow(leaves, tuple(nodes), outputs, since).levelled(inline=True)


def query_leaf(part: Part) -> Leaf:
    """The leaf of a view that is recomputed: its query's whole result."""
    return Leaf(id=f"q{part.output}", kind="query", name=part.view, schema=part.plan.columns)


def in_order(parts: Iterable[Part]) -> list[Part]:
    """The views so that each comes after the views it reads."""
    waiting = {part.view: part for part in parts}
    done: list[Part] = []
    while waiting:
        ready = [p for p in waiting.values() if not any(r in waiting for r in views_read(p.plan))]
        done += ready
        for part in ready:
            del waiting[part.view]
    return done


def views_read(plan: Plan) -> list[str]:
    return [leaf.name for leaf in plan.leaves if leaf.kind == "view"]
