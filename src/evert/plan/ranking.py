"""Window functions, ORDER BY with LIMIT and OFFSET, and ranks that a filter limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evert.plan import sliding
from evert.plan.expressions import name_of
from evert.plan.fingerprints import plain_sql
from evert.plan.tree import Column, Filter, Order, PerKey, Project, Recompute, Shape, Sliding, Term, Top
from evert.plan.types import kind_of
from evert.schema.types import Struct, has_floats

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst
    from evert.plan.reading import Reader

LIMITS = ("GlobalLimit", "LocalLimit", "Offset")
TURNED = {
    "EqualTo": "EqualTo",
    "GreaterThan": "LessThan",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "LessThan": "GreaterThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
}
"""Comparisons, with what they are if their sides change places."""
_RANKS = {"RowNumber": "row_number", "Rank": "rank", "DenseRank": "dense_rank"}


def limited(reader: Reader, plan: Any) -> Shape:
    """LIMIT and OFFSET, with what lies between them and the ORDER BY below them.

    Projections on the way keep rows and their order, so they are as good above.
    """
    steps, projections = [], []
    while (name := name_of(plan)) in (*LIMITS, "Project"):
        if name == "Project":
            projections.append(plan)
        else:
            steps.append(plan)
        plan = plan.children().apply(0)
    least, most = 1, None
    for step in reversed(steps):
        if name_of(step) == "Offset":
            least += _number(step.offsetExpr())
        else:
            end = least + _number(step.limitExpr()) - 1
            most = end if most is None else min(most, end)
    order: tuple[Order, ...] = ()
    if name_of(plan) == "Sort":
        order = _order(reader, plan.order())
        plan = plan.child()
    below = reader.read(plan)
    words = [f"order by {_words(order)}"] if order else []
    words += [f"offset {least - 1}"] if least > 1 else []
    words += [f"limit {most - least + 1}"] if most is not None else []
    terms, child = reader.ready([one.term for one in order], below)
    order = tuple(replace(one, term=term) for one, term in zip(order, terms, strict=True))
    shape: Shape = Top(child.columns, child, order, least, most, text=" ".join(words))
    shape = reader.only(below.columns, shape)
    for projection in reversed(projections):
        shape = reader.projected(projection, shape)
    return shape


def filtered(reader: Reader, plan: Any) -> Shape | None:
    """A filter above a rank, as the best rows of each partition; None if it is something else."""
    below = plan.child()
    if name_of(below) != "Window":
        return None
    named = reader.catalyst.items(below.windowExpressions())
    kind = _RANKS.get(name_of(named[0].child().windowFunction())) if len(named) == 1 else None
    source, orders = below.child(), below.orderSpec()
    if not reader.catalyst.items(orders):
        kind = kind if kind == "row_number" else None
        source, orders = below_sort(reader.catalyst, source) or (source, orders)
    if kind is None:
        return None
    rank = reader.catalyst.column(named[0].toAttribute())
    least, most, rest = 1, None, []
    for part in reader.conjuncts(plan.condition()):
        bounds = _bounds(part, rank)
        if bounds is None:
            rest.append(part)
        else:
            least = max(least, bounds[0])
            if bounds[1] is not None:
                most = bounds[1] if most is None else min(most, bounds[1])
    if most is None or reader.foreign(rest) or reader.subqueries(rest):
        return None
    child = reader.read(source)
    partition = tuple(reader.catalyst.items(below.partitionSpec()))
    order = _order(reader, orders)
    text = f"{kind} to {most}"
    text += f" by {', '.join(term.sql() for term in partition)}" if partition else ""
    text += f" order by {_words(order)}" if order else ""
    columns = (*reader.columns(below.child()), rank)
    shape: Shape = Top((*child.columns, rank), child, order, least, most, partition, kind, rank, text)
    shape = reader.only(columns, shape)
    return Filter(columns, reader.catalyst.both(rest), shape) if rest else shape


def below_sort(catalyst: Catalyst, plan: Any) -> tuple[Any, Any] | None:
    """What an ORDER BY orders, and how, if nothing but a choice of columns is above it.

    A LIMIT in a correlated subquery becomes a row number, and the ORDER BY may be left somewhere below it.
    """
    while name_of(plan) == "Project" and all(
        catalyst.attribute_id(term) is not None for term in catalyst.items(plan.projectList())
    ):
        plan = plan.child()
    return (plan.child(), plan.order()) if name_of(plan) == "Sort" else None


def window(reader: Reader, plan: Any) -> Shape:
    """Window functions, by partition; operators with the same partitions are one."""
    columns = reader.columns(plan)
    operators = [plan]
    partition = reader.catalyst.items(plan.partitionSpec())
    while name_of(plan.child()) == "Window" and _same(
        partition, reader.catalyst.items(plan.child().partitionSpec())
    ):
        plan = plan.child()
        operators.insert(0, plan)
    calls = [one for each in operators for one in reader.catalyst.items(each.windowExpressions())]
    by = f" by {', '.join(term.sql() for term in partition)}" if partition else ""
    text = f"window {', '.join(plain_sql(one.child().windowFunction()) for one in calls)}{by}"
    near = sliding.reach(reader.catalyst, operators)
    terms = partition if near is None else [*partition, near.order]
    keys, child = keyed(reader, terms, reader.read(plan.child()))
    given = (*columns, *(key for key in keys if key not in columns))
    if near is None:
        return reader.only(columns, PerKey(given, tuple(operators), keys, child, text))
    text += f", sliding by {plain_sql(near.order)}"
    slides = Sliding(given, tuple(operators), keys[:-1], keys[-1], near.before, near.after, child, text)
    return reader.only(columns, slides)


def keyed(
    reader: Reader, terms: Sequence[Term], child: Shape, *, apart: bool = False
) -> tuple[tuple[Column, ...], Shape]:
    """The child with a column for each key: one it has, or a column of its own if keys are to be kept `apart`.

    A key with floating point numbers is always apart: it is made equal where Spark takes it for equal, and what
    the child has must stay as it is.
    """
    catalyst = reader.catalyst
    known = {column.id: column for column in child.columns}
    keys, added = [], []
    for term in terms:
        column = known.get(catalyst.attribute_id(term) or 0)
        if column is None or apart or has_floats(kind_of(term)):
            column = catalyst.fresh_column("key", kind_of(term))
            added.append((column, term))
        keys.append(column)
    if added:
        columns = (*child.columns, *(column for column, _ in added))
        kept = (*(column.term for column in child.columns), *(term for _, term in added))
        child = Project(columns, kept, child)
    return tuple(keys), child


def _order(reader: Reader, orders: Any) -> tuple[Order, ...]:
    found: list[Order] = []
    for one in reader.catalyst.items(orders):
        descending = name_of(one.direction()) == "Descending"
        nulls_first = name_of(one.nullOrdering()) == "NullsFirst"
        found += _parts(reader, Order(one.child(), descending, nulls_first))
    return tuple(found)


def _parts(reader: Reader, order: Order) -> list[Order]:
    """An order by a struct as one by whether it is there, and by its fields: in these, NULL is the least."""
    kind = kind_of(order.term)
    if not isinstance(kind, Struct):
        return [order]
    there = Order(reader.catalyst.is_not_null(order.term), not order.nulls_first, order.nulls_first)
    fields = [reader.catalyst.field(order.term, place) for place in range(len(kind.fields))]
    by_field = [Order(field, order.descending, not order.descending) for field in fields]
    return [there, *(part for one in by_field for part in _parts(reader, one))]


def _words(order: Sequence[Order]) -> str:
    return ", ".join(one.term.sql() + (" desc" if one.descending else "") for one in order)


def _bounds(term: Term, rank: Column) -> tuple[int, int | None] | None:
    """The least and greatest rank that a comparison lets through."""
    name = name_of(term)
    if name not in TURNED:
        return None
    one, two = term.left(), term.right()
    if name_of(one) == "Literal":
        one, two, name = two, one, TURNED[name]
    if name_of(one) != "AttributeReference" or one.exprId().id() != rank.id or name_of(two) != "Literal":
        return None
    number = two.value()
    if not isinstance(number, int):
        return None
    match name:
        case "LessThan":
            return 1, number - 1
        case "LessThanOrEqual":
            return 1, number
        case "GreaterThan":
            return number + 1, None
        case "GreaterThanOrEqual":
            return number, None
        case _:
            return number, number


def _number(term: Term) -> int:
    if name_of(term) != "Literal":
        raise Recompute("a LIMIT or OFFSET that is no number")
    return int(term.value())


def _same(one: Sequence[Term], two: Sequence[Term]) -> bool:
    return len(one) == len(two) and all(a.semanticEquals(b) for a, b in zip(one, two, strict=True))
