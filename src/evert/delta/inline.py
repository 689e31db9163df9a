"""Stateless work on a delta in Arrow: filters, choices of columns, and expressions of a short list.

Spark's expressions are the reference. What is here gives the same wherever it gives anything: arithmetic is
checked, and whatever it raises means that Spark is asked instead. There is no NaN, no time zone and no rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from evert.trace.arrays import one_chunk
from evert.trace.consolidate import WEIGHT

Value: TypeAlias = pa.Array | pa.Scalar


@dataclass(frozen=True)
class Field:
    """A column of the rows."""

    place: int


@dataclass(frozen=True)
class Constant:
    value: bool | int | str | None
    kind: pa.DataType


@dataclass(frozen=True)
class Call:
    """A function of other expressions; `kind` is the type of what it gives."""

    function: str
    arguments: tuple[Expression, ...]
    kind: pa.DataType
    place: int = 0
    """Which field of a struct is meant."""


Expression: TypeAlias = Field | Constant | Call


@dataclass(frozen=True)
class Keep:
    """Only rows of which the condition is true."""

    condition: Expression


@dataclass(frozen=True)
class Make:
    """These columns in place of those that there are."""

    columns: tuple[Expression, ...]


@dataclass(frozen=True)
class Work:
    """From rows of a source (`c0`, ... and the weight) to rows of a port; without steps they are the same."""

    steps: tuple[Keep | Make, ...]

    def reads(self) -> set[int] | None:
        """The places of the columns that it reads; None if it is all of them."""
        found: set[int] = set()
        for step in self.steps:
            match step:
                case Keep(condition):
                    found |= _read(condition)
                case Make(made):
                    return found.union(*map(_read, made))
        return None

    def apply(self, rows: pa.Table) -> pa.Table:
        """The rows that come out, in the columns of the last `Make`."""
        if not self.steps:
            return rows
        *columns, weights = (one_chunk(column) for column in rows.columns)
        for step in self.steps:
            here = _Rows(columns, len(weights))
            match step:
                case Keep(condition):
                    kept = here.array(condition)
                    if kept.null_count or kept.true_count < len(kept):
                        columns = [column.filter(kept) for column in columns]
                        weights = weights.filter(kept)
                case Make(made):
                    columns = [here.array(one) for one in made]
        names = [f"c{place}" for place in range(len(columns))]
        return pa.table([*columns, weights], names=[*names, WEIGHT])


def _read(expression: Expression) -> set[int]:
    match expression:
        case Field(place):
            return {place}
        case Constant():
            return set()
        case Call(_, arguments):
            return set().union(*map(_read, arguments))


@dataclass
class _Rows:
    """Columns of so many rows, and what has been computed of them."""

    columns: Sequence[pa.Array]
    count: int
    _known: dict[Expression, Value] = field(default_factory=dict)

    def array(self, expression: Expression) -> pa.Array:
        value = self.value(expression)
        return pa.repeat(value, self.count) if isinstance(value, pa.Scalar) else one_chunk(value)

    def value(self, expression: Expression) -> Value:
        match expression:
            case Field(place):
                return self.columns[place]
            case Constant(value, kind):
                return pa.scalar(value, kind)
            case Call("struct", arguments, kind):
                return self._struct(arguments, kind)
            case Call("field", (struct,), _, place):
                return pc.struct_field(self.array(struct), [place])
            case Call(name, arguments, kind):
                if expression not in self._known:
                    values = [self.value(argument) for argument in arguments]
                    self._known[expression] = FUNCTIONS[name](values, kind)
                return self._known[expression]

    def _struct(self, arguments: Sequence[Expression], kind: pa.StructType) -> pa.Array:
        return pa.StructArray.from_arrays([self.array(one) for one in arguments], fields=list(kind))


def _folded(function: Callable[[Value, Value], Value]) -> Callable[[list[Value], pa.DataType], Value]:
    return lambda values, kind: reduce(function, values)


def _null_safe(one: Value, two: Value) -> Value:
    both = pc.and_(pc.is_null(one), pc.is_null(two))
    return pc.or_(both, pc.fill_null(pc.equal(one, two), False))


def _if(condition: Value, then: Value, otherwise: Value) -> Value:
    return pc.if_else(pc.fill_null(condition, False), then, otherwise)


def _case(values: list[Value], kind: pa.DataType) -> Value:
    """Conditions, each with its value, and at the end perhaps what holds otherwise."""
    *pairs, result = values if len(values) % 2 else [*values, pa.scalar(None, kind)]
    for place in range(len(pairs) - 2, -1, -2):
        result = _if(pairs[place], pairs[place + 1], result)
    return result


def _in(values: list[Value], kind: pa.DataType) -> Value:
    first, *others = values
    return reduce(pc.or_kleene, [pc.equal(first, other) for other in others])


def _remainder(one: Value, two: Value) -> Value:
    return pc.subtract(one, pc.multiply(pc.divide_checked(one, two), two))


FUNCTIONS: Mapping[str, Callable[[list[Value], pa.DataType], Value]] = {
    "Add": _folded(pc.add_checked),
    "And": _folded(pc.and_kleene),
    "CaseWhen": _case,
    "Cast": lambda values, kind: pc.cast(values[0], kind),
    "Coalesce": lambda values, kind: pc.coalesce(*values),
    "EqualNullSafe": _folded(_null_safe),
    "EqualTo": _folded(pc.equal),
    "GreaterThan": _folded(pc.greater),
    "GreaterThanOrEqual": _folded(pc.greater_equal),
    "If": lambda values, kind: _if(*values),
    "In": _in,
    "IsNotNull": lambda values, kind: pc.is_valid(values[0]),
    "IsNull": lambda values, kind: pc.is_null(values[0]),
    "LessThan": _folded(pc.less),
    "LessThanOrEqual": _folded(pc.less_equal),
    "Multiply": _folded(pc.multiply_checked),
    "Not": lambda values, kind: pc.invert(values[0]),
    "Or": _folded(pc.or_kleene),
    "PreciseTimestampConversion": lambda values, kind: pc.cast(values[0], kind),
    "Remainder": _folded(_remainder),
    "Subtract": _folded(pc.subtract_checked),
    "UnaryMinus": lambda values, kind: pc.negate_checked(values[0]),
}
"""What each function is in Arrow, by Catalyst's name for it."""
