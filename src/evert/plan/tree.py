"""A query as Spark understood it, in a dozen shapes; terms are Catalyst expressions that nobody here opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

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
class Timed(Shape):
    """Rows by how a value of theirs compares with a moment, a term over the one row of `clock`.

    They are shown until the moment reaches the value (`leaving`), or from then on. With `open` a value that equals
    the moment is not reached yet. `shift` is how far the moment is ahead of the clock, if that is always the same.
    """

    child: Shape
    value: Term
    clock: Shape
    moment: Term
    leaving: bool
    open: bool
    shift: int | None
    text: str
    final: bool = False
    """What has come stays as it is."""


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


JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti", "existence"]


@dataclass(frozen=True)
class Join(Shape):
    """Each key is the term of the left, that of the right, and whether NULL equals NULL.

    A semi or anti join gives columns of the left; an existence join adds one that says whether there is a match.
    """

    kind: JoinKind
    left: Shape
    right: Shape
    keys: tuple[tuple[Term, Term, bool], ...] = ()
    residual: Term | None = None
    text: str = ""


@dataclass(frozen=True)
class Order:
    """One part of an ORDER BY."""

    term: Term
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Top(Shape):
    """The rows from rank `least` to rank `most` of each partition; `rank` is the column that has the rank.

    `kind` is row_number, rank or dense_rank; LIMIT and OFFSET are row numbers of the whole.
    """

    child: Shape
    order: tuple[Order, ...]
    least: int
    most: int | None
    partition: tuple[Term, ...] = ()
    kind: str = "row_number"
    rank: Column | None = None
    text: str = ""


@dataclass(frozen=True)
class PerKey(Shape):
    """Operators of Spark's own, the lowest first, that treat the rows of each key for themselves.

    The keys are columns of the child and among `columns`. `groups` are the columns that tell the rows of an
    aggregate apart; a window function tells rows apart as its child does. `nothing` is the aggregate that gives a
    row even if there are none.
    """

    operators: tuple[Any, ...]
    keys: tuple[Column, ...]
    child: Shape
    text: str
    groups: tuple[Column, ...] | None = None
    nothing: Any = None


@dataclass(frozen=True)
class Merged(Shape):
    """An aggregate that can be merged: `partial` is Spark's operator for some rows, `merging` calls that merge what
    it gives. The columns are the keys, which the terms give, and the results. `nothing` is the aggregate that gives
    a row even if there are none.
    """

    partial: Any
    keys: tuple[Column, ...]
    terms: tuple[Term, ...]
    merging: tuple[str, ...]
    nothing: Any
    child: Shape
    text: str


@dataclass(frozen=True)
class Sketches(Shape):
    """An aggregate with sketches: `kept` if the child only grows, else key by key. If it matters how `often` a row
    is there, the child must also come from the log."""

    kept: Shape
    by_key: Shape
    child: Shape
    often: bool


@dataclass(frozen=True)
class Sliding(Shape):
    """Window operators of Spark's own, the lowest first, of which a row's results depend on the rows near it.

    Near are those of the same keys whose value of `order` is less by at most `before` or greater by at most
    `after`. Keys and order are columns of the child and among `columns`.
    """

    operators: tuple[Any, ...]
    keys: tuple[Column, ...]
    order: Column
    before: int
    after: int
    child: Shape
    text: str


@dataclass(frozen=True)
class Foreign(Shape):
    """The child's columns and others, which Spark itself must compute: it calls functions outside of the JVM."""

    operator: Any
    child: Shape
    text: str


@dataclass(frozen=True)
class Call:
    """One aggregate function: `kind` is count, sum, avg, min, max or some; `result` is what refers to it above.

    Equal values of the terms in `distinct` count once, and those where the filter does not hold do
    not count.
    """

    kind: str
    argument: Term | None
    filter: Term | None
    function: Any
    result: Column
    text: str
    distinct: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Aggregate(Shape):
    """`results` are over `groups` (columns given by `keys`) and the calls' results.

    If it `merges`, its last key is the window of a session: groups whose windows meet are one.
    """

    groups: tuple[Column, ...]
    keys: tuple[Term, ...]
    calls: tuple[Call, ...]
    results: tuple[Term, ...]
    child: Shape
    merges: bool = False


@dataclass(frozen=True)
class Sessions(Shape):
    """An aggregate by sessions: `kept` if the child only grows, else key by key."""

    kept: Shape
    by_key: Shape
    child: Shape
