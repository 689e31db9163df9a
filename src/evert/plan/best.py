"""The best rows of each group, written as a join with the best value of each group; ranks say the same with less.

    SELECT r.*, m.most FROM r JOIN (SELECT g, max(x) AS most FROM r GROUP BY g) m ON r.g = m.g AND r.x >= m.most

are the rows of `r` whose rank by `x`, the greatest first, among those of their `g` is 1; and `most` is their `x`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evert.plan.catalyst import Catalyst
from evert.plan.chains import Pipe, Select, Step, Where
from evert.plan.expressions import conjuncts, name_of
from evert.plan.nodes import Port
from evert.plan.tree import Aggregate, Filter, Join, Order, Project, Shape, Term, Top
from evert.plan.types import kind_of
from evert.schema.types import Atom

if TYPE_CHECKING:
    from evert.plan.incremental import Incremental

_KINDS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
"""Types of which equal values are the same; of 0.0 and -0.0 a join shows each side's own."""
_AT_LEAST = {
    "max": ("GreaterThanOrEqual", "LessThanOrEqual"),
    "min": ("LessThanOrEqual", "GreaterThanOrEqual"),
}
"""How a row's value compares with the best one if it is the best; and the other way round."""

_Keys = Sequence[tuple[Term, Term]]


def ranked(plan: Incremental, shape: Join) -> Shape | None:
    """The join as a rank, if it is one."""
    if shape.kind != "inner" or any(safe for _, _, safe in shape.keys):
        return None
    there = [(one, two) for one, two, _ in shape.keys]
    back = [(two, one) for one, two in there]
    return _ranked(plan, shape, shape.left, shape.right, there) or _ranked(
        plan, shape, shape.right, shape.left, back
    )


def _ranked(plan: Incremental, shape: Join, rows: Shape, best: Shape, keys: _Keys) -> Shape | None:
    catalyst = plan.catalyst
    found = _aggregate(catalyst, best)
    if found is None:
        return None
    aggregate, meaning = found
    (call,) = aggregate.calls
    mine = {meaning.get(catalyst.attribute_id(two) or 0): one for one, two in keys}
    if len(mine) < len(keys):  # a column of the best is compared with two of the rows
        return None
    groups = [group.id for group in aggregate.groups]
    rest = [] if shape.residual is None else list(conjuncts(shape.residual))
    if call.result.id not in mine:
        for place, one in enumerate(rest):
            value = _compared(catalyst, one, call.kind, meaning, call.result.id)
            if value is not None:
                mine[call.result.id] = value
                del rest[place]
                break
    if set(mine) != {*groups, call.result.id}:
        return None
    value, partition = mine[call.result.id], tuple(mine[group] for group in groups)
    kind = kind_of(value)
    if not isinstance(kind, Atom) or kind.name not in _KINDS:
        return None
    compared = [(rows, (*partition, value)), (aggregate.child, (*aggregate.keys, call.argument))]
    if not plan.nodes.alike(*(_present(plan, side, terms) for side, terms in compared)):
        return None
    given = rows
    if absent := [term for term in (*partition, value) if term.nullable()]:
        given = Filter(rows.columns, catalyst.both([catalyst.is_not_null(term) for term in absent]), rows)
    order = Order(value, descending=call.kind == "max", nulls_first=False)
    text = f"rows with the {call.kind} of {value.sql()} by {', '.join(term.sql() for term in partition)}"
    made: Shape = Top(rows.columns, given, (order,), 1, 1, partition, "rank", None, text)
    of_rows = {column.id: column.term for column in rows.columns}
    terms = tuple(of_rows[c.id] if c.id in of_rows else mine[meaning[c.id]] for c in shape.columns)
    made = Project(shape.columns, terms, made)
    return Filter(shape.columns, catalyst.both(rest), made) if rest else made


def _aggregate(catalyst: Catalyst, shape: Shape) -> tuple[Aggregate, dict[int, int]] | None:
    """The aggregate of one greatest or least value that a shape is, and which of its results each column is."""
    meaning: dict[int, int | None] = {column.id: column.id for column in shape.columns}
    while not isinstance(shape, Aggregate):
        match shape:
            case Filter(condition=condition, child=child):
                if not all(
                    _asks(catalyst, one, set(meaning.values()) - {None}) for one in conjuncts(condition)
                ):
                    return None
                shape = child
            case Project(columns=columns, terms=terms, child=child):
                below = {c.id: catalyst.attribute_id(term) for c, term in zip(columns, terms, strict=True)}
                meaning = {id: below.get(known or 0) for id, known in meaning.items()}
                shape = child
            case _:
                return None
    if shape.merges or not shape.groups or len(shape.calls) != 1:
        return None
    (call,) = shape.calls
    if call.kind not in _AT_LEAST or call.filter is not None or call.distinct:
        return None
    results = {
        c.id: catalyst.attribute_id(term) for c, term in zip(shape.columns, shape.results, strict=True)
    }
    known = {id: results.get(place or 0) for id, place in meaning.items()}
    if not set(known.values()) <= {*(group.id for group in shape.groups), call.result.id}:
        return None
    return shape, {id: place for id, place in known.items() if place is not None}


def _present(plan: Incremental, shape: Shape, terms: tuple[Term, ...]) -> Port:
    """The rows of a shape in which no term is NULL, which are all that count: whether that is asked for or not."""
    return Port(tuple(_unasked(plan.catalyst, pipe, terms) for pipe in plan.flow(shape).pipes), terms)


def _unasked(catalyst: Catalyst, pipe: Pipe, terms: Sequence[Term]) -> Pipe:
    """A pipe that does not ask whether these terms at its end are there."""
    ids = {catalyst.attribute_id(term) for term in terms} - {None}
    steps: list[Step] = []
    for step in reversed(pipe.steps):
        if isinstance(step, Select):
            made = zip(step.columns, step.terms, strict=True)
            ids = {catalyst.attribute_id(term) for column, term in made if column.id in ids} - {None}
        if isinstance(step, Where):
            asked = [one for one in conjuncts(step.condition) if not _asks(catalyst, one, ids)]
            if not asked:
                continue
            step = Where(catalyst.both(asked))
        steps.append(step)
    return replace(pipe, steps=tuple(reversed(steps)))


def _asks(catalyst: Catalyst, condition: Term, ids: set[int | None]) -> bool:
    return name_of(condition) == "IsNotNull" and catalyst.attribute_id(condition.child()) in ids


def _compared(catalyst: Catalyst, term: Term, kind: str, meaning: dict[int, int], best: int) -> Term | None:
    """What is compared with the best value, if the term says that it is at least as good."""
    if name_of(term) not in _AT_LEAST[kind]:
        return None
    one, two = term.left(), term.right()
    if name_of(term) == _AT_LEAST[kind][1]:
        one, two = two, one
    ids = [meaning.get(catalyst.attribute_id(side) or 0) for side in (one, two)]
    return one if ids == [None, best] else None
