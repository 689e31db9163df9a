"""An optimised Catalyst plan, read into shapes; what has no shape raises `Recompute` with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evert.plan.catalyst import Catalyst
from evert.plan.tree import (
    Aggregate,
    Call,
    Column,
    Constant,
    Expand,
    Filter,
    Generate,
    Join,
    Project,
    Read,
    Recompute,
    Shape,
    Term,
    Union,
)

_NO_EFFECT = {
    "Sort",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "SubqueryAlias",
    "View",
}
"""Operators that order or place rows: a view is a multiset, so they change nothing."""

_JOINS = {
    "LeftOuter": "a left outer join",
    "RightOuter": "a right outer join",
    "FullOuter": "a full outer join",
    "LeftSemi": "a left semi join (IN, EXISTS or INTERSECT)",
    "LeftAnti": "a left anti join (NOT IN, NOT EXISTS or EXCEPT)",
    "LeftSingle": "a scalar subquery that may have one row only",
}
_AGGREGATES = {"Count": "count", "Sum": "sum", "Average": "avg", "Min": "min", "Max": "max"}
_LIMITS = {"GlobalLimit", "LocalLimit", "Offset", "Tail", "LimitAndOffset"}


class Reader:
    """Reads plans of one planner; `leaves` are its placeholders."""

    def __init__(self, catalyst: Catalyst, leaves: Mapping[int, str]) -> None:
        self._catalyst = catalyst
        self._leaves = leaves
        self._shapes: dict[str, Callable[[Any], Shape]] = {
            "Aggregate": self._aggregate,
            "Expand": self._expand,
            "Filter": self._filter,
            "Generate": self._generate,
            "Join": self._join,
            "LocalRelation": self._constant,
            "LogicalRDD": self._read,
            "OneRowRelation": self._constant,
            "Project": self._project,
            "Range": self._constant,
            "Union": self._union,
        }

    def read(self, plan: Any) -> Shape:
        name = plan.getClass().getSimpleName().rstrip("$")
        if name in _NO_EFFECT:
            return self.read(plan.children().apply(0))
        if name in self._shapes:
            return self._shapes[name](plan)
        raise Recompute(self._reason(name, plan))

    def _reason(self, name: str, plan: Any) -> str:
        if name in _LIMITS:
            return "ORDER BY ... LIMIT" if _below_limits(plan) == "Sort" else "LIMIT or OFFSET"
        if name == "Window":
            calls = [e.child().windowFunction() for e in self._items(plan.windowExpressions())]
            return f"a window function ({_function_name(calls[0])})"
        if name in ("UnionLoop", "UnionLoopRef"):
            return "a recursive query"
        return f"the operator {name}"

    def _items(self, sequence: Any) -> list[Any]:
        return self._catalyst.items(sequence)

    def _columns(self, plan: Any) -> tuple[Column, ...]:
        return tuple(self._catalyst.column(attribute) for attribute in self._items(plan.output()))

    def _read(self, plan: Any) -> Shape:
        return Read(self._columns(plan), self._leaves[int(plan.rdd().id())])

    def _constant(self, plan: Any) -> Shape:
        return Constant(self._columns(plan), plan)

    def _project(self, plan: Any) -> Shape:
        named = self._items(plan.projectList())
        return Project(self._columns(plan), tuple(map(_unnamed, named)), self.read(plan.child()))

    def _filter(self, plan: Any) -> Shape:
        child = self.read(plan.child())
        return Filter(child.columns, plan.condition(), child)

    def _union(self, plan: Any) -> Shape:
        return Union(self._columns(plan), tuple(self.read(child) for child in self._items(plan.children())))

    def _expand(self, plan: Any) -> Shape:
        rows = tuple(tuple(self._items(row)) for row in self._items(plan.projections()))
        return Expand(self._columns(plan), rows, self.read(plan.child()))

    def _generate(self, plan: Any) -> Shape:
        made = tuple(self._catalyst.column(attribute) for attribute in self._items(plan.generatorOutput()))
        rows, fields = self._elements(plan.generator(), made)
        return Generate(self._columns(plan), rows, fields, plan.outer(), made, self.read(plan.child()))

    def _elements(self, generator: Any, made: tuple[Column, ...]) -> tuple[Term, bool]:
        """The generator as an array, and whether its elements are structs of the columns made."""
        catalyst = self._catalyst
        kind = generator.getClass().getSimpleName()
        arguments = self._items(generator.children())
        names = [f"x{i}" for i in range(len(made))]
        if kind in ("Explode", "PosExplode"):
            is_map = arguments[0].dataType().typeName() == "map"
            array = catalyst.entries(arguments[0]) if is_map else arguments[0]
            if kind == "PosExplode":
                return catalyst.numbered(array, flat=is_map), True
            return array, is_map
        if kind == "Inline":
            return arguments[0], True
        if kind == "Stack":
            values = arguments[1:] + [None] * (-len(arguments[1:]) % len(made))
            filled = [
                catalyst.null(made[i % len(made)].term.dataType()) if value is None else value
                for i, value in enumerate(values)
            ]
            structs = [
                catalyst.struct(names, filled[at : at + len(made)]) for at in range(0, len(filled), len(made))
            ]
            return catalyst.array(structs), True
        if kind == "ReplicateRows":
            return catalyst.repeat(catalyst.struct(names, arguments[1:]), arguments[0]), True
        raise Recompute(f"the generator {generator.prettyName()}")

    def _join(self, plan: Any) -> Shape:
        kind = plan.joinType().toString()
        if kind not in ("Inner", "Cross"):
            raise Recompute(_JOINS.get(kind, "an IN or EXISTS that is part of a larger condition"))
        left, right = plan.left(), plan.right()
        condition = plan.condition()
        parts = self._conjuncts(condition.get()) if condition.isDefined() else []
        keys, rest = [], []
        for part in parts:
            key = _equality(part, left.outputSet(), right.outputSet())
            if key is None:
                rest.append(part)
            else:
                keys.append(key)
        shapes = self.read(left), self.read(right)
        return Join(
            self._columns(plan),
            *shapes,
            keys=tuple(keys),
            residual=self._catalyst.both(rest) if rest else None,
            text=" and ".join(part.sql() for part in parts),
        )

    def _conjuncts(self, term: Term) -> list[Term]:
        if term.getClass().getSimpleName() != "And":
            return [term]
        return self._conjuncts(term.left()) + self._conjuncts(term.right())

    def _aggregate(self, plan: Any) -> Shape:
        grouping, calls, results = self._catalyst.split_aggregate(plan)
        groups = tuple(self._catalyst.column(named.toAttribute()) for named in grouping)
        # Grouping by a column with this mark means to merge sessions, which is no grouping at all.
        if any(group.term.metadata().contains("spark.sessionWindow") for group in groups):
            raise Recompute("a session window")
        return Aggregate(
            tuple(self._catalyst.column(named.toAttribute()) for named in results),
            groups,
            tuple(map(_unnamed, grouping)),
            tuple(self._call(call) for call in calls),
            tuple(map(_unnamed, results)),
            self.read(plan.child()),
        )

    def _call(self, call: Any) -> Call:
        if call.getClass().getSimpleName() != "AggregateExpression":
            raise Recompute("an aggregate function in Python")
        function = call.aggregateFunction()
        kind = _AGGREGATES.get(function.getClass().getSimpleName())
        if call.isDistinct() and kind not in ("min", "max"):
            raise Recompute(f"{_function_name(call)}(DISTINCT ...)")
        if kind is None:
            raise Recompute(f"the aggregate function {_function_name(call)}")
        where = call.filter()
        return Call(
            kind,
            self._argument(kind, function),
            where.get() if where.isDefined() else None,
            function,
            self._catalyst.column(call.resultAttribute()),
            call.sql(),
        )

    def _argument(self, kind: str, function: Any) -> Term | None:
        """What is aggregated; for a count a term that is NULL where it does not count, or nothing."""
        children = self._items(function.children())
        if kind != "count":
            return children[0]
        catalyst = self._catalyst
        tests = [catalyst.is_not_null(child) for child in children if child.nullable()]
        return catalyst.when(catalyst.both(tests), catalyst.literal(True)) if tests else None


def _unnamed(named: Any) -> Term:
    return named.child() if named.getClass().getSimpleName() == "Alias" else named


def _function_name(call: Any) -> str:
    """How a user calls the function of an aggregate or window expression."""
    inner = call.aggregateFunction() if call.getClass().getSimpleName() == "AggregateExpression" else call
    return str(inner.prettyName())


def _equality(term: Term, left: Any, right: Any) -> tuple[Term, Term, bool] | None:
    kind = term.getClass().getSimpleName()
    if kind not in ("EqualTo", "EqualNullSafe"):
        return None
    for one, two in ((term.left(), term.right()), (term.right(), term.left())):
        sides = (one.references(), left), (two.references(), right)
        if all(used.nonEmpty() and used.subsetOf(given) for used, given in sides):
            return one, two, kind == "EqualNullSafe"
    return None


def _below_limits(plan: Any) -> str:
    name = plan.getClass().getSimpleName()
    while name in _LIMITS or name == "Project":
        plan = plan.children().apply(0)
        name = plan.getClass().getSimpleName()
    return str(name)
