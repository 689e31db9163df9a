"""What time it is: `now()` in a filter becomes a moment that the log tells, and the filter a node that keeps time.

    WHERE at > now() - INTERVAL 1 DAY        WHERE at > (SELECT at FROM `evert.clock`) - INTERVAL 1 DAY

The relation `evert.clock` has one row, the time of the last tick. Only comparisons of a time of the row with a
moment are kept so: a row changes sides once. Anywhere else `now()` is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.errors import BadQuery
from evert.plan.expressions import SUBQUERIES, name_of
from evert.plan.fingerprints import plain_sql
from evert.plan.ranking import TURNED
from evert.plan.tree import Shape, Term, Timed

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst
    from evert.plan.reading import Reader

CLOCK = "evert.clock"
CLOCK_ID = "clock"
CLOCK_SCHEMA = pa.schema([pa.field("at", pa.timestamp("us", "UTC"))])
_NOW = {"CurrentTimestamp", "Now"}
_TODAY = "CurrentDate"
_COMPARISONS = {
    "GreaterThan": (True, False),
    "GreaterThanOrEqual": (True, True),
    "LessThan": (False, True),
    "LessThanOrEqual": (False, False),
}
"""For `value ? moment`: whether rows leave when the moment reaches their value, and whether it must be beyond."""
_TIMES = {"timestamp", "timestamp_ntz", "date"}
_HINT = "compare a column with it in WHERE, as in at > now() - INTERVAL 1 DAY"


def asks_time(catalyst: Catalyst, plan: Any) -> bool:
    """Whether a query asks what time it is in one of its filters."""
    return any(name_of(one) in (*_NOW, _TODAY) for one in _asked(catalyst, plan))


def with_clock(catalyst: Catalyst, plan: Any) -> Any:
    """The plan in which `now()` is what the relation `evert.clock` says."""
    return told(catalyst, plan, catalyst.value_of(f"SELECT at FROM `{CLOCK}`"))


def told(catalyst: Catalyst, plan: Any, time: Term) -> Any:
    """The plan with what `time` says in place of `now()`, in its filters."""
    if not catalyst.asks_now(plan):
        return plan
    children = catalyst.items(plan.children())
    plan = plan.withNewChildren(catalyst.sequence(told(catalyst, child, time) for child in children))
    if name_of(plan) != "Filter":
        return plan
    return plan.copy(_with_time(catalyst, plan.condition(), time), plan.child())


def _asked(catalyst: Catalyst, plan: Any) -> list[Term]:
    """What asks for the time in the filters of a plan."""
    found, plans = [], [plan]
    while plans:
        plan = plans.pop()
        if not catalyst.asks_now(plan):
            continue
        plans += catalyst.items(plan.children())
        terms = [plan.condition()] if name_of(plan) == "Filter" else []
        while terms:
            term = terms.pop()
            if catalyst.asks_now(term) and name_of(term) in SUBQUERIES:
                plans.append(term.plan())
            elif catalyst.asks_now(term):
                parts = catalyst.items(term.children())
                found += [] if parts else [term]
                terms += parts
    return found


def _with_time(catalyst: Catalyst, term: Term, time: Term) -> Term:
    if not catalyst.asks_now(term):
        return term
    name = name_of(term)
    if name in _NOW:
        return time
    if name == _TODAY:
        return catalyst.cast(time, term.dataType())
    if name in SUBQUERIES:
        return term.withNewPlan(told(catalyst, term.plan(), time))
    if catalyst.is_replaceable(term):  # which remembers what it was made of
        return _with_time(catalyst, term.replacement(), time)
    parts = catalyst.items(term.children())
    return term.withNewChildren(catalyst.sequence(_with_time(catalyst, part, time) for part in parts))


def parted(reader: Reader, terms: Sequence[Term]) -> tuple[list[Term], list[Term]]:
    """The conditions that do not ask what time it is, and those that do."""
    timed = [term for term in terms if reader.clocks([term])]
    return [term for term in terms if term not in timed], timed


def timed(reader: Reader, condition: Term, child: Shape) -> Shape:
    """A comparison of a value with a moment, over what is compared."""
    kind = name_of(condition)
    if kind not in _COMPARISONS:
        raise misplaced(condition)
    value, moment = condition.left(), condition.right()
    if reader.clocks([value]):
        value, moment, kind = moment, value, TURNED[kind]
    clocks = reader.clocks([moment])
    if not clocks or reader.clocks([value]) or moment.references().nonEmpty() or reader.subqueries([value]):
        raise misplaced(condition)
    if value.dataType().typeName() not in _TIMES:
        raise BadQuery(f"{plain_sql(value)} is no time that now() could reach", hint=_HINT)
    clock = reader.read(reader.catalyst.optimise(clocks[0].plan()))
    at = clock.columns[0].term
    moment = reader.catalyst.replaced(moment, [(one, at) for one in clocks])
    leaving, open = _COMPARISONS[kind]
    (value,), inner = reader.ready([value], child)
    text = (
        f"{plain_sql(value)} {'after' if leaving else 'before'} {plain_sql(moment).replace('at', 'now()', 1)}"
    )
    shape = Timed(inner.columns, inner, value, clock, moment, leaving, open, _shift(moment), text)
    return reader.only(child.columns, shape)


def misplaced(term: Term) -> BadQuery:
    """The error that `now()` stands where the view would change all the time."""
    return BadQuery(
        f"now() cannot stand in {plain_sql(term)}: it is compared with a time of the row", hint=_HINT
    )


def _shift(moment: Term) -> int | None:
    """How far the moment is ahead of the clock, if that is a fixed length of time."""
    match name_of(moment):
        case "AttributeReference":
            return 0
        case "TimestampAddInterval" | "TimeAdd":
            start, length = moment.children().apply(0), moment.children().apply(1)
            below = _shift(start)
            fixed = name_of(length) == "Literal" and length.dataType().typeName().startswith("interval day")
            fixed |= name_of(length) == "Literal" and "DayTimeInterval" in name_of(length.dataType())
            return None if below is None or not fixed else below + int(length.value())
    return None
