"""Functions in Python: Spark itself must call them, so what they give is a column before anything else reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evert.plan.fingerprints import plain_sql
from evert.plan.tree import Foreign, Shape, Term

if TYPE_CHECKING:
    from evert.plan.reading import Reader


def computed(reader: Reader, terms: Sequence[Term], child: Shape) -> tuple[list[Term], Shape]:
    """The terms with a column in place of each call that needs the child only, and the child with these columns."""
    if not reader.foreign(terms):
        return list(terms), child
    catalyst = reader.catalyst
    calls = catalyst.python_calls(terms, catalyst.attributes(child.columns))
    if not calls:
        return list(terms), child
    columns = [catalyst.column(catalyst.alias(call, call.name()).toAttribute()) for call in calls]
    operator = catalyst.computing(child.columns, list(zip(columns, calls, strict=True)))
    text = f"compute {', '.join(map(plain_sql, calls))}"
    values = [(call, column.term) for call, column in zip(calls, columns, strict=True)]
    shape = Foreign((*child.columns, *columns), operator, child, text)
    return [catalyst.replaced(term, values) for term in terms], shape
