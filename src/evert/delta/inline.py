"""Stateless work on a delta in Arrow: filters, choices of columns, and expressions of a short list.

Spark's expressions are the reference. What is here gives the same wherever it gives anything; whatever it raises
means that Spark is asked instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from evert.delta.functions import FUNCTIONS, Value
from evert.schema.digest import whole
from evert.trace.arrays import decoded, one_chunk
from evert.trace.consolidate import WEIGHT


@dataclass(frozen=True)
class Field:
    """A column of the rows."""

    place: int


@dataclass(frozen=True)
class Constant:
    value: bool | int | float | str | date | Decimal | None
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
        return self._needed(0)

    def _needed(self, first: int) -> set[int] | None:
        """The places of the columns that steps from this one on read; None if it is all of them."""
        found: set[int] = set()
        for step in self.steps[first:]:
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
        simple = rows if _is_simple(rows) else decoded(rows)
        needed = self._needed(0)
        weights = whole(simple.column(simple.num_columns - 1))
        columns: list[pa.Array] = [
            whole(column) if needed is None or place in needed else pa.nulls(0)
            for place, column in enumerate(simple.columns[:-1])
        ]
        for number, step in enumerate(self.steps, 1):
            here = _Rows(columns, len(weights))
            match step:
                case Keep(condition):
                    kept = here.array(condition)
                    if kept.null_count or kept.true_count < len(kept):
                        needed = self._needed(number)
                        columns = [
                            column.filter(kept) if needed is None or place in needed else pa.nulls(0)
                            for place, column in enumerate(columns)
                        ]
                        weights = weights.filter(kept)
                case Make(made):
                    columns = [here.array(one) for one in made]
        names = [f"c{place}" for place in range(len(columns))]
        return pa.table([*columns, weights], names=[*names, WEIGHT])


def _is_simple(rows: pa.Table) -> bool:
    """Whether late columns are in one chunk, so that they can stay as they are."""
    return all(column.num_chunks == 1 for column in rows.columns if pa.types.is_dictionary(column.type))


def _read(expression: Expression) -> set[int]:
    match expression:
        case Field(place):
            return {place}
        case Constant():
            return set()
        case Call(_, arguments):
            return set().union(*map(_read, arguments))


def _plain(value: Value) -> Value:
    return value if isinstance(value, pa.Scalar) else one_chunk(value)


@dataclass
class _Rows:
    """Columns of so many rows, and what has been computed of them."""

    columns: Sequence[pa.Array]
    count: int
    _known: dict[Expression, Value] = field(default_factory=dict)

    def array(self, expression: Expression) -> pa.Array:
        """The values of an expression, which may be late: a column as it is, text made of few others."""
        if isinstance(expression, Field):
            return self.columns[expression.place]
        value = self.value(expression)
        if isinstance(value, pa.Scalar):
            return pa.repeat(value, self.count)
        return value if isinstance(value, pa.DictionaryArray) else one_chunk(value)

    def value(self, expression: Expression) -> Value:
        match expression:
            case Field(place):
                if expression not in self._known:
                    self._known[expression] = one_chunk(self.columns[place])
                return self._known[expression]
            case Constant(value, kind):
                return pa.scalar(value, kind)
            case Call("struct", arguments, kind):
                return self._struct(arguments, kind)
            case Call("field", (struct,), _, place):
                return pc.struct_field(self.array(struct), [place])
            case Call(name, arguments, kind):
                if expression not in self._known:
                    values = [_plain(self.value(argument)) for argument in arguments]
                    self._known[expression] = FUNCTIONS[name](values, kind)
                return self._known[expression]

    def _struct(self, arguments: Sequence[Expression], kind: pa.StructType) -> pa.Array:
        return pa.StructArray.from_arrays(
            [one_chunk(self.array(one)) for one in arguments], fields=list(kind)
        )
