"""Rows that only ever get better: counts and greatest values of what only grows.

Of a group by `g` over a stream, `count(*)` and `max(x)` never fall and `min(x)` never rises, and the group stays.
So a row that is not among the best by one of them will not be there again unless it has changed itself: whatever is
better stays better. A rank by such a column need not keep what is not shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evert.plan.catalyst import Catalyst
from evert.plan.expressions import conjuncts, name_of
from evert.plan.tree import Aggregate, Column, Filter, Project, Shape, Term, Top

if TYPE_CHECKING:
    from evert.plan.incremental import Incremental


@dataclass(frozen=True)
class Steady:
    """The columns by which groups are told apart and what follows from them; those that rise, those that fall."""

    fixed: frozenset[int] = frozenset()
    rising: frozenset[int] = frozenset()
    falling: frozenset[int] = frozenset()

    def projected(self, catalyst: Catalyst, columns: Sequence[Column], terms: Sequence[Term]) -> Steady:
        pairs = [(column.id, term) for column, term in zip(columns, terms, strict=True)]
        ids = {column: catalyst.attribute_id(term) for column, term in pairs}
        return Steady(
            frozenset(column for column, term in pairs if self.has_fixed(catalyst, term)),
            frozenset(column for column, id in ids.items() if id in self.rising),
            frozenset(column for column, id in ids.items() if id in self.falling),
        )

    def where(self, catalyst: Catalyst, condition: Term) -> Steady:
        """The same if no group can fail the condition that has met it."""
        for one in conjuncts(condition):
            there = catalyst.attribute_id(one.child()) if name_of(one) == "IsNotNull" else None
            if not self.has_fixed(catalyst, one) and there not in self.rising | self.falling:
                return NOTHING
        return self

    def has_fixed(self, catalyst: Catalyst, term: Term) -> bool:
        """Whether nothing but fixed columns is in a term."""
        return all(
            catalyst.attribute_id(one) in self.fixed for one in catalyst.items(term.references().toSeq())
        )


NOTHING = Steady()


def of(plan: Incremental, shape: Shape) -> Steady:
    """What is known of the rows of a shape."""
    match shape:
        case Aggregate():
            if shape.merges or not shape.groups or not plan.flow(shape.child).append_only:
                return NOTHING
            kinds = {call.result.id: call.kind for call in shape.calls if not call.distinct}
            found = Steady(
                frozenset(group.id for group in shape.groups),
                frozenset(id for id, kind in kinds.items() if kind in ("count", "max")),
                frozenset(id for id, kind in kinds.items() if kind == "min"),
            )
            return found.projected(plan.catalyst, shape.columns, shape.results)
        case Project():
            return of(plan, shape.child).projected(plan.catalyst, shape.columns, shape.terms)
        case Filter():
            return of(plan, shape.child).where(plan.catalyst, shape.condition)
    return NOTHING


def improves(plan: Incremental, shape: Top) -> bool:
    """Whether a row that is not among those that a rank shows can be forgotten: if it comes back, it comes anew.

    Of rows that the order finds equal, row numbers choose by all columns, so all of these must be fixed.
    """
    if shape.most is None or shape.kind == "dense_rank" or not shape.order:
        return False
    known, catalyst = of(plan, shape.child), plan.catalyst
    first, *others = shape.order
    id = catalyst.attribute_id(first.term)
    if id not in (known.rising if first.descending else known.falling) or first.nulls_first:
        return False
    every = {column.id for column in shape.child.columns}
    if shape.kind == "row_number" and not every <= known.fixed | {id}:
        return False
    return all(known.has_fixed(catalyst, term) for term in (*(one.term for one in others), *shape.partition))
