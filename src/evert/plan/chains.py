"""Stateless work as one expression: filters guard what is above them, generators become higher order functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from evert.plan.catalyst import Catalyst
from evert.plan.tree import Column, Term
from evert.schema.types import DataType

WEIGHT = "__w"


@dataclass(frozen=True)
class Select:
    """These columns, and no others, from here on."""

    columns: tuple[Column, ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class Where:
    """Only rows of which the condition is true."""

    condition: Term


@dataclass(frozen=True)
class Each:
    """The row once for every element of `rows`, with the columns made of it."""

    rows: Term
    fields: bool
    outer: bool
    made: tuple[Column, ...]


@dataclass(frozen=True)
class Through:
    """Operators of Spark's own, the lowest first, over all the rows together.

    If it is `weighted`, what comes out of them are rows that went in, with their weights; else new rows, once each.
    """

    operators: tuple[Any, ...]
    takes: tuple[Column, ...]
    gives: tuple[Column, ...]
    weighted: bool


Step: TypeAlias = Select | Where | Each | Through


@dataclass(frozen=True)
class Pipe:
    """A source, the columns of its rows, and the steps that follow."""

    source: str
    columns: tuple[Column, ...]
    steps: tuple[Step, ...] = ()

    def then(self, *steps: Step) -> Pipe:
        return replace(self, steps=(*self.steps, *steps))

    @property
    def many(self) -> bool:
        return any(isinstance(step, Each) for step in self.steps)

    @property
    def plain(self) -> bool:
        """Whether it is one expression."""
        return not any(isinstance(step, Through) for step in self.steps)


def builder(
    catalyst: Catalyst, pipe: Pipe, terms: Sequence[Term], kinds: Sequence[DataType] | None
) -> Callable[[Any], Term]:
    """What makes, of an attribute that holds a row of the source, the struct of these terms and the weight.

    The terms are brought into the given types; without any they stay as they are.
    """

    def build(attribute: Any) -> Term:
        weight = catalyst.field(attribute, len(pipe.columns))
        row = [catalyst.same(catalyst.field(attribute, i), c) for i, c in enumerate(pipe.columns)]
        work = _Work(catalyst, tuple(terms), None if kinds is None else tuple(kinds), weight)
        return work.build(pipe.steps, pipe.columns, row)

    return build


def operated(
    catalyst: Catalyst, pipe: Pipe, terms: Sequence[Term], kinds: Sequence[DataType]
) -> Callable[[Any, Any], Any]:
    """The same for a pipe with operators in it: from a plan and its attribute to a plan of such structs."""

    def over(plan: Any, attribute: Any) -> Any:
        for part, through in segments(pipe):
            if through is None:
                build = builder(catalyst, part, terms, kinds)
            else:
                build = builder(catalyst, part, [column.term for column in through.takes], None)
            plan, attribute = catalyst.structs(plan, attribute, build(attribute), many=part.many)
            if through is not None:
                plan, attribute = catalyst.operated(plan, attribute, through)
        return plan

    return over


def segments(pipe: Pipe) -> Iterator[tuple[Pipe, Through | None]]:
    """The pipe cut behind each `Through`: plain pipes, and what follows each of them."""
    columns: tuple[Column, ...] = pipe.columns
    steps: list[Step] = []
    for step in pipe.steps:
        if isinstance(step, Through):
            yield Pipe(pipe.source, columns, tuple(steps)), step
            columns, steps = step.gives, []
        else:
            steps.append(step)
    yield Pipe(pipe.source, columns, tuple(steps)), None


def no_expression(attribute: Any) -> Any:
    raise TypeError("a chain with operators in it is no expression")


@dataclass(frozen=True)
class _Work:
    catalyst: Catalyst
    terms: tuple[Term, ...]
    kinds: tuple[DataType, ...] | None
    weight: Term

    def build(self, steps: Sequence[Step], columns: Sequence[Column], row: Sequence[Term]) -> Term:
        """The rest of the steps on a row whose columns have these values."""
        catalyst = self.catalyst
        scope = catalyst.scope(columns, row)
        if not steps:
            values = [catalyst.substitute(term, scope) for term in self.terms]
            if self.kinds is not None:
                pairs = zip(values, self.kinds, strict=True)
                values = [catalyst.fit(value, kind) for value, kind in pairs]
            names = [f"c{i}" for i in range(len(values))]
            return catalyst.struct([*names, WEIGHT], [*values, self.weight])
        step, rest = steps[0], steps[1:]
        match step:
            case Where(condition):
                return catalyst.when(catalyst.substitute(condition, scope), self.build(rest, columns, row))
            case Select(chosen, terms):
                values = [catalyst.substitute(term, scope) for term in terms]
                if catalyst.may_inline(_used(rest, self.terms), chosen, terms):
                    return self.build(rest, chosen, values)
                return self._bound(rest, chosen, values)
            case Each():
                return self._each(step, rest, columns, row, scope)
            case Through():
                raise TypeError("operators are no part of an expression")

    def _bound(self, rest: Sequence[Step], columns: Sequence[Column], row: Sequence[Term]) -> Term:
        """The rest, with the row computed once: a lambda's variable is the only `let` that Catalyst has."""
        catalyst = self.catalyst
        packed = catalyst.struct([f"x{i}" for i in range(len(row))], row)
        body = catalyst.transform(
            catalyst.array([packed]),
            lambda x: self.build(rest, columns, [catalyst.field(x, i) for i in range(len(row))]),
        )
        return catalyst.first(body)

    def _each(
        self, step: Each, rest: Sequence[Step], columns: Sequence[Column], row: Sequence[Term], scope: Any
    ) -> Term:
        catalyst = self.catalyst
        rows = catalyst.substitute(step.rows, scope)
        if step.outer:
            nothing = catalyst.array([catalyst.null(rows.dataType().elementType())])
            rows = catalyst.when(catalyst.has_elements(rows), rows, nothing)
        nested = any(isinstance(one, Each) for one in rest)

        def body(element: Term) -> Term:
            made = [catalyst.field(element, i) for i in range(len(step.made))] if step.fields else [element]
            inner = self.build(rest, [*columns, *step.made], [*row, *made])
            return catalyst.or_empty(inner) if nested else inner

        result = catalyst.transform(rows, body)
        if nested:
            return catalyst.flatten(result)
        return catalyst.without_nulls(result) if any(isinstance(one, Where) for one in rest) else result


def _used(rest: Sequence[Step], terms: Sequence[Term]) -> list[Term]:
    """The terms that the next step evaluates."""
    match rest[0] if rest else None:
        case Where(condition):
            return [condition]
        case Select(_, chosen):
            return list(chosen)
        case Each(rows):
            return [rows]
        case _:
            return list(terms)
