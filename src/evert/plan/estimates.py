"""Which columns of a query are estimates: what sketches tell depends, within their error, on the order of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evert.plan.expressions import mentions, name_of
from evert.plan.sketches import ESTIMATES
from evert.plan.tree import Term

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst


def estimated(catalyst: Catalyst, plan: Any) -> tuple[str, ...]:
    """The names of the columns of an analysed query that come from sketches."""
    text = plan.toJSON()
    if not any(f"expressions.aggregate.{name}" in text for name in ESTIMATES):
        return ()
    found = _Estimates(catalyst).of(plan)
    return tuple(one.name() for one in catalyst.items(plan.output()) if _id(one) in found)


class _Estimates:
    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst

    def of(self, plan: Any) -> set[int]:
        """The ids of columns that are estimates, of what a plan gives or what is below it."""
        catalyst = self._catalyst
        children = catalyst.items(plan.children())
        found: set[int] = set()
        for child in children:
            found |= self.of(child)
        output = catalyst.items(plan.output())
        if name_of(plan) == "Union":
            for child in children:
                pairs = zip(output, catalyst.items(child.output()), strict=True)
                found |= {_id(mine) for mine, theirs in pairs if _id(theirs) in found}
            return found
        below = {_id(one) for child in children for one in catalyst.items(child.output())}
        new = {_id(one) for one in output} - below
        for term in catalyst.items(plan.expressions()):
            if self._is_estimate(term, found):
                found |= {_id(term)} if name_of(term) == "Alias" else new
        return found

    def _is_estimate(self, term: Term, known: set[int]) -> bool:
        catalyst = self._catalyst
        if any(mentions(term, f"aggregate.{name}") for name in ESTIMATES):
            return True
        read = {_id(one) for one in catalyst.items(term.references().toSeq())}
        return bool(read & known) or any(self.of(query.plan()) for query in catalyst.subqueries([term]))


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())
