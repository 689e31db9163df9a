"""Rows that are final: of joins within an interval, and of frames, once no event can change them any more.

    s LEFT JOIN c ON … AND c.at BETWEEN s.at AND s.at + INTERVAL 1 HOUR
      =  s JOIN c ON …  UNION ALL  (s ANTI JOIN c ON … WHERE s.at + 1 hour < watermark of c), NULLs beside it

    count(*) OVER (PARTITION BY k ORDER BY at RANGE BETWEEN … AND INTERVAL 5 MINUTES FOLLOWING) FROM s
      =  …  WHERE at + 5 minutes < watermark of s

Of each stream only what came in time counts, `at >= _watermark`; the rest is what comes too late. So a pair is
final as soon as it is there, and a row without a match once its watermark says that none can come.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from evert.errors import BadQuery
from evert.plan import sliding
from evert.plan.bounds import aboves
from evert.plan.closing import WATERMARK, Closing, Emit, closed, has_windows
from evert.plan.expressions import name_of
from evert.plan.now import WATERMARKS
from evert.plan.tree import Term

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evert.plan.catalyst import Catalyst

_SAME = {"Filter", "Generate", "Project", "SubqueryAlias", "Union"}
_JOINS = {"Cross": (), "Inner": (), "LeftOuter": (0,), "RightOuter": (1,), "FullOuter": (0, 1)}
"""The sides of a join whose rows are shown without a match."""
_HINT = (
    "group by window(…) or session_window(…) of a stream's event time, join streams within an interval of their"
    " event times, or use frames RANGE BETWEEN INTERVAL … over it"
)


def final(catalyst: Catalyst, plan: Any, times: Mapping[str, str], emit: Emit) -> tuple[Any, Closing | None]:
    """The plan of what is final of a query, and how its windows are closed if it has any; or of what came too late.

    `times` are the streams that have event time, and its columns.
    """
    if has_windows(catalyst, plan):
        return closed(catalyst, plan, times, emit)
    settling = _Settling(catalyst, times)
    return settling.late(plan) if emit == "late" else settling.settled(plan), None


class _Settling:
    """Rewrites an analysed query."""

    def __init__(self, catalyst: Catalyst, times: Mapping[str, str]) -> None:
        self._catalyst = catalyst
        self._times = {name.lower(): (name, column) for name, column in times.items()}
        self._of: dict[int, str] = {}
        """The stream whose event time an attribute is."""

    def settled(self, plan: Any) -> Any:
        """What is final of a query."""
        made = self._plan(plan)
        if not self._of:
            raise _unsettled("a query that reads no stream with event time")
        return self._catalyst.without(WATERMARK, made)

    def late(self, plan: Any) -> Any:
        """What comes too late for a query: of which stream, when it happened, and the event as JSON."""
        found = {name: self._late(*streams) for name, streams in self._streams(plan)}
        if not found:
            raise _unsettled("a query that reads no stream with event time")
        union = reduce(lambda one, two: one.unionAll(two), found.values())
        return self._catalyst.analysed(union)

    def _plan(self, plan: Any) -> Any:
        catalyst, name = self._catalyst, name_of(plan)
        if (stream := self._stream(plan)) is not None:
            return self._punctual(plan, *stream)
        if name == "View":
            return plan
        if name == "Join":
            return self._join(plan)
        if name == "Window":
            return self._frames(plan.withNewChildren(catalyst.sequence([self._plan(plan.child())])))
        if name not in _SAME or (name == "Filter" and catalyst.has_subqueries(plan.condition())):
            raise _unsettled(f"the operator {name}")
        children = [self._plan(child) for child in catalyst.items(plan.children())]
        return plan.withNewChildren(catalyst.sequence(children)) if children else plan

    def _stream(self, plan: Any) -> tuple[str, str] | None:
        """The stream with event time that an operator reads, and that column, if it is one."""
        if name_of(plan) != "View":
            return None
        return self._times.get(str(plan.desc().identifier().table()).lower())

    def _streams(self, plan: Any) -> Iterator[tuple[str, tuple[Any, str, str]]]:
        if (stream := self._stream(plan)) is not None:
            yield stream[0], (plan, *stream)
        else:
            for child in self._catalyst.items(plan.children()):
                yield from self._streams(child)

    def _columns(self, plan: Any, column: str) -> tuple[Term, Term]:
        """The event time of a stream, and the watermark from before the event's commit."""
        found = {one.name(): one for one in self._catalyst.items(plan.output())}
        return found[column], found[WATERMARK]

    def _punctual(self, plan: Any, name: str, column: str) -> Any:
        catalyst = self._catalyst
        at, mark = self._columns(plan, column)
        self._of[at.exprId().id()] = name
        late = catalyst.both([catalyst.is_not_null(mark), catalyst.after(mark, catalyst.later(at, 0))])
        return catalyst.filtered(plan, catalyst.negation(late))

    def _late(self, plan: Any, name: str, column: str) -> DataFrame:
        catalyst = self._catalyst
        at, mark = self._columns(plan, column)
        late = catalyst.frame(catalyst.filtered(plan, catalyst.after(mark, catalyst.later(at, 0))))
        text, quoted = name.replace("'", "\\'"), column.replace("`", "``")
        return late.drop(WATERMARK).selectExpr(
            f"'{text}' AS stream", f"CAST(`{quoted}` AS TIMESTAMP) AS at", "to_json(struct(*)) AS event"
        )

    def _join(self, plan: Any) -> Any:
        catalyst = self._catalyst
        kind = plan.joinType().toString()
        if kind not in _JOINS:
            raise _unsettled(f"a join of the kind {kind}")
        sides = [self._plan(plan.left()), self._plan(plan.right())]
        join = plan.copy(*sides, plan.joinType(), plan.condition(), plan.hint())
        if not _JOINS[kind]:
            return join
        parts = [catalyst.join_of(join, sides[0], sides[1], "Inner")]
        for place in _JOINS[kind]:
            mine, other = sides[place], sides[1 - place]
            lonely = catalyst.join_of(join, mine, other, "LeftAnti")
            parts.append(self._padded(catalyst.filtered(lonely, self._over(join, mine, other)), join))
        return catalyst.union(parts)

    def _over(self, join: Any, mine: Any, other: Any) -> Term:
        """Whether no event can come any more that a row of one side would meet."""
        catalyst = self._catalyst
        given = _optimised(catalyst, join, "Join").condition()
        columns = {one.exprId().id(): one for one in catalyst.items(mine.output())}
        theirs = {one.exprId().id() for one in catalyst.items(other.output())}
        for one in aboves(catalyst, given.get() if given.isDefined() else None, ()):
            known = one.greater.field is None and one.greater.id in columns
            if known and one.lesser.id in theirs and one.lesser.id in self._of:
                value = catalyst.later(columns[one.greater.id], -one.by)
                return catalyst.after(self._mark(self._of[one.lesser.id]), value)
        raise _unsettled("an outer join whose condition does not say until when a match may come")

    def _padded(self, lonely: Any, join: Any) -> Any:
        """Rows without a match as rows of the join, NULLs in the columns of the other side."""
        there = {one.exprId().id(): one for one in self._catalyst.items(lonely.output())}
        named = []
        for column in self._catalyst.items(join.output()):
            term = there.get(column.exprId().id())
            term = self._catalyst.null(column.dataType()) if term is None else term
            named.append(self._catalyst.alias(term, column.name()))
        return self._catalyst.projected(lonely, named)

    def _frames(self, plan: Any) -> Any:
        reach = sliding.reach(self._catalyst, [_optimised(self._catalyst, plan, "Window")])
        stream = None if reach is None else self._of.get(self._catalyst.attribute_id(reach.order) or -1)
        if reach is None or stream is None:
            raise _unsettled("a window function without a frame RANGE BETWEEN INTERVAL … over event time")
        value = self._catalyst.later(reach.order, reach.after)
        return self._catalyst.filtered(plan, self._catalyst.after(self._mark(stream), value))

    def _mark(self, stream: str) -> Term:
        quoted = (stream + WATERMARKS).replace("`", "``")
        return self._catalyst.value_of(f"SELECT at FROM `{quoted}`")


def _optimised(catalyst: Catalyst, plan: Any, name: str) -> Any:
    """The first operator of this name in what becomes of a plan: its terms have no constants left to compute."""
    waiting = [catalyst.optimise(plan)]
    while waiting:
        found = waiting.pop(0)
        if name_of(found) == name:
            return found
        waiting = [*catalyst.items(found.children()), *waiting]
    return plan


def _unsettled(what: str) -> BadQuery:
    return BadQuery(f"EMIT ON WINDOW CLOSE does not know when {what} is final", hint=_HINT)
