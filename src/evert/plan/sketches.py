"""Aggregates that can be merged: of rows that only come, the sketch so far is all that is kept.

    hll_sketch_agg(x) BY k                    Swap by k
      clicks                    ──>             hll_union_agg(s) BY k, by Spark
                                                  Together: what Swap has of the keys, and the new parts
                                                    hll_sketch_agg(x) AS s BY k, by Spark, of an epoch's rows
                                                      clicks

The same goes for counts, minima and maxima beside them. Where rows are taken back, a sketch is computed anew from
all rows of its key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evert.delta.swap import Swap
from evert.delta.together import Together
from evert.plan.chains import Pipe, Select, Through, Where
from evert.plan.explain import Drawing
from evert.plan.expressions import name_of
from evert.plan.nodes import Port
from evert.plan.tree import Merged
from evert.plan.types import arrow_schema, check_key, kind_of
from evert.schema.types import Atom

if TYPE_CHECKING:
    from evert.plan.incremental import Flow, Incremental


def _number(name: str, place: int) -> Callable[[Any], str]:
    """A call of a function with the sketch, and the number or flag that its maker had at this place."""
    return lambda function: f"{name}({{}}, {function.children().apply(place).sql()})"


def _quantiles(kind: str) -> Callable[[Any], str]:
    def merged(function: Any) -> str:
        size = function.kExpr()
        return f"kll_merge_agg_{kind.lower()}({{}}{f', {size.get().sql()}' if size.isDefined() else ''})"

    return merged


_SKETCHES: dict[str, Callable[[Any], str]] = {
    "HllSketchAgg": lambda function: "hll_union_agg({}, false)",
    "HllUnionAgg": _number("hll_union_agg", 1),
    "ThetaSketchAgg": _number("theta_union_agg", 1),
    "ThetaUnionAgg": _number("theta_union_agg", 1),
    **{f"KllSketchAgg{kind}": _quantiles(kind) for kind in ("Bigint", "Double", "Float")},
    **{f"KllMergeAgg{kind}": _quantiles(kind) for kind in ("Bigint", "Double", "Float")},
    "BitmapConstructAgg": lambda function: "bitmap_or_agg({})",
    "BitmapOrAgg": lambda function: "bitmap_or_agg({})",
    "BitmapAndAgg": lambda function: "bitmap_and_agg({})",
}
"""What merges what a function gives."""
_BESIDE = {"Count": "sum({})", "Min": "min({})", "Max": "max({})"}
ONCE = {"HllSketchAgg", "HllUnionAgg", "ThetaSketchAgg", "ThetaUnionAgg"}
_EXACT = {"BitmapConstructAgg", "BitmapOrAgg", "BitmapAndAgg"}
_OTHERS = {"ApproxTopK", "ApproxTopKAccumulate", "ApproxTopKCombine", "ApproximatePercentile"}
ESTIMATES = (frozenset(_SKETCHES) - _EXACT) | _OTHERS
"""Functions whose result depends on the order of rows, within an error."""


def merging(calls: Sequence[Any]) -> list[str] | None:
    """How the results of calls are merged, as calls of `{}`; None if they are not sketches that can be."""
    made, sketches = [], 0
    for call in calls:
        if name_of(call) != "AggregateExpression" or call.isDistinct():
            return None
        function = call.aggregateFunction()
        name = name_of(function)
        if name in _BESIDE:
            made.append(_BESIDE[name])
        elif name in _SKETCHES:
            made.append(_SKETCHES[name](function))
            sketches += 1
        else:
            return None
    return made if sketches else None


def flow(plan: Incremental, shape: Merged) -> Flow:
    """The sketches of each key, merged with those of an epoch."""
    for key in shape.keys:
        check_key(kind_of(key.term), "grouping")
    child = plan.flow(shape.child)
    taken = tuple({column.id: column for column in child.columns}.values())
    parts = tuple(
        pipe.then(Through((shape.partial,), taken, shape.columns, weighted=False)) for pipe in child.pipes
    )
    kinds = tuple(kind_of(column.term) for column in shape.columns)
    port = Port(parts, tuple(column.term for column in shape.columns))
    keys = tuple(range(len(shape.keys)))
    schema = arrow_schema(port.kinds)
    bounds = child.bounds.projected(plan.catalyst, shape.keys, shape.terms)
    together = plan.nodes.add(
        "together", Together(schema, keys), [port], shape.text, [keys], append_only=False
    )
    there = plan.catalyst.fresh_column("there", Atom("BOOLEAN"))
    pipe = Pipe(together, (*shape.columns, there))
    operator, takes, gives = plan.catalyst.merging(kinds, len(keys), shape.merging)
    columns = tuple(column.term for column in shape.columns)
    merged = pipe.then(
        Where(there.term),
        Select(takes, (*columns, plan.catalyst.literal(0))),
        Through((operator,), takes, gives, weighted=False),
    )
    ports = [
        Port((pipe.then(Where(plan.catalyst.negation(there.term))),), columns[: len(keys)]),
        Port((merged,), tuple(column.term for column in gives)),
    ]
    nothing = None if keys else plan.catalyst.over_nothing(shape.nothing, schema)
    node = plan.nodes.add(
        *("swap", Swap(schema, keys, nothing), ports, shape.text, [keys]),
        append_only=False,
        forgets=bounds.forgets("rows", [key.id for key in shape.keys]),
    )
    plan.nodes.reads(together, node)
    drawing = Drawing(shape.text, (child.drawing,), node)
    unique = (tuple(key.id for key in shape.keys),)
    return plan.made((Pipe(node, shape.columns),), shape.columns, unique, drawing, bounds)
