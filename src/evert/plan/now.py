"""What time it is: moments that the log tells, and filters by them that become nodes which keep time.

    WHERE at > now() - INTERVAL 1 DAY        WHERE at > (SELECT at FROM `evert.clock`) - INTERVAL 1 DAY
    WHERE at < watermark('clicks')           WHERE at < (SELECT at FROM `clicks.watermark`)

The relation `evert.clock` has one row, the time of the last tick; that of a watermark has one, where the stream
stands. Only comparisons of a time of the row with a moment are kept so: a row changes sides once. Anywhere else
`now()` is refused, and a watermark is a value that is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.errors import BadQuery
from evert.plan.expressions import SUBQUERIES, name_of
from evert.plan.fingerprints import plain_sql
from evert.plan.ranking import TURNED
from evert.plan.tokens import scan
from evert.plan.tree import Shape, Term, Timed

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst
    from evert.plan.reading import Reader

CLOCK = "evert.clock"
CLOCK_ID = "clock"
WATERMARKS = ".watermark"
"""What the name of a stream's watermark ends in."""
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


def with_watermarks(text: str) -> str:
    """A query in which `watermark('clicks')` is a subquery of the stream's watermark.

    >>> with_watermarks("SELECT watermark('clicks') AS w FROM t")
    'SELECT (SELECT at FROM `clicks.watermark`) AS w FROM t'
    """
    if "watermark" not in text.lower():
        return text
    parts, begin, tokens = [], 0, scan(text)
    for word, opening, name, closing in zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False):
        if (word.upper, opening.text, name.kind, closing.text) == ("WATERMARK", "(", "text", ")"):
            quoted = (name.value + WATERMARKS).replace("`", "``")
            parts += [text[begin : word.start], f"(SELECT at FROM `{quoted}`)"]
            begin = closing.end
    return "".join([*parts, text[begin:]])


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
    timed = []
    for term in terms:
        clocks = reader.clocks([term])
        if clocks and _compared(reader, term) is not None:
            timed.append(term)
        elif any(reader.is_now(clock) for clock in clocks):
            raise misplaced(term)
    return [term for term in terms if term not in timed], timed


def timed(reader: Reader, condition: Term, child: Shape) -> Shape:
    """A comparison of a value with a moment, over what is compared."""
    compared = _compared(reader, condition)
    if compared is None:
        raise misplaced(condition)
    value, kind, moment = compared
    clocks = reader.clocks([moment])
    clock = reader.read(reader.catalyst.optimise(clocks[0].plan()))
    at = clock.columns[0].term
    moment = reader.catalyst.replaced(moment, [(one, at) for one in clocks])
    leaving, open = _COMPARISONS[kind]
    (value,), inner = reader.ready([value], child)
    name = "now()" if reader.is_now(clocks[0]) else "the watermark"
    text = f"{plain_sql(value)} {'after' if leaving else 'before'} {plain_sql(moment).replace('at', name, 1)}"
    shape = Timed(inner.columns, inner, value, clock, moment, leaving, open, _shift(moment), text)
    return reader.only(child.columns, shape)


def _compared(reader: Reader, condition: Term) -> tuple[Term, str, Term] | None:
    """The value, the comparison and the moment of a condition that one clock decides, if that is what it is."""
    kind = name_of(condition)
    if kind not in _COMPARISONS:
        return None
    value, moment = condition.left(), condition.right()
    if reader.clocks([value]):
        value, moment, kind = moment, value, TURNED[kind]
    clocks = reader.clocks([moment])
    if not clocks or len(clocks) != len(reader.subqueries([moment])):
        return None
    if any(not clock.semanticEquals(clocks[0]) for clock in clocks):
        return None
    if reader.subqueries([value]) or moment.references().nonEmpty():
        return None
    return (value, kind, moment) if value.dataType().typeName() in _TIMES else None


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
