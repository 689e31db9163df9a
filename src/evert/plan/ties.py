"""A query whose ties are broken as views break them, for a comparison with what Spark makes of it.

Spark leaves open which of several equal rows is first, and may answer otherwise each time. Views go by all columns
of the row. A plain query is brought to do the same: what is limited is ordered by all columns too, and window
functions and aggregates that look at the order of rows are given the rows in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evert.plan import calls
from evert.plan.expressions import name_of
from evert.plan.ranking import LIMITS, below_sort

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst
    from evert.plan.graph import Plan

_KINDS = {"top", "swap"}
"""The kinds of nodes whose results ties can change."""
_CLASSES = {
    "CollectList",
    "CollectSet",
    "First",
    "GlobalLimit",
    "Last",
    "ListAgg",
    "LocalLimit",
    "MaxBy",
    "MinBy",
    "Mode",
    "Offset",
    "Window",
}
"""What in a query that is recomputed ties can change."""


class Open(Exception):
    """Spark planned a limit of a lateral subquery in a way that it takes from nobody else: ties stay open."""


def matter(catalyst: Catalyst, plan: Plan, analysed: Any) -> bool:
    """Whether ties can change what a view shows."""
    if not plan.recomputes:
        return any(node.kind in _KINDS for node in plan.nodes)
    found = {one["class"] for one in catalyst.classes(analysed)}
    return bool(found & _CLASSES) and "UnionLoop" not in found


def settled(catalyst: Catalyst, plan: Any) -> Any:
    """The optimised plan with nothing left open; raises Open where that cannot be."""
    children = [settled(catalyst, child) for child in catalyst.items(plan.children())]
    if children:
        plan = plan.withNewChildren(catalyst.sequence(children))
    name = name_of(plan)
    if name in LIMITS:
        return _ordered(catalyst, plan)
    if name == "Window" and not catalyst.items(plan.orderSpec()) and below_sort(catalyst, children[0]):
        raise Open
    if name == "Window" or (name == "Aggregate" and not calls.are_kept(catalyst, plan)):
        return plan.withNewChildren(catalyst.sequence([catalyst.in_order(children[0])]))
    return plan


def _ordered(catalyst: Catalyst, plan: Any) -> Any:
    """A limit over rows that are ordered by all their columns in the end; projections on the way keep them so."""
    name = name_of(plan)
    if name in (*LIMITS, "Project"):
        return plan.withNewChildren(catalyst.sequence([_ordered(catalyst, plan.child())]))
    return catalyst.ordered_by_all(plan)
