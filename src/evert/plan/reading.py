"""An optimised Catalyst plan, read into shapes; what has no shape raises `Recompute` with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evert.plan import calls, now, outside, ranking, subqueries
from evert.plan.catalyst import Catalyst
from evert.plan.expressions import name_of, unnamed
from evert.plan.fingerprints import plain_sql
from evert.plan.tree import (
    Column,
    Constant,
    Expand,
    Filter,
    Generate,
    Join,
    JoinKind,
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

_JOINS: dict[str, JoinKind] = {
    "Cross": "inner",
    "FullOuter": "full",
    "Inner": "inner",
    "LeftAnti": "anti",
    "LeftOuter": "left",
    "LeftSemi": "semi",
    "RightOuter": "right",
}


class Reader:
    """Reads a plan; `leaves` are the placeholders in it."""

    def __init__(self, catalyst: Catalyst, leaves: Mapping[int, str], plan: Any) -> None:
        self.catalyst = catalyst
        self._plan = plan
        self._leaves = leaves
        found = {one["class"] for one in catalyst.classes(plan)}
        self._has_functions = bool(found & {"PythonUDF", "PythonUDAF"})
        self._has_subqueries = "ScalarSubquery" in found
        self._shapes: dict[str, Callable[[Any], Shape]] = {
            "Aggregate": lambda plan: calls.read(self, plan),
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
            "Window": lambda plan: ranking.window(self, plan),
            **dict.fromkeys(ranking.LIMITS, lambda plan: ranking.limited(self, plan)),
        }

    def foreign(self, terms: Sequence[Term]) -> bool:
        """Whether one of the terms calls a function in Python."""
        return self._has_functions and self.catalyst.foreign(terms)

    def subqueries(self, terms: Sequence[Term]) -> list[Term]:
        """The scalar subqueries in these terms."""
        return self.catalyst.scalar_subqueries(terms) if self._has_subqueries else []

    def clocks(self, terms: Sequence[Term]) -> list[Term]:
        """The scalar subqueries in these terms that ask what time it is, or where a watermark stands."""
        return [query for query in self.subqueries(terms) if self._read_by(query)[:1] in ("c", "w")]

    def is_now(self, query: Term) -> bool:
        return self._read_by(query) == now.CLOCK_ID

    def _read_by(self, query: Term) -> str:
        """The only relation that a subquery reads, nothing if there are others."""
        found = {self.catalyst.relation(leaf) for leaf in self.catalyst.leaves(query.plan())}
        return self._leaves.get(found.pop() or -1, "") if len(found) == 1 else ""

    def ready(self, terms: Sequence[Term], child: Shape) -> tuple[list[Term], Shape]:
        """The terms without scalar subqueries and functions in Python, and the child with columns for these."""
        terms, child = subqueries.joined(self, terms, child)
        return outside.computed(self, terms, child)

    def read(self, plan: Any = None) -> Shape:
        """The shape of the plan, or of a part of it."""
        plan = self._plan if plan is None else plan
        name = name_of(plan)
        if name in _NO_EFFECT:
            return self.read(plan.children().apply(0))
        if name in self._shapes:
            return self._shapes[name](plan)
        if name in ("UnionLoop", "UnionLoopRef"):
            raise Recompute("a recursive query")
        raise Recompute(f"the operator {name}")

    def _items(self, sequence: Any) -> list[Any]:
        return self.catalyst.items(sequence)

    def columns(self, plan: Any) -> tuple[Column, ...]:
        return tuple(self.catalyst.column(attribute) for attribute in self._items(plan.output()))

    def _read(self, plan: Any) -> Shape:
        return Read(self.columns(plan), self._leaves[int(plan.rdd().id())])

    def _constant(self, plan: Any) -> Shape:
        return Constant(self.columns(plan), plan)

    def _project(self, plan: Any) -> Shape:
        return self.projected(plan, self.read(plan.child()))

    def projected(self, plan: Any, child: Shape) -> Shape:
        """A projection over what its child became."""
        terms, child = self.ready([unnamed(one) for one in self._items(plan.projectList())], child)
        return Project(self.columns(plan), tuple(terms), child)

    def _filter(self, plan: Any) -> Shape:
        ranked = ranking.filtered(self, plan)
        if ranked is not None:
            return ranked
        return self._where(plan.condition(), self.read(plan.child()))

    def _where(self, condition: Term, below: Shape) -> Shape:
        terms, timed = now.parted(self, self.conjuncts(condition))
        shape = below
        if terms:
            (condition,), child = self.ready([self.catalyst.both(terms)], below)
            shape = self.only(below.columns, Filter(child.columns, condition, child))
        for term in timed:
            shape = now.timed(self, term, shape)
        return shape

    def only(self, columns: tuple[Column, ...], shape: Shape) -> Shape:
        """The shape with these of its columns only."""
        if len(columns) == len(shape.columns):
            return shape
        return Project(columns, tuple(column.term for column in columns), shape)

    def _union(self, plan: Any) -> Shape:
        return Union(self.columns(plan), tuple(self.read(child) for child in self._items(plan.children())))

    def _expand(self, plan: Any) -> Shape:
        rows = tuple(tuple(self._items(row)) for row in self._items(plan.projections()))
        return Expand(self.columns(plan), rows, self.read(plan.child()))

    def _generate(self, plan: Any) -> Shape:
        made = tuple(self.catalyst.column(attribute) for attribute in self._items(plan.generatorOutput()))
        rows, fields = self._elements(plan.generator(), made)
        (rows,), child = self.ready([rows], self.read(plan.child()))
        return Generate(self.columns(plan), rows, fields, plan.outer(), made, child)

    def _elements(self, generator: Any, made: tuple[Column, ...]) -> tuple[Term, bool]:
        """The generator as an array, and whether its elements are structs of the columns made."""
        catalyst = self.catalyst
        kind = name_of(generator)
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
        name = plan.joinType().toString()
        kind: JoinKind = "existence" if name.startswith("ExistenceJoin") else _JOINS.get(name, "left")
        condition = plan.condition()
        parts = self.conjuncts(condition.get()) if condition.isDefined() else []
        parts, timed = now.parted(self, parts)
        if timed and kind != "inner":
            raise now.misplaced(timed[0])
        left, right = self.read(plan.left()), self.read(plan.right())
        terms, first = self.ready(parts, left)
        terms, second = outside.computed(self, terms, right)
        columns = self.columns(plan)
        sides = self.catalyst.attributes(first.columns), self.catalyst.attributes(second.columns)
        if name == "LeftAnti" and len(terms) == 1:
            unequal = _unknown_or_equal(terms[0], *sides)
            if unequal is not None:
                return self.only(columns, subqueries.not_in(self, first, second, *unequal))
        keys, rest, asked = [], [], []
        for term in terms:
            key = _equality(term, *sides)
            if self.foreign([term]):
                asked.append(term)
            elif key is None:
                rest.append(term)
            else:
                keys.append(key)
        if asked and kind != "inner":
            raise Recompute("a function in Python of both sides of a join that is no inner join")
        if name == "LeftSingle":
            if rest:
                raise Recompute("a correlated scalar subquery that may have several rows")
            return self.only(columns, subqueries.single(self, first, second, tuple(keys)))
        both = kind not in ("semi", "anti", "existence")
        join: Shape = Join(
            (
                *columns[: len(left.columns)],
                *first.columns[len(left.columns) :],
                *columns[len(left.columns) :],
                *(second.columns[len(right.columns) :] if both else ()),
            ),
            kind,
            first,
            second,
            keys=tuple(keys),
            residual=self.catalyst.both(rest) if rest else None,
            text=" and ".join(plain_sql(part) for part in parts),
        )
        if asked:
            # Functions of both sides are asked about the pairs that the rest of the condition leaves.
            join = self._where(self.catalyst.both(asked), join)
        for term in timed:
            join = now.timed(self, term, join)
        return self.only(columns, join)

    def conjuncts(self, term: Term) -> list[Term]:
        if name_of(term) != "And":
            return [term]
        return self.conjuncts(term.left()) + self.conjuncts(term.right())


def _equality(term: Term, left: Any, right: Any) -> tuple[Term, Term, bool] | None:
    kind = name_of(term)
    if kind not in ("EqualTo", "EqualNullSafe"):
        return None
    for one, two in ((term.left(), term.right()), (term.right(), term.left())):
        sides = (one.references(), left), (two.references(), right)
        if all(used.nonEmpty() and used.subsetOf(given) for used, given in sides):
            return one, two, kind == "EqualNullSafe"
    return None


def _unknown_or_equal(term: Term, left: Any, right: Any) -> tuple[Term, Term] | None:
    """The two sides of `a = b OR (a = b) IS NULL`, which is what NOT IN asks that no row fulfils."""
    if name_of(term) != "Or" or name_of(term.right()) != "IsNull":
        return None
    if not term.right().child().semanticEquals(term.left()):
        return None
    found = _equality(term.left(), left, right)
    return None if found is None or found[2] else (found[0], found[1])
