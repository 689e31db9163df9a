"""Aggregates as Spark understood them: calls that a kernel keeps, distinct values, and all others by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evert.errors import BadQuery
from evert.plan import ranking, sketches
from evert.plan.expressions import name_of, unnamed
from evert.plan.fingerprints import plain_sql
from evert.plan.tree import (
    Aggregate,
    Call,
    Column,
    Join,
    Merged,
    PerKey,
    Project,
    Sessions,
    Shape,
    Sketches,
    Term,
)
from evert.plan.types import is_ordered, kind_of
from evert.schema.types import Atom

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst
    from evert.plan.reading import Reader

_KEPT = {"Count": "count", "Sum": "sum", "Average": "avg", "Min": "min", "Max": "max"}
_SESSION = "spark.sessionWindow"


def read(reader: Reader, plan: Any) -> Shape:
    """The shape of an aggregate."""
    grouping, calls, _ = reader.catalyst.split_aggregate(plan)
    # Grouping by a column with this mark means to merge sessions, which is no grouping at all.
    merges = [named.toAttribute().metadata().contains(_SESSION) for named in grouping]
    if not any(merges) and are_kept(reader.catalyst, plan):
        return _kept(reader, plan, grouping)[0]
    plain = [key for key, merged in zip(grouping, merges, strict=True) if not merged]
    by_key = _by_group(reader, plan, plain)
    distinct = any(call.isDistinct() for call in calls)
    if not any(merges) and (parts := sketches.merging(calls)) is not None:
        return _sketched(reader, plan, by_key, parts) or by_key
    if sum(merges) != 1 or distinct or not are_kept(reader.catalyst, plan):
        return by_key
    kept, child = _kept(reader, plan, [*plain, grouping[merges.index(True)]], merges=True)
    return Sessions(kept.columns, kept, by_key, child)


def _kept(reader: Reader, plan: Any, grouping: Sequence[Any], *, merges: bool = False) -> tuple[Shape, Shape]:
    """An aggregate by these keys, all functions of which a kernel has; and what it aggregates."""
    _, calls, results = reader.catalyst.split_aggregate(plan)
    made = [_call(reader, call) for call in calls]
    keys, made, child = _over_columns(reader, list(map(unnamed, grouping)), made, plan)
    groups = tuple(reader.catalyst.column(named.toAttribute()) for named in grouping)
    columns = (*groups, *(call.result for call in made))
    kept = tuple(column.term for column in columns)
    shape = _distinct(reader, Aggregate(columns, groups, tuple(keys), tuple(made), kept, child, merges))
    terms, above = reader.ready(list(map(unnamed, results)), shape)
    shown = tuple(reader.catalyst.column(named.toAttribute()) for named in results)
    return Project(shown, tuple(terms), above), child


def _sketched(reader: Reader, plan: Any, by_key: Shape, merging: Sequence[str]) -> Shape | None:
    """An aggregate whose results can be merged, if Spark can compute it where the rows come in."""
    catalyst = reader.catalyst
    grouping, calls, results = catalyst.split_aggregate(plan)
    terms = [*map(unnamed, grouping), *calls, *map(unnamed, results)]
    if catalyst.foreign(terms) or catalyst.has_subqueries(plan):
        return None
    groups = tuple(catalyst.column(named.toAttribute()) for named in grouping)
    made = tuple(catalyst.column(call.resultAttribute()) for call in calls)
    named = [catalyst.alias(call, one.name, one) for call, one in zip(calls, made, strict=True)]
    keys = tuple(map(unnamed, grouping))
    child, by, nothing = reader.read(plan.child()), keys, None
    if not groups:  # else there would be a row even of nothing, from every task
        (key,), child = ranking.keyed(reader, [catalyst.literal(0)], child, apart=True)
        by, nothing = (key.term,), catalyst.aggregate_of(plan, (), named)
    partial = catalyst.aggregate_of(plan, by, [*grouping, *named])
    text = f"sketches {', '.join(plain_sql(call) for call in calls)}"
    if groups:
        text += f" by {', '.join(group.name for group in groups)}"
    shape = Merged((*groups, *made), partial, groups, keys, tuple(merging), nothing, child, text)
    shown = tuple(catalyst.column(one.toAttribute()) for one in results)
    kept = Project(shown, tuple(map(unnamed, results)), shape)
    often = any(name_of(_function(call)) not in sketches.ONCE for call in calls)
    return Sketches(kept.columns, kept, by_key, child, often)


def _over_columns(
    reader: Reader, keys: list[Term], made: list[Call], plan: Any
) -> tuple[list[Term], list[Call], Shape]:
    """Keys and calls with columns of the child in place of subqueries and functions in Python."""
    parts = [*keys]
    for call in made:
        parts += [term for term in (call.argument, call.filter, *call.distinct) if term is not None]
    terms, child = reader.ready(parts, reader.read(plan.child()))
    left = iter(terms)
    keys = [next(left) for _ in keys]
    calls = [
        replace(
            call,
            argument=None if call.argument is None else next(left),
            filter=None if call.filter is None else next(left),
            distinct=tuple(next(left) for _ in call.distinct),
        )
        for call in made
    ]
    return keys, calls, child


def are_kept(catalyst: Catalyst, plan: Any) -> bool:
    """Whether a kernel has all functions of an aggregate."""
    return all(_is_kept(call) for call in catalyst.split_aggregate(plan)[1])


def _is_kept(call: Any) -> bool:
    function = _function(call)
    kind = _KEPT.get(name_of(function))
    return is_ordered(kind_of(function.child())) if kind in ("min", "max") else kind is not None


def _function(call: Any) -> Any:
    return call.aggregateFunction() if name_of(call) == "AggregateExpression" else call


def _call(reader: Reader, call: Any) -> Call:
    catalyst = reader.catalyst
    function = call.aggregateFunction()
    kind = _KEPT[name_of(function)]
    where = call.filter().get() if call.filter().isDefined() else None
    arguments = catalyst.items(function.children())
    distinct = arguments if call.isDistinct() and kind not in ("min", "max") else ()
    return Call(
        kind,
        _argument(reader, kind, arguments),
        where,
        function,
        catalyst.column(call.resultAttribute()),
        call.sql(),
        tuple(distinct),
    )


def _argument(reader: Reader, kind: str, arguments: Sequence[Term]) -> Term | None:
    """What is aggregated; for a count a term that is NULL where it does not count, or nothing."""
    if kind != "count":
        return arguments[0]
    catalyst = reader.catalyst
    tests = [catalyst.is_not_null(one) for one in arguments if one.nullable()]
    return catalyst.when(catalyst.both(tests), catalyst.literal(True)) if tests else None


def _distinct(reader: Reader, shape: Aggregate) -> Shape:
    """Each set of values that count once as an aggregate over the distinct of it, all joined by group."""
    sets: list[tuple[tuple[Term, ...], list[Call]]] = []
    for call in shape.calls:
        for terms, members in sets:
            if len(terms) == len(call.distinct) and all(map(_equal, terms, call.distinct)):
                members.append(call)
                break
        else:
            sets.append((call.distinct, [call]))
    if not any(terms for terms, _ in sets):
        return shape
    parts = [_part(reader, shape, terms, calls) for terms, calls in sets]
    whole: Shape = parts[0]
    for part in parts[1:]:
        first = parts[0].groups
        keys = tuple((one.term, two.term, True) for one, two in zip(first, part.groups, strict=True))
        text = ", ".join(group.name for group in first)
        whole = Join((*whole.columns, *part.columns), "inner", whole, part, keys=keys, text=text)
    scope = reader.catalyst.scope(shape.groups, [group.term for group in parts[0].groups])
    results = tuple(reader.catalyst.substitute(term, scope) for term in shape.results)
    return Project(shape.columns, results, whole)


def _part(reader: Reader, shape: Aggregate, terms: tuple[Term, ...], calls: list[Call]) -> Aggregate:
    """The groups of the shape with these calls, over the distinct values of the terms."""
    child, keys = shape.child, shape.keys
    if terms:
        child, keys, calls = _values(reader, shape, terms, calls)
    groups = _fresh(reader, keys)
    columns = (*groups, *(call.result for call in calls))
    results = tuple(column.term for column in columns)
    return Aggregate(columns, groups, keys, tuple(calls), results, child)


def _values(
    reader: Reader, shape: Aggregate, terms: tuple[Term, ...], calls: list[Call]
) -> tuple[Aggregate, tuple[Term, ...], list[Call]]:
    """The distinct values of the terms in each group; its keys, and the calls over it.

    One filter of all calls makes the others' values NULL, which do not count. Where there are several, each
    value is kept once, with a mark for each filter: whether it held for some row.
    """
    catalyst = reader.catalyst
    filters: list[Term] = []
    for call in calls:
        if call.filter is not None and not any(_equal(call.filter, other) for other in filters):
            filters.append(call.filter)
    if len(filters) == 1 and all(call.filter is not None for call in calls):
        terms = tuple(catalyst.when(filters[0], term) for term in terms)
        filters, calls = [], [replace(call, filter=None) for call in calls]
    groups, values = _fresh(reader, shape.keys), _fresh(reader, terms)
    marks = [catalyst.fresh_column("some", Atom("BOOLEAN")) for _ in filters]
    held = tuple(
        Call("some", None, where, None, mark, f"some({plain_sql(where)})")
        for where, mark in zip(filters, marks, strict=True)
    )
    columns = (*groups, *values, *marks)
    kept = tuple(column.term for column in columns)
    child = Aggregate(columns, (*groups, *values), (*shape.keys, *terms), held, kept, shape.child)
    arguments = [value.term for value in values]

    def over(call: Call) -> Call:
        where = call.filter
        mark = (
            None
            if where is None
            else next(mark.term for mark, other in zip(marks, filters, strict=True) if _equal(where, other))
        )
        return replace(call, argument=_argument(reader, call.kind, arguments), filter=mark, distinct=())

    return child, tuple(group.term for group in groups), [over(call) for call in calls]


def _fresh(reader: Reader, terms: Sequence[Term]) -> tuple[Column, ...]:
    known = reader.catalyst.attribute_id
    names = ["key" if known(term) is None else term.name() for term in terms]
    return tuple(
        reader.catalyst.fresh_column(name, kind_of(term)) for name, term in zip(names, terms, strict=True)
    )


def _by_group(reader: Reader, plan: Any, grouping: Sequence[Any]) -> Shape:
    """An aggregate that Spark computes, from all rows of each group that changed."""
    catalyst = reader.catalyst
    calls = catalyst.split_aggregate(plan)[1]
    in_python = [name_of(_function(call)) == "PythonUDAF" for call in calls]
    if any(in_python) and not all(in_python):
        raise BadQuery(
            "Spark does not compute aggregate functions in Python together with others",
            hint="compute them in two views, or two subqueries, and join these",
        )
    columns = reader.columns(plan)
    terms = [unnamed(named) for named in grouping]
    grouped = bool(catalyst.items(plan.groupingExpressions()))
    # Without a group there is a row even of nothing, in epochs too that have nothing to do with it.
    also = terms if grouped else [catalyst.literal(0)]
    keys, child = ranking.keyed(reader, also, reader.read(plan.child()), apart=True)
    operator = catalyst.aggregate_also_by(plan, [key.term for key in keys])
    text = f"aggregate {', '.join(plain_sql(unnamed(one)) for one in catalyst.items(plan.aggregateExpressions()))}"
    if terms:
        text += f" by {', '.join(term.sql() for term in terms)}"
    if not grouped:
        # Of nothing Spark makes one row, unless the aggregate is one in Python, which it does not call then.
        nothing = None if any(in_python) else plan
        return PerKey(columns, (operator,), (), child, text, groups=(), nothing=nothing)
    groups = [catalyst.column(named.toAttribute()) for named in catalyst.split_aggregate(plan)[0]]
    shape = PerKey((*columns, *keys), (operator,), keys, child, text, groups=tuple(groups))
    return reader.only(columns, shape)


def _equal(one: Term, two: Term) -> bool:
    return bool(one.semanticEquals(two))
