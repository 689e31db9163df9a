"""Window functions over what is near a row: RANGE frames with two bounds.

The result depends on the rows of the partition whose value, in the order, is no further away than the frame
reaches. So a change is felt as far in the other direction, and no further.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evert.delta.near import Near
from evert.delta.swap import Swap
from evert.plan.bounds import OFFSETS, Bounds, Place, shifted
from evert.plan.chains import Pipe, Select, Through, Where
from evert.plan.explain import Drawing
from evert.plan.expressions import name_of
from evert.plan.nodes import Port
from evert.plan.tree import Sliding, Term
from evert.plan.types import arrow_schema, check_key, kind_of, type_text
from evert.schema.types import INTEGERS, Atom
from evert.trace.horizon import DAY

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst
    from evert.plan.incremental import Flow, Incremental

_UNITS = {
    "BIGINT": {"LongType": 1},
    "DATE": {"IntegerType": 1, "DayTimeIntervalType": DAY},
    "INT": {"IntegerType": 1},
    "SMALLINT": {"ShortType": 1},
    "TIMESTAMP": {"DayTimeIntervalType": 1},
    "TIMESTAMP_NTZ": {"DayTimeIntervalType": 1},
    "TINYINT": {"ByteType": 1},
}
"""The types of order by which is known what is near, and those of their bounds: how many of these are one step."""


@dataclass(frozen=True)
class Reach:
    """How far frames reach from a row's value of `order` to lesser and to greater ones, or further."""

    order: Term
    before: int
    after: int


def reach(catalyst: Catalyst, operators: Sequence[Any]) -> Reach | None:
    """How far the frames of window operators reach that are put on top of each other; None if that is not known.

    An operator reaches as far as the furthest of its frames, and from there the operator below it goes on.
    """
    order, before, after = None, 0, 0
    for operator in operators:
        orders = catalyst.items(operator.orderSpec())
        if len(orders) != 1 or (order is not None and not order.semanticEquals(orders[0].child())):
            return None
        order = orders[0].child()
        windows = [one.child().windowSpec() for one in catalyst.items(operator.windowExpressions())]
        found = _furthest(catalyst, type_text(order), windows)
        if found is None:
            return None
        less, more = found
        if name_of(orders[0].direction()) == "Descending":
            less, more = more, less
        before, after = before + less, after + more
    by = [] if order is None else catalyst.items(operators[0].partitionSpec())
    if order is None or max(before, after) >= 1 << 63 or any(order.semanticEquals(term) for term in by):
        return None
    return Reach(order, before, after)


def _furthest(catalyst: Catalyst, kind: str, windows: Sequence[Any]) -> tuple[int, int] | None:
    """How far the frames over values of this type reach, or further; None if one of them is of another kind."""
    if kind not in _UNITS or (kind in INTEGERS and not catalyst.is_ansi):
        # Without ANSI Spark's sums wrap around, and a frame near the largest number begins at the least one.
        return None
    before = after = 0
    for window in windows:
        bounds = _bounds(window, _UNITS[kind])
        if bounds is None:
            return None
        before, after = max(before, -bounds[0]), max(after, bounds[1])
    if kind == "DATE" and max(before, after) >= 1 << 30:
        return None
    if kind == "TIMESTAMP" and max(before, after) >= DAY and not catalyst.even_days:
        before, after = before + OFFSETS, after + OFFSETS
    return before, after


def _bounds(window: Any, units: Mapping[str, int]) -> tuple[int, int] | None:
    """From where to where a frame goes, in steps of the order; None if it is no frame of this kind."""
    frame = window.frameSpecification()
    if name_of(frame.frameType()) != "RangeFrame":
        return None
    found = []
    for bound in (frame.lower(), frame.upper()):
        unit = units.get(name_of(bound.dataType())) if name_of(bound) == "Literal" else None
        if name_of(bound) == "CurrentRow":
            found.append(0)
        elif unit is None:
            return None
        else:
            steps = -(-abs(int(bound.value())) // unit)
            found.append(steps if bound.value() > 0 else -steps)
    return found[0], found[1]


def flow(plan: Incremental, shape: Sliding) -> Flow:
    """The rows around what changed, through Spark's operators, and what they gave before taken back."""
    for key in shape.keys:
        check_key(kind_of(key.term), "a window or aggregate")
    child = plan.flow(shape.child)
    port, columns, places = plan.side(child, [key.term for key in (*shape.keys, shape.order)])
    keys, order = places[:-1], places[-1]
    near = Near(arrow_schema(port.kinds), keys, order, shape.before, shape.after)
    spec = [keys, order, shape.before, shape.after]
    read, asked_for = _reached(shape, child.bounds)
    forgets = read.forgets("rows", [column.id for column in columns])
    rows = plan.nodes.add("near", near, [port], shape.text, spec, append_only=False, forgets=forgets)
    there, asked = (plan.catalyst.fresh_column(name, Atom("BOOLEAN")) for name in ("there", "asked"))
    pipe = Pipe(rows, (*columns, there, asked))
    taken = (*columns, asked)
    through = Through(shape.operators, taken, (*shape.columns, asked), weighted=False)
    made = pipe.then(
        Where(there.term), Select(taken, tuple(column.term for column in taken)), through, Where(asked.term)
    )
    ports = [
        Port((pipe.then(Where(asked.term)),), tuple(columns[place].term for place in places)),
        Port((made,), tuple(column.term for column in shape.columns)),
    ]
    ids = [column.id for column in shape.columns]
    kept = tuple(ids.index(key.id) for key in (*shape.keys, shape.order))
    swap = Swap(arrow_schema(ports[1].kinds), kept)
    forgets = asked_for.forgets("rows", ids)
    node = plan.nodes.add("swap", swap, ports, shape.text, [kept], append_only=False, forgets=forgets)
    drawing = Drawing(shape.text, (child.drawing,), node)
    return plan.made((Pipe(node, shape.columns),), shape.columns, child.keys, drawing, asked_for)


def _reached(shape: Sliding, bounds: Bounds) -> tuple[Bounds, Bounds]:
    """How far back the rows are that a change makes read, and those of which it changes the results."""
    kept = bounds.only(key.id for key in shape.keys)
    place = Place(shape.order.id)
    if place not in bounds.places:
        return kept, kept
    bound, before, after = bounds.places[place], shape.before, shape.after
    found = [{**kept.places, place: shifted(bound, -by)} for by in (before + after, after)]
    return Bounds(found[0]), Bounds(found[1])
