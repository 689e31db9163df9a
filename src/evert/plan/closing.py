"""Windows that are final: what a view shows of them once no event is waited for any more.

    Aggregate by window, k                  Timed: window.end <= watermark of clicks, final
      clicks                       ──>        Aggregate by window, k
                                                Filter window.end > _watermark
                                                  clicks, with `_watermark`

`_watermark` is what the stream's watermark was before the event's commit. An event that comes after its window was
closed is kept out by it, however the log is cut into epochs. So nothing changes of what has been shown.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from evert.errors import BadQuery
from evert.plan.expressions import name_of, unnamed
from evert.plan.tree import Term

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst

Emit = Literal["changes", "close", "late"]
"""All changes of a view; its windows once they are closed; or what came too late for these."""
WATERMARK = "_watermark"
"""The column of streams with event time that has the watermark from before the commit of a row."""
MARK = pa.field(WATERMARK, pa.timestamp("us", "UTC"))
_WINDOW, _SESSION = "spark.timeWindow", "spark.sessionWindow"
_START, _END = 0, 1
_TRANSPARENT = {"SubqueryAlias", "View"}
_HINT = "group by window(…) or session_window(…) of a stream's event time, and select the window or its end"


@dataclass(frozen=True)
class Closing:
    """A query whose windows are closed: its plan without what comes too late, the streams whose watermarks close
    them, where the window is in its columns, and whether it is the whole window there or only its end.

    A session is closed when the watermark is beyond its end: an event at the end still belongs to it.
    """

    plan: Any
    streams: tuple[str, ...]
    column: int
    whole: bool
    sessions: bool

    def end(self, catalyst: Catalyst, columns: list[Term]) -> Term:
        """The end of a row's window, of the query's columns."""
        found = columns[self.column]
        return catalyst.field(found, _END) if self.whole else found


def closed(catalyst: Catalyst, plan: Any, streams: Collection[str], emit: Emit) -> tuple[Any, Closing | None]:
    """The plan of a query without what comes too late for its windows, and how they are closed; or the plan of what
    comes too late. `streams` are those that have event time."""
    if emit == "late":
        return catalyst.without(WATERMARK, _Closer(catalyst, streams).late(plan)), None
    closing = _Closer(catalyst, streams).closing(plan)
    return closing.plan, closing


def has_windows(catalyst: Catalyst, plan: Any) -> bool:
    """Whether a query counts by windows anywhere."""
    return _Closer(catalyst, ()).has_window(plan)


class _Closer:
    """Rewrites an analysed query."""

    def __init__(self, catalyst: Catalyst, streams: Collection[str]) -> None:
        self._catalyst = catalyst
        self._names = {name.lower(): name for name in streams}
        self._streams: list[str] = []
        self._sessions = False

    def closing(self, plan: Any) -> Closing:
        column, whole = self._window_of(plan)
        made = self._punctual(plan)
        if not self._streams:
            raise BadQuery("EMIT ON WINDOW CLOSE needs windows over a stream with event time", hint=_HINT)
        return Closing(made, tuple(dict.fromkeys(self._streams)), column, whole, self._sessions)

    def late(self, plan: Any) -> Any:
        """What comes too late for the windows of a query: the rows that would be counted in them."""
        if self._is_lowest(plan):
            return self._parted(plan, late=True).child()
        found = [
            self.late(child) for child in self._catalyst.items(plan.children()) if self.has_window(child)
        ]
        if not found:
            raise BadQuery("EMIT ON WINDOW CLOSE needs windows over a stream with event time", hint=_HINT)
        if any(not other.sameResult(found[0]) for other in found[1:]):
            raise BadQuery(
                "EMIT ON WINDOW CLOSE has one kind of windows: an event may be late for one and not for the other",
                hint="make a view of each, and join these",
            )
        return found[0]

    def _punctual(self, plan: Any) -> Any:
        """The plan with late rows kept out below each aggregate by windows of a stream."""
        if not self.has_window(plan):
            return plan
        if self._is_lowest(plan):
            return self._parted(plan, late=False)
        children = [self._punctual(child) for child in self._catalyst.items(plan.children())]
        return plan.withNewChildren(self._catalyst.sequence(children))

    def _parted(self, plan: Any, *, late: bool) -> Any:
        """An aggregate by windows over rows that came in time, or over those that did not."""
        catalyst = self._catalyst
        window, sessions = self._grouped_by(plan) or (None, False)
        self._sessions |= sessions
        child, mark = self._carried(plan.child())
        if sessions:
            in_time = catalyst.not_before(catalyst.field(window, _START), mark)
        else:
            in_time = catalyst.after(catalyst.field(window, _END), mark)
        known = catalyst.is_not_null(mark)
        condition = catalyst.both([known, catalyst.negation(in_time)])
        return plan.withNewChildren(
            catalyst.sequence([catalyst.filtered(child, condition if late else catalyst.negation(condition))])
        )

    def _carried(self, plan: Any) -> tuple[Any, Term]:
        """The plan with the column `_watermark` of the stream in it among what it gives."""
        catalyst = self._catalyst
        name = name_of(plan)
        if (stream := self._stream_of(plan)) is not None:
            self._streams.append(stream)
            return plan, next(one for one in catalyst.items(plan.output()) if one.name() == WATERMARK)
        children = catalyst.items(plan.children())
        places = [place for place, child in enumerate(children) if self._streams_in(child)]
        if len(places) != 1:
            raise BadQuery("EMIT ON WINDOW CLOSE needs one stream with event time below a window", hint=_HINT)
        child, mark = self._carried(children[places[0]])
        if name in _TRANSPARENT:
            return child, mark
        children[places[0]] = child
        there = plan.withNewChildren(catalyst.sequence(children))
        if any(one.exprId().equals(mark.exprId()) for one in catalyst.items(there.output())):
            return there, mark
        if name == "Project":
            return plan.copy(catalyst.sequence([*catalyst.items(plan.projectList()), mark]), child), mark
        if name == "Expand":
            rows = [
                catalyst.sequence([*catalyst.items(row), mark]) for row in catalyst.items(plan.projections())
            ]
            made = mark.newInstance()
            output = catalyst.sequence([*catalyst.items(plan.output()), made])
            return plan.copy(catalyst.sequence(rows), output, child), made
        raise BadQuery(f"EMIT ON WINDOW CLOSE cannot look through {name} below a window", hint=_HINT)

    def _stream_of(self, plan: Any) -> str | None:
        """The stream with event time that an operator reads, if it is one."""
        if name_of(plan) != "View":
            return None
        return self._names.get(str(plan.desc().identifier().table()).lower())

    def _streams_in(self, plan: Any) -> bool:
        if self._stream_of(plan) is not None:
            return True
        return any(self._streams_in(child) for child in self._catalyst.items(plan.children()))

    def has_window(self, plan: Any) -> bool:
        waiting = [plan]
        while waiting:
            one = waiting.pop()
            if self._grouped_by(one) is not None:
                return True
            waiting += self._catalyst.items(one.children())
        return False

    def _is_lowest(self, plan: Any) -> bool:
        return self._grouped_by(plan) is not None and not self.has_window(plan.child())

    def _grouped_by(self, plan: Any) -> tuple[Term, bool] | None:
        """The window that an operator groups by, and whether it is a session's."""
        if name_of(plan) != "Aggregate":
            return None
        for term in self._catalyst.items(plan.groupingExpressions()):
            if (kind := _mark(term)) is not None:
                return term, kind == _SESSION
        return None

    def _window_of(self, plan: Any) -> tuple[int, bool]:
        """Which column of a query is a window, or the end of one."""
        for place, one in enumerate(self._catalyst.items(plan.output())):
            if _mark(one) is not None and one.dataType().typeName() == "struct":
                return place, True
            if self._is_end(plan, one):
                return place, False
        raise BadQuery("EMIT ON WINDOW CLOSE needs the window among the view's columns", hint=_HINT)

    def _is_end(self, plan: Any, column: Term) -> bool:
        """Whether a column of an operator is the end of a window."""
        catalyst = self._catalyst
        lists = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
        if name_of(plan) in lists:
            named = catalyst.items(getattr(plan, lists[name_of(plan)])())
            column = unnamed(next(one for one in named if one.exprId().equals(column.exprId())))
        if name_of(column) == "GetStructField":
            return bool(column.ordinal() == _END and _mark(column.child()))
        if name_of(column) != "AttributeReference":
            return False
        for child in catalyst.items(plan.children()):
            if any(one.exprId().equals(column.exprId()) for one in catalyst.items(child.output())):
                return self._is_end(child, column)
        return False


def _mark(term: Term) -> str | None:
    """Whether an attribute is a window, and of what kind."""
    if name_of(term) == "AttributeReference":
        for mark in (_SESSION, _WINDOW):
            if term.metadata().contains(mark):
                return mark
    return None
