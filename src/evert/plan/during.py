"""Joins whose condition is that the right side is valid at a time of the left: one row at most is, of each key.

l.key = r.key AND r._valid_from <= l.time AND (r._valid_to IS NULL OR l.time < r._valid_to)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evert.delta.versions import VALID_FROM, VALID_TO
from evert.plan.expressions import conjuncts, name_of
from evert.plan.tree import Filter, Join, Project, Read, Term

if TYPE_CHECKING:
    from evert.plan.incremental import Incremental


def found(plan: Incremental, shape: Join) -> tuple[Term, Term, Term] | None:
    """The time of the left, and the begin and end of the right; None if the join is not of this form."""
    versions = _versions(plan, shape)
    if shape.residual is None or versions is None:
        return None
    begin, end = versions
    parts = list(conjuncts(shape.residual))
    left = plan.catalyst.attributes(shape.left.columns)
    for part in parts:
        time = _greater(part, begin, or_equal=True)
        if time is None or not time.references().subsetOf(left):
            continue
        if not time.dataType().sameType(begin.dataType()):
            continue
        for other in parts:
            until = _until(other, end)
            if until is not None and until.semanticEquals(time):
                return time, begin, end
    return None


def _versions(plan: Incremental, shape: Join) -> tuple[Term, Term] | None:
    """The begin and end of the right side, if it is a table's versions and the join sets all of its key equal."""
    below = shape.right
    while isinstance(below, Filter | Project):
        below = below.child
    relation = plan.relation(below) if isinstance(below, Read) else None
    if relation is None or relation.versions is None:
        return None
    ids = {column.name: column.id for column in below.columns}
    equal = {plan.catalyst.attribute_id(two) for _, two, _ in shape.keys}
    terms = {column.id: column.term for column in shape.right.columns}
    begin, end = (terms.get(ids[name]) for name in (VALID_FROM, VALID_TO))
    if begin is None or end is None or not {ids[name] for name in relation.key} <= equal:
        return None
    return begin, end


def _until(term: Term, end: Term) -> Term | None:
    """The time in `end IS NULL OR time < end`."""
    if name_of(term) != "Or":
        return None
    for one, two in ((term.left(), term.right()), (term.right(), term.left())):
        if name_of(one) == "IsNull" and one.child().semanticEquals(end):
            return _greater(two, end, or_equal=False, turned=True)
    return None


def _greater(term: Term, bound: Term, *, or_equal: bool, turned: bool = False) -> Term | None:
    """What is greater than the bound, or equal to it, in a comparison with it; less, if it is turned."""
    names = ["LessThan", "GreaterThan"]
    if turned:
        names.reverse()
    names = [name + "OrEqual" * or_equal for name in names]
    if name_of(term) == names[0] and term.left().semanticEquals(bound):
        return term.right()
    if name_of(term) == names[1] and term.right().semanticEquals(bound):
        return term.left()
    return None
