"""Subqueries as joins: a value that every row is given, and NOT IN with its NULLs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evert.plan import now
from evert.plan.tree import Aggregate, Call, Filter, Join, JoinKind, PerKey, Project, Recompute, Shape, Term
from evert.plan.types import kind_of
from evert.schema.types import Atom

if TYPE_CHECKING:
    from evert.plan.reading import Reader

_BIGINT = Atom("BIGINT")


def joined(reader: Reader, terms: Sequence[Term], child: Shape) -> tuple[list[Term], Shape]:
    """The terms with a column in place of each scalar subquery, and the child with these columns."""
    catalyst = reader.catalyst
    values: list[tuple[Term, Term]] = []
    for query in reader.subqueries(terms):
        if reader.is_now(query):
            raise now.misplaced(terms[0])
        if catalyst.is_correlated(query):
            raise Recompute("a correlated subquery that Spark left where it was")
        plan = catalyst.optimise(query.plan())
        right = reader.read(plan)
        if plan.maxRows().isDefined() and int(plan.maxRows().get()) <= 1:
            kind: JoinKind = "inner" if _is_one_row(right) else "left"
            value = reader.only(right.columns[:1], right)
            child = Join((*child.columns, *value.columns), kind, child, value)
            values.append((query, right.columns[0].term))
        else:
            child, (one,) = _at_most_one(reader, child, reader.only(right.columns[:1], right), ())
            values.append((query, one))
    return ([catalyst.replaced(term, values) for term in terms] if values else list(terms)), child


def _is_one_row(shape: Shape) -> bool:
    """Whether there is always one row, as of an aggregate without groups."""
    match shape:
        case Project(child=child):
            return _is_one_row(child)
        case Join(kind="inner", left=left, right=right, keys=(), residual=None):
            return _is_one_row(left) and _is_one_row(right)
        case Aggregate(groups=groups):
            return not groups
        case PerKey(nothing=nothing):
            return nothing is not None
        case _:
            return False


def single(reader: Reader, left: Shape, right: Shape, keys: tuple[tuple[Term, Term, bool], ...]) -> Shape:
    """A left join in which a row may have one match only, else the query fails."""
    wide, values = _at_most_one(reader, left, right, keys)
    columns = (*left.columns, *right.columns)
    return Project(columns, (*(column.term for column in left.columns), *values), wide)


def _at_most_one(
    reader: Reader, left: Shape, right: Shape, keys: tuple[tuple[Term, Term, bool], ...]
) -> tuple[Shape, list[Term]]:
    """The left with the one row of the right that has its keys, as terms that fail where there are several.

    The right is grouped by its keys: of one row, the greatest value is the value.
    """
    catalyst = reader.catalyst
    groups = tuple(catalyst.fresh_column("key", kind_of(key[1])) for key in keys)
    count = catalyst.fresh_column("rows", _BIGINT)
    found = [catalyst.fresh_column(column.name, kind_of(column.term)) for column in right.columns]
    calls = [Call("count", None, None, None, count, "count(1)")]
    for column, result in zip(right.columns, found, strict=True):
        calls.append(Call("max", column.term, None, None, result, f"max({column.name})"))
    columns = (*groups, count, *found)
    terms = tuple(column.term for column in columns)
    grouped = Aggregate(columns, groups, tuple(key[1] for key in keys), tuple(calls), terms, right)
    pairs = tuple((key[0], group.term, key[2]) for key, group in zip(keys, groups, strict=True))
    text = " and ".join(f"{key[0].sql()} = {key[1].sql()}" for key in keys)
    wide = Join((*left.columns, *columns), "left", left, grouped, keys=pairs, text=text)
    return wide, [catalyst.only_row(count.term, one.term) for one in found]


def not_in(reader: Reader, left: Shape, right: Shape, one: Term, two: Term) -> Shape:
    """Rows of the left that are in no way equal to a row of the right.

    A NULL on the right may equal anything, and a NULL on the left anything that there is.
    """
    catalyst = reader.catalyst
    rows, values = (catalyst.fresh_column(name, _BIGINT) for name in ("rows", "values"))
    present = catalyst.when(catalyst.is_not_null(two), catalyst.literal(True))
    calls = (
        Call("count", None, None, None, rows, "count(1)"),
        Call("count", present, None, None, values, f"count({two.sql()})"),
    )
    counted = Aggregate((rows, values), (), (), calls, (rows.term, values.term), right)
    flag = catalyst.fresh_column("found", Atom("BOOLEAN"))
    text = f"{one.sql()} in {two.sql()}"
    tested = Join((*left.columns, flag), "existence", left, right, keys=((one, two, False),), text=text)
    wide = Join((*tested.columns, rows, values), "inner", tested, counted)
    holds = catalyst.not_in(one, flag.term, rows.term, values.term)
    return reader.only(left.columns, Filter(wide.columns, holds, wide))
