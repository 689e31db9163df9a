"""Aggregate calls: what the kernel is asked for, and what is made of its answers.

The kernel counts and sums exactly and in wide types; the type, rounding and overflow that Spark gives a result
are put back by Spark's own expressions in the chain above.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from evert.delta.accumulate import Function
from evert.plan.catalyst import Catalyst
from evert.plan.tree import Aggregate, Call, Column, Recompute, Term
from evert.plan.types import check_key, check_ordered, kind_of
from evert.schema.types import Atom, DataType, Decimal, Interval, is_integer


@dataclass
class Split:
    """An aggregate as its kernel sees it: arguments after the group's columns, functions over them."""

    catalyst: Catalyst
    keys: int
    arguments: list[Term] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    raw: list[Column] = field(default_factory=list)
    finished: list[Term] = field(default_factory=list)

    def call(self, call: Call) -> None:
        """Ask for what this call needs, and add the term that finishes it."""
        catalyst = self.catalyst
        argument = call.argument
        if call.filter is not None:
            value = catalyst.literal(True) if argument is None else argument
            argument = catalyst.when(call.filter, value)
        if call.kind == "count":
            self.finished.append(self._ask("count", argument, Atom("BIGINT")))
            return
        if call.kind == "some":
            self.finished.append(self._ask("some", argument, Atom("BOOLEAN")))
            return
        if call.kind in ("min", "max"):
            check_ordered(kind_of(argument), call.kind)
            self.finished.append(self._ask(call.kind, argument, kind_of(argument)))
            return
        mode = catalyst.evaluation_mode(call.function)
        total = self._ask("sum", argument, _sum_kind(argument, call))
        if call.kind == "sum":
            self.finished.append(catalyst.cast(total, call.function.dataType(), mode))
            return
        counted = catalyst.when(catalyst.is_not_null(argument), catalyst.literal(True))
        count = self._ask("count", counted, Atom("BIGINT"))
        buffer = [catalyst.column(one) for one in catalyst.items(call.function.aggBufferAttributes())]
        values = [catalyst.cast(total, buffer[0].term.dataType(), mode), count]
        self.finished.append(
            catalyst.substitute(call.function.evaluateExpression(), catalyst.scope(buffer, values))
        )

    def _ask(self, kind: str, argument: Term | None, result: DataType) -> Term:
        """The kernel's answer; asking twice for the same gives the same column."""
        place = None if argument is None else self._place(argument)
        function = Function(kind, place)
        if function not in self.functions:
            self.functions.append(function)
            self.raw.append(self.catalyst.fresh_column(f"{kind}{len(self.raw)}", result))
        return self.raw[self.functions.index(function)].term

    def _place(self, argument: Term) -> int:
        for place, other in enumerate(self.arguments):
            if other.semanticEquals(argument):
                return self.keys + place
        self.arguments.append(argument)
        return self.keys + len(self.arguments) - 1


def split(catalyst: Catalyst, shape: Aggregate) -> Split:
    """What the kernel of an aggregate does."""
    for key in shape.keys:
        check_key(kind_of(key), "grouping")
    parts = Split(catalyst, len(shape.keys))
    for call in shape.calls:
        parts.call(call)
    return parts


def describe(shape: Aggregate) -> str:
    """An aggregate in a few words."""
    calls = ", ".join(call.text for call in shape.calls)
    groups = ", ".join(_names(shape.groups))
    if not shape.calls:
        return f"distinct {groups}"
    return f"{calls} by {groups}" if groups else calls


def _names(columns: Sequence[Column]) -> list[str]:
    return [column.name for column in columns]


def _sum_kind(argument: Term, call: Call) -> DataType:
    kind = kind_of(argument)
    if is_integer(kind):
        return Decimal(38, 0)
    match kind:
        case Decimal(_, scale):
            return Decimal(38, scale)
        case Atom("FLOAT" | "DOUBLE"):
            return Atom("DOUBLE")
        case Interval():
            return Interval()
        case _:
            raise Recompute(f"{call.kind} over {kind.ddl()}")
