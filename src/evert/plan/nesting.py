"""Subqueries in subqueries: the inner ones become joins first.

    EXISTS (SELECT ... FROM b WHERE EXISTS (SELECT ... FROM c WHERE c.x = b.x))
    EXISTS (SELECT ... FROM b LEFT SEMI JOIN c ON c.x = b.x)

Spark's rule that makes a join of a subquery goes on into the join it has made. What it finds in there must have
been prepared, which Spark does by optimising every subquery as a query of its own, with all its rules. Here that
is done with the rules that views are planned with, and only where a subquery refers to one around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from evert.plan.expressions import name_of
from evert.plan.tree import Recompute, Term

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst


class Nesting:
    """A rule, as the optimizer's batches take it."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def apply(self, plan: Any) -> Any:
        """The plan, in whose subqueries no subquery is left that refers to them."""
        if not self._catalyst.has_subqueries(plan):
            return plan
        children = self._catalyst.items(plan.children())
        done = [self.apply(child) for child in children]
        if any(new is not old for new, old in zip(done, children, strict=True)):
            plan = plan.withNewChildren(self._catalyst.sequence(done))
        deep = [query for query in self._queries_of(plan) if self._is_deep(query)]
        if not deep:
            return plan
        pairs = [(query, self._catalyst.optimised_subquery(query)) for query in deep]
        return self._rewritten(plan, lambda term: self._catalyst.replaced(term, pairs))

    def _is_deep(self, query: Term) -> bool:
        """Whether a subquery in this one refers to what is around it."""
        waiting = [query.plan()]
        while waiting:
            plan = waiting.pop()
            if not self._catalyst.has_subqueries(plan):
                continue
            waiting += self._catalyst.items(plan.children())
            for inner in self._queries_of(plan):
                if self._catalyst.is_correlated(inner) or self._is_deep(inner):
                    return True
        return False

    def _queries_of(self, plan: Any) -> list[Term]:
        return self._catalyst.subqueries(self._catalyst.items(plan.expressions()))

    def _rewritten(self, plan: Any, change: Callable[[Term], Term]) -> Any:
        """The operator with other terms."""

        def all_of(terms: Any) -> Any:
            return catalyst.sequence(map(change, catalyst.items(terms)))

        def option_of(term: Any) -> Any:
            return catalyst.option(change(term.get()) if term.isDefined() else None)

        catalyst = self._catalyst
        match name_of(plan):
            case "Filter":
                return plan.copy(change(plan.condition()), plan.child())
            case "Project":
                return plan.copy(all_of(plan.projectList()), plan.child())
            case "Aggregate":
                groups, results = plan.groupingExpressions(), plan.aggregateExpressions()
                return plan.copy(all_of(groups), all_of(results), plan.child(), plan.hint())
            case "Join":
                sides = plan.left(), plan.right()
                return plan.copy(*sides, plan.joinType(), option_of(plan.condition()), plan.hint())
            case "LateralJoin":
                condition = option_of(plan.condition())
                return plan.copy(plan.left(), change(plan.right()), plan.joinType(), condition)
            case other:
                raise Recompute(f"a subquery in a subquery, within {other}")
