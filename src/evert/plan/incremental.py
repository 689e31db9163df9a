"""Shapes into nodes: what keeps state becomes a node, what does not becomes steps of the chains between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from evert.delta.accumulate import Function
from evert.delta.aggregate import Aggregate as AggregateKernel
from evert.delta.passing import Coming, Leaving, Passing
from evert.delta.session import Session
from evert.plan import bykey, joins, sketches, sliding
from evert.plan.aggregates import describe, split
from evert.plan.bounds import HORIZON, NOTHING, WATERMARK, Bounds, Place, union
from evert.plan.catalyst import Catalyst
from evert.plan.chains import Each, Pipe, Select, Step, Through, Where
from evert.plan.closing import MARK
from evert.plan.explain import Drawing
from evert.plan.graph import Leaf
from evert.plan.keys import Keys, through_project
from evert.plan.nodes import Nodes, Port
from evert.plan.relations import Relation
from evert.plan.tree import (
    Aggregate,
    Column,
    Constant,
    Expand,
    Filter,
    Foreign,
    Generate,
    Join,
    Merged,
    PerKey,
    Project,
    Read,
    Recompute,
    Sessions,
    Shape,
    Sketches,
    Sliding,
    Term,
    Timed,
    Top,
    Union,
)
from evert.plan.types import arrow_schema, kind_of
from evert.trace.horizon import Forgets

MOST_CONSTANT_ROWS = 100_000
"""A RANGE or VALUES of more rows is not kept as a leaf."""


@dataclass(frozen=True)
class Flow:
    """What a shape became: pipes that together give its rows."""

    pipes: tuple[Pipe, ...]
    columns: tuple[Column, ...]
    keys: Keys
    append_only: bool
    drawing: Drawing
    bounds: Bounds = NOTHING
    """How far back changes of its rows reach."""

    def step(self, step: Step, columns: tuple[Column, ...], keys: Keys, text: str) -> Flow:
        pipes = tuple(pipe.then(step) for pipe in self.pipes)
        drawing = Drawing(text, (self.drawing,)) if text else self.drawing
        return replace(self, pipes=pipes, columns=columns, keys=keys, drawing=drawing)


class Incremental:
    """Plans shapes of one view into `nodes`."""

    def __init__(self, catalyst: Catalyst, nodes: Nodes, relations: Mapping[str, Relation]) -> None:
        self.catalyst = catalyst
        self.nodes = nodes
        self._relations = relations

    @staticmethod
    def made(
        pipes: tuple[Pipe, ...],
        columns: tuple[Column, ...],
        keys: Keys,
        drawing: Drawing,
        bounds: Bounds = NOTHING,
    ) -> Flow:
        """The flow of a node that retracts."""
        return Flow(pipes, columns, keys, append_only=False, drawing=drawing, bounds=bounds)

    def flow(self, shape: Shape) -> Flow:
        match shape:
            case Read():
                return self._read(shape)
            case Constant():
                return self._constant(shape)
            case Project():
                return self._project(shape)
            case Filter():
                child = self.flow(shape.child)
                text = f"filter {shape.condition.sql()}"
                made = child.step(Where(shape.condition), child.columns, child.keys, text)
                return replace(made, bounds=child.bounds.where(self.catalyst, shape.condition))
            case Generate():
                step = Each(shape.rows, shape.fields, shape.outer, shape.made)
                names = ", ".join(column.name for column in shape.made)
                return self.flow(shape.child).step(step, shape.columns, (), f"explode into {names}")
            case Timed():
                return self._timed(shape)
            case Union():
                return self._union(shape)
            case Expand():
                return self._expand(shape)
            case Join():
                return joins.flow(self, shape)
            case Aggregate():
                return self._aggregate(shape)
            case Sessions():
                grows = self.flow(shape.child).append_only
                return self.flow(shape.kept if grows else shape.by_key)
            case Sketches():
                return self.flow(shape.kept if self._is_kept(shape) else shape.by_key)
            case Merged():
                return sketches.flow(self, shape)
            case Top():
                return bykey.top(self, shape)
            case PerKey():
                return bykey.per_key(self, shape)
            case Sliding():
                return sliding.flow(self, shape)
            case Foreign():
                return self._foreign(shape)
        raise Recompute(f"the operator {type(shape).__name__}")

    def _is_kept(self, shape: Sketches) -> bool:
        child = self.flow(shape.child)
        return child.append_only and not (
            shape.often and any(pipe.source in self.nodes.nodes for pipe in child.pipes)
        )

    def relation(self, shape: Read) -> Relation:
        return self._relations[shape.leaf]

    def _read(self, shape: Read) -> Flow:
        relation = self.relation(shape)
        leaf = relation.leaf
        ids = {column.name: column.id for column in shape.columns}
        keys: Keys = tuple(tuple(ids[name] for name in key) for key in relation.keys)
        drawing = Drawing(f"{leaf.kind} {leaf.name}")
        if relation.versions is not None:
            source = self.nodes.versions(leaf, relation.key, relation.versions)
            drawing = Drawing(
                f"versions by {', '.join(relation.key)}", (Drawing(f"table {leaf.topic}"),), source
            )
        elif leaf.kind == "table":
            source = self.nodes.table(leaf, relation.key)
            drawing = Drawing(f"upsert by {', '.join(relation.key)}", (drawing,), source)
        else:
            source = self.nodes.leaf(leaf)
        pipe = Pipe(source, shape.columns)
        return Flow((pipe,), shape.columns, keys, relation.append_only, drawing, _bounds(relation, ids))

    def _constant(self, shape: Constant) -> Flow:
        name = f"k{sum(leaf.kind == 'constant' for leaf in self.nodes.leaves.values())}"
        kinds = [kind_of(column.term) for column in shape.columns]
        schema = arrow_schema(kinds)
        count, rows = self.catalyst.constant_rows(shape.plan, schema, MOST_CONSTANT_ROWS)
        if rows is None:
            raise Recompute(f"a constant of {count:,} rows")
        leaf = Leaf(name, "constant", f"{count} constant row{'' if count == 1 else 's'}", schema, rows)
        source = self.nodes.leaf(leaf)
        return Flow((Pipe(source, shape.columns),), shape.columns, (), True, Drawing(leaf.name))

    def _project(self, shape: Project) -> Flow:
        child = self.flow(shape.child)
        keys = self._projected(child.keys, shape.columns, shape.terms)
        computed = [column.name for column, term in self._computed(shape)]
        text = f"compute {', '.join(computed)}" if computed else ""
        made = child.step(Select(shape.columns, shape.terms), shape.columns, keys, text)
        return replace(made, bounds=child.bounds.projected(self.catalyst, shape.columns, shape.terms))

    def _computed(self, shape: Project) -> list[tuple[Column, Term]]:
        pairs = zip(shape.columns, shape.terms, strict=True)
        return [(column, term) for column, term in pairs if self.catalyst.attribute_id(term) is None]

    def _projected(self, keys: Keys, columns: tuple[Column, ...], terms: tuple[Term, ...]) -> Keys:
        if not keys:
            return ()
        sources = [self.catalyst.attribute_id(term) for term in terms]
        return through_project(keys, [(c.id, s) for c, s in zip(columns, sources, strict=True)])

    def _timed(self, shape: Timed) -> Flow:
        child, clock = self.flow(shape.child), self.flow(shape.clock)
        port, columns, (value,) = self.side(child, [shape.value])
        ports = [port, Port(clock.pipes, (shape.moment,))]
        kinds = arrow_schema(port.kinds)
        if shape.leaving:
            operator: Passing = Leaving(kinds, value, shape.open, shape.shift)
        else:
            operator = Coming(kinds, value, shape.open, shape.shift, shape.final)
        spec = [shape.leaving, value, shape.open, shape.final]
        append_only = shape.final or (child.append_only and not shape.leaving)
        node = self.nodes.add("time", operator, ports, shape.text, spec, append_only=append_only)
        terms = tuple(column.term for column in shape.columns)
        pipe = Pipe(node, columns).then(Select(shape.columns, terms))
        drawing = Drawing(shape.text, (child.drawing,), node)
        bounds = self._passed(shape, child.bounds)
        return Flow((pipe,), shape.columns, child.keys, append_only, drawing, bounds)

    def _passed(self, shape: Timed, bounds: Bounds) -> Bounds:
        """Rows change as they did, and when a watermark passes them: then their value is not before it."""
        leaf = shape.clock.leaf if isinstance(shape.clock, Read) else ""
        if not leaf.startswith(WATERMARK) or shape.shift is None:
            return NOTHING
        return bounds.passed(self.catalyst, shape.value, frozenset({(leaf, shape.shift)}))

    def _union(self, shape: Union) -> Flow:
        flows = [self.flow(child) for child in shape.children]
        pipes = [
            pipe.then(Select(shape.columns, tuple(column.term for column in flow.columns)))
            for flow in flows
            for pipe in flow.pipes
        ]
        drawing = Drawing("union all", tuple(flow.drawing for flow in flows))
        bounds = union([self.renamed(flow, shape.columns) for flow in flows])
        append_only = all(flow.append_only for flow in flows)
        return Flow(tuple(pipes), shape.columns, (), append_only, drawing, bounds)

    def renamed(self, flow: Flow, columns: tuple[Column, ...]) -> Bounds:
        """The bounds of a flow whose columns get other names, in their order."""
        return flow.bounds.projected(self.catalyst, columns, [column.term for column in flow.columns])

    def _expand(self, shape: Expand) -> Flow:
        child = self.flow(shape.child)
        pipes = [
            pipe.then(Select(shape.columns, terms)) for pipe in child.pipes for terms in shape.projections
        ]
        drawing = Drawing(f"expand into {len(shape.projections)} rows", (child.drawing,))
        rows = [child.bounds.projected(self.catalyst, shape.columns, terms) for terms in shape.projections]
        return Flow(tuple(pipes), shape.columns, (), child.append_only, drawing, union(rows))

    def side(self, flow: Flow, keys: Sequence[Term]) -> tuple[Port, tuple[Column, ...], tuple[int, ...]]:
        """One port: the columns of the flow, each once, and after them the keys that are not columns already."""
        columns = list({column.id: column for column in flow.columns}.values())
        terms = [column.term for column in columns]
        places: dict[int | None, int] = {
            column.id: place for place, column in reversed(list(enumerate(columns)))
        }
        key = []
        for term in keys:
            place = places.get(self.catalyst.attribute_id(term))
            if place is None:
                place = len(terms)
                terms.append(term)
                columns.append(self.catalyst.fresh_column("key", kind_of(term)))
            key.append(place)
        return Port(flow.pipes, tuple(terms)), tuple(columns), tuple(key)

    def _foreign(self, shape: Foreign) -> Flow:
        child = self.flow(shape.child)
        step = Through((shape.operator,), shape.child.columns, shape.columns, weighted=True)
        return child.step(step, shape.columns, child.keys, shape.text)

    def _aggregate(self, shape: Aggregate) -> Flow:
        child = self.flow(shape.child)
        parts = split(self.catalyst, shape)
        extremes = sorted(
            {
                one.argument
                for one in parts.functions
                if one.kind in ("min", "max") and one.argument is not None
            }
        )
        retracts = bool(extremes) and not child.append_only
        port = Port(child.pipes, (*shape.keys, *parts.arguments))
        always = not shape.keys
        functions = tuple(parts.functions)
        kinds = arrow_schema(port.kinds)
        kind, operator = self._kernel(shape, kinds, functions, retracts, child.append_only)
        ports = [port]
        if retracts:
            ports += [Port(child.pipes, (*shape.keys, port.terms[place])) for place in extremes]
        spec = [len(shape.keys), [[one.kind, one.argument] for one in functions], always, retracts]
        if shape.merges:
            spec.append("in order")
        elif isinstance(operator, AggregateKernel) and operator.once:
            spec.append("once")
        append_only = child.append_only and not functions and not always and not shape.merges
        detail = describe(shape)
        bounds = child.bounds.projected(self.catalyst, shape.groups, shape.keys)
        ids = [group.id for group in shape.groups]
        traces = ["groups", *(f"values{place}" for place in extremes)]
        forgets = _of_session(bounds, ids) if shape.merges else _of_groups(bounds, ids, traces)
        node = self.nodes.add(kind, operator, ports, detail, spec, append_only=append_only, forgets=forgets)
        self._check_results(operator.output, port, parts.raw)
        finished = Select(
            (*shape.groups, *(call.result for call in shape.calls)),
            (*(group.term for group in shape.groups), *parts.finished),
        )
        pipe = Pipe(node, (*shape.groups, *parts.raw)).then(finished, Select(shape.columns, shape.results))
        keys: Keys = (tuple(group.id for group in shape.groups),)
        keys = self._projected(keys, shape.columns, shape.results)
        drawing = Drawing(detail if not functions else f"aggregate {detail}", (child.drawing,), node)
        if shape.merges:
            bounds = _after_session(bounds, ids)
        bounds = bounds.projected(self.catalyst, shape.columns, shape.results)
        return Flow((pipe,), shape.columns, keys, append_only, drawing, bounds)

    @staticmethod
    def _kernel(
        shape: Aggregate, kinds: pa.Schema, functions: tuple[Function, ...], retracts: bool, grows: bool
    ) -> tuple[str, AggregateKernel | Session]:
        if shape.merges:
            return "sessions", Session(kinds, len(shape.keys) - 1, functions)
        return "aggregate", AggregateKernel(
            kinds, len(shape.keys), functions, not shape.keys, retracts, grows
        )

    def _check_results(self, output: pa.Schema, port: Port, raw: list[Column]) -> None:
        """The kernel and the chain above it must agree on the types of the raw results."""
        expected = arrow_schema([*port.kinds[: len(output) - len(raw)], *(kind_of(one.term) for one in raw)])
        if output.types != expected.types:
            raise TypeError(f"the kernel gives {output.types}, the plan expects {expected.types}")


def _bounds(relation: Relation, ids: Mapping[str, int]) -> Bounds:
    """How far back events of a stream may be that come from now on, and the watermark that comes with them."""
    if relation.event_time is None or not relation.append_only:
        return NOTHING
    number = relation.leaf.number
    names = {relation.event_time: f"{HORIZON}{number}", MARK.name: f"{WATERMARK}{number}"}
    return Bounds({Place(ids[name]): frozenset({(clock, 0)}) for name, clock in names.items() if name in ids})


def _of_groups(bounds: Bounds, ids: Sequence[int], traces: Sequence[str]) -> tuple[Forgets, ...]:
    return tuple(rule for trace in traces for rule in bounds.forgets(trace, ids))


def _of_session(bounds: Bounds, ids: Sequence[int]) -> tuple[Forgets, ...]:
    """A session that ended before any window can begin that is still to come meets none."""
    *keys, window = ids
    rules = bounds.only(keys).forgets("sessions", ids)
    begin = bounds.places.get(Place(window, 0))
    return rules if not begin else (*rules, Forgets("sessions", f"c{len(keys)}", 1, begin))


def _after_session(bounds: Bounds, ids: Sequence[int]) -> Bounds:
    """A change reaches sessions that end no earlier than its own windows begin; when those began is not known."""
    *keys, window = ids
    places = dict(bounds.only(keys).places)
    if (begin := bounds.places.get(Place(window, 0))) is not None:
        places[Place(window, 1)] = begin
    return Bounds(places)
