"""What several works on the same rows have in common, done once; above all the panes of hopping windows.

A row is in every window that is open at its time, and each window is a work of its own. What all of them ask of the
time is in which pane it is, the time from one hop to the next:

    rows of a port              panes, consolidated        one work for each window
    (a, 10:00:01) +1            (a, 10:00:00) +2    ──>    (a, [09:59:52, 10:00:02)) +2
    (a, 10:00:01.5) +1    ──>   (b, 10:00:00) +1    ──>    (a, [09:59:54, 10:00:04)) +2
    (b, 10:00:00.2) +1                                     ...

So rows are counted by pane first, and only what is left is put into windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

import pyarrow as pa

from evert.delta.inline import Call, Constant, Expression, Field, Make, Work
from evert.schema.digest import whole
from evert.trace.arrays import take_rows
from evert.trace.consolidate import WEIGHT, content_of, weights_of, with_weights
from evert.trace.groups import Groups, groups_of

FEW = 1000
"""Fewer rows are put into windows as they are."""
SAMPLE = 4096
PAYS = 0.5
"""If no more than this part of a sample is left when equal rows are one, the rest is worth the same."""


def applied(works: Sequence[Work], rows: pa.Table) -> Iterator[pa.Table]:
    """What each of the works makes of the rows, as a multiset."""
    shared = common(tuple(works)) if len(works) > 1 and rows.num_rows >= FEW else None
    if shared is None:
        yield from (work.apply(rows) for work in works)
        return
    once = shared.first.apply(rows)
    if len(_alike(once.slice(0, SAMPLE))) <= PAYS * min(SAMPLE, once.num_rows):
        once = _counted(once)
    yield from (work.apply(once) for work in shared.then)


def _alike(rows: pa.Table) -> Groups:
    return groups_of([whole(rows.column(name)) for name in content_of(rows)], rows.num_rows)


def _counted(rows: pa.Table) -> pa.Table:
    """Rows of equal content as one, with the sum of their weights."""
    groups = _alike(rows)
    kept = take_rows(rows.drop_columns([WEIGHT]), groups.first)
    return with_weights(kept, groups.sums(weights_of(rows)), like=rows.schema)


@dataclass(frozen=True)
class Common:
    """A work that comes first, and what is left to do of each of the works."""

    first: Work
    then: tuple[Work, ...]


@lru_cache(256)
def common(works: tuple[Work, ...]) -> Common | None:
    """Works that begin alike and then compute columns of which parts are the same in all, split behind these parts.

    They are split only if a column that goes into such a part goes into nothing else: then rows become alike.
    """
    alike = takewhile(lambda steps: len(set(steps)) == 1, zip(*(work.steps for work in works), strict=False))
    begin = [steps[0] for steps in alike]
    rest = [work.steps[len(begin) :] for work in works]
    makes = [steps[0] for steps in rest if steps and isinstance(steps[0], Make)]
    if len(makes) < len(works):
        return None
    parts = set.intersection(*({part for one in make.columns for part in _calls(one)} for make in makes))
    columns = list(
        dict.fromkeys(part for make in makes for one in make.columns for part in _outer(one, parts))
    )
    plain = {one.place for one in columns if isinstance(one, Field)}
    inside = {place for one in columns if isinstance(one, Call) for place in _fields(one)}
    if not inside or plain & inside:
        return None
    places = {column: place for place, column in enumerate(columns)}
    then = tuple(
        Work((Make(tuple(_over(one, places) for one in make.columns)), *steps[1:]))
        for make, steps in zip(makes, rest, strict=True)
    )
    return Common(Work((*begin, Make(tuple(columns)))), then)


def _calls(expression: Expression) -> Iterator[Call]:
    """The expression and all within it that are calls of columns."""
    if isinstance(expression, Call) and next(_fields(expression), None) is not None:
        yield expression
        for argument in expression.arguments:
            yield from _calls(argument)


def _fields(expression: Expression) -> Iterator[int]:
    match expression:
        case Field(place):
            yield place
        case Call(_, arguments):
            for argument in arguments:
                yield from _fields(argument)


def _outer(expression: Expression, parts: set[Call]) -> Iterator[Expression]:
    """What an expression needs: the largest of the parts in it, and columns that are in none of them."""
    match expression:
        case Constant():
            return
        case Call(_, arguments) if expression not in parts:
            for argument in arguments:
                yield from _outer(argument, parts)
        case _:
            yield expression


def _over(expression: Expression, places: dict[Expression, int]) -> Expression:
    """The expression over columns that have its parts."""
    if expression in places:
        return Field(places[expression])
    if isinstance(expression, Call):
        return replace(expression, arguments=tuple(_over(one, places) for one in expression.arguments))
    return expression
