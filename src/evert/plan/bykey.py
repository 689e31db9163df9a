"""What is kept key by key: the best rows, and whatever Spark makes of all rows of a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evert.delta.swap import Swap
from evert.delta.top import Order as Ordered
from evert.delta.top import Top as TopKernel
from evert.delta.touched import Touched
from evert.plan.chains import Pipe, Select, Through, Where
from evert.plan.explain import Drawing
from evert.plan.graph import How
from evert.plan.keys import Keys
from evert.plan.nodes import Port
from evert.plan.steady import improves
from evert.plan.tree import PerKey, Top
from evert.plan.types import arrow_schema, check_key, check_ordered, kind_of
from evert.schema.types import Atom

if TYPE_CHECKING:
    from evert.plan.incremental import Flow, Incremental


def top(plan: Incremental, shape: Top) -> Flow:
    """The best rows of each partition."""
    for term in shape.partition:
        check_key(kind_of(term), "PARTITION BY")
    for one in shape.order:
        check_ordered(kind_of(one.term), "ORDER BY")
    child = plan.flow(shape.child)
    port, columns, places = plan.side(child, [*shape.partition, *(one.term for one in shape.order)])
    keys, ordered = places[: len(shape.partition)], places[len(shape.partition) :]
    order = tuple(
        Ordered(place, one.descending, one.nulls_first)
        for place, one in zip(ordered, shape.order, strict=True)
    )
    ranked = shape.rank is not None
    better = not child.append_only and improves(plan, shape)
    kinds = arrow_schema(port.kinds)
    operator = TopKernel(
        *(kinds, keys, order, shape.kind, shape.least, shape.most, ranked, child.append_only), improves=better
    )
    rules = [shape.kind, shape.least, shape.most, ranked, child.append_only, *([better] if better else [])]
    spec = [keys, [list(one) for one in order], rules]
    bounds = child.bounds.only(columns[place].id for place in keys)
    forgets = bounds.forgets("rows", [column.id for column in columns])
    node = plan.nodes.add("top", operator, [port], shape.text, spec, append_only=False, forgets=forgets)
    given = (*columns, shape.rank) if shape.rank is not None else columns
    pipe = Pipe(node, given).then(Select(shape.columns, tuple(column.term for column in shape.columns)))
    drawing = Drawing(shape.text, (child.drawing,), node)
    return plan.made((pipe,), shape.columns, (*child.keys, *_numbered(plan, shape)), drawing, bounds)


def _numbered(plan: Incremental, shape: Top) -> Keys:
    """What row numbers add to the keys: a partition has each of them once."""
    partition = [plan.catalyst.attribute_id(term) for term in shape.partition]
    there = {column.id for column in shape.columns}
    known = tuple(id for id in partition if id is not None and id in there)
    if shape.kind != "row_number" or len(known) < len(partition):
        return ()
    if shape.least == shape.most:
        return (known,)
    return () if shape.rank is None else ((*known, shape.rank.id),)


def per_key(plan: Incremental, shape: PerKey) -> Flow:
    """All rows of the keys that changed, through Spark's operators, and what they gave before taken back."""
    for key in shape.keys:
        check_key(kind_of(key.term), "a window or aggregate")
    child = plan.flow(shape.child)
    port, columns, places = plan.side(child, [key.term for key in shape.keys])
    how: How = "per key" if shape.keys else "whole"
    touched = Touched(arrow_schema(port.kinds), places)
    bounds = child.bounds.only(key.id for key in shape.keys)
    forgets = bounds.forgets("rows", [column.id for column in columns])
    rows = plan.nodes.add(
        "rows", touched, [port], shape.text, [places], append_only=False, how=how, forgets=forgets
    )
    there = plan.catalyst.fresh_column("there", Atom("BOOLEAN"))
    pipe = Pipe(rows, (*columns, there))
    marks = pipe.then(Where(plan.catalyst.negation(there.term)))
    through = Through(shape.operators, columns, shape.columns, weighted=False)
    made = pipe.then(Where(there.term), Select(columns, tuple(column.term for column in columns)), through)
    ports = [
        Port((marks,), tuple(columns[place].term for place in places)),
        Port((made,), tuple(column.term for column in shape.columns)),
    ]
    ids = [column.id for column in shape.columns]
    kept = tuple(ids.index(key.id) for key in shape.keys)
    kinds = arrow_schema(ports[1].kinds)
    nothing = None if shape.nothing is None else plan.catalyst.over_nothing(shape.nothing, kinds)
    swap = Swap(kinds, kept, nothing)
    node = plan.nodes.add(
        *("swap", swap, ports, shape.text, [kept]),
        append_only=False,
        how=how,
        forgets=bounds.forgets("rows", ids),
    )
    drawing = Drawing(shape.text, (child.drawing,), node)
    unique = child.keys
    if shape.groups is not None:
        unique = (tuple(group.id for group in shape.groups),)
    return plan.made((Pipe(node, shape.columns),), shape.columns, unique, drawing, bounds)
