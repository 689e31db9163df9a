"""A query as Spark understood it, in a dozen shapes; terms are Catalyst expressions that nobody here opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Term: TypeAlias = Any
"""A resolved Catalyst expression."""


class Recompute(Exception):
    """The query has a part that cannot be kept incrementally; the message names it."""


@dataclass(frozen=True)
class Column:
    """An attribute of the plan: what defines it is found by `id`."""

    id: int
    name: str
    term: Term


@dataclass(frozen=True)
class Shape:
    """What all shapes have: the columns they give."""

    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Read(Shape):
    leaf: str


@dataclass(frozen=True)
class Constant(Shape):
    plan: Any


@dataclass(frozen=True)
class Project(Shape):
    terms: tuple[Term, ...]
    child: Shape


@dataclass(frozen=True)
class Filter(Shape):
    condition: Term
    child: Shape


@dataclass(frozen=True)
class Union(Shape):
    children: tuple[Shape, ...]


@dataclass(frozen=True)
class Expand(Shape):
    projections: tuple[tuple[Term, ...], ...]
    child: Shape


@dataclass(frozen=True)
class Generate(Shape):
    """Rows repeated for the elements of `rows`; `made` are the new columns, `fields` whether an element is a
    struct of them. With `outer`, a row without elements gives one row of NULLs."""

    rows: Term
    fields: bool
    outer: bool
    made: tuple[Column, ...]
    child: Shape


@dataclass(frozen=True)
class Join(Shape):
    """An inner join; each key is the term of the left, that of the right, and whether NULL equals NULL."""

    left: Shape
    right: Shape
    keys: tuple[tuple[Term, Term, bool], ...]
    residual: Term | None
    text: str


@dataclass(frozen=True)
class Call:
    """One aggregate function: `kind` is count, sum, avg, min or max; `result` is what refers to it above."""

    kind: str
    argument: Term | None
    filter: Term | None
    function: Any
    result: Column
    text: str


@dataclass(frozen=True)
class Aggregate(Shape):
    """`results` are over `groups` (columns given by `keys`) and the calls' results."""

    groups: tuple[Column, ...]
    keys: tuple[Term, ...]
    calls: tuple[Call, ...]
    results: tuple[Term, ...]
    child: Shape
