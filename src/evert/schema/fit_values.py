"""Python values brought into Arrow columns: fast where all values are of the expected classes, exact always.

A column is built from a list of its values in one go. When every value is of a class that Arrow takes
exactly, Arrow does the work; otherwise, or when Arrow refuses, each value goes through its coercer, which
either makes it fit or says why not. Nested values are flattened first, so that inner values are built in
one go as well.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal as PyDecimal
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.schema.coerce import Refusal, coercer, said
from evert.schema.fit_arrow import Misfit, check_leaf, check_unique_keys, offsets_of, padded, without_nulls
from evert.schema.types import Array, Atom, Column, DataType, Decimal, Interval, Map, Struct, Text, Time

_NULL = type(None)
_EXPECTED: dict[str, type] = {
    "BOOLEAN": bool,
    "TINYINT": int,
    "SMALLINT": int,
    "INT": int,
    "BIGINT": int,
    "FLOAT": float,
    "DOUBLE": float,
    "BINARY": bytes,
    "DATE": dt.date,
    "TIMESTAMP": dt.datetime,
    "TIMESTAMP_NTZ": dt.datetime,
    "VOID": _NULL,
}
_TOO_MUCH = "the batch holds more than 2 GB of text in this column; append fewer rows"
_FAILURES = (pa.ArrowException, OverflowError, ValueError, TypeError)


class Builder(Protocol):
    """Makes a column of one type out of a list of Python values."""

    def build(self, values: list[Any]) -> pa.Array:
        """The column; raises Misfit for the first value that does not fit."""


def builder(kind: DataType, dialect: str) -> Builder:
    inner = "json" if dialect == "text" else dialect
    nested: Builder
    match kind:
        case Struct():
            nested = _Structs(kind, inner)
        case Array():
            nested = _Lists(kind, inner)
        case Map():
            nested = _Maps(kind, inner)
        case _:
            return _Leaves(kind, dialect)
    return _Documents(nested) if dialect == "text" else nested


def as_mapping(value: Any) -> dict[str, Any] | None:
    """A dict as it is; a copy of another mapping, which might grow when asked; the fields of a dataclass."""
    if type(value) is dict:
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


class Plan:
    """How rows become the columns of one schema; made once per schema."""

    def __init__(self, columns: tuple[Column, ...], dialect: str) -> None:
        self.names = tuple(column.name for column in columns)
        self._known = frozenset(self.names)
        self.builders = tuple((column.name, builder(column.type, dialect)) for column in columns)

    def unknown(self, rows: Sequence[Mapping[str, Any]]) -> Misfit | None:
        """The first name in the rows that is no column, as a misfit whose path is that name."""
        if self._known.issuperset(chain.from_iterable(rows)):
            return None
        for number, row in enumerate(rows):
            for name in row:
                if name not in self._known:
                    return Misfit(number, str(name), "is not a column of the topic")
        return None

    def build(self, rows: Sequence[Mapping[str, Any]]) -> list[pa.Array]:
        """The columns; raises Misfit whose path starts with the column's name. Unknown names are not seen."""
        arrays = []
        for name, column in self.builders:
            try:
                values = [row[name] for row in rows]
            except KeyError:
                values = [row.get(name) for row in rows]
            try:
                arrays.append(column.build(values))
            except Misfit as miss:
                raise miss.within(miss.row, name) from None
        return arrays


class _Leaves:
    def __init__(self, kind: DataType, dialect: str) -> None:
        self._kind = kind
        self._arrow = kind.arrow
        self._coerce = coercer(kind, dialect)
        self._fast = frozenset({_NULL} if _always_coerced(kind, dialect) else {_NULL, _expected(kind)})
        self._after = _after(kind, json=dialect == "json")

    def build(self, values: list[Any]) -> pa.Array:
        if self._fast.issuperset(map(type, values)):
            try:
                array = pa.array(values, self._arrow)
                if self._after is not None:
                    array = self._after(array, values)
                if isinstance(array, pa.Array):
                    return array
            except (*_FAILURES, Misfit):
                pass
        return self._one_by_one(values)

    def _one_by_one(self, values: list[Any]) -> pa.Array:
        coerce, fitted = self._coerce, []
        for number, value in enumerate(values):
            try:
                fitted.append(None if value is None else coerce(value))
            except Refusal as refusal:
                raise Misfit(number, "", str(refusal)) from None
        array = pa.array(fitted, self._arrow)
        if isinstance(array, pa.ChunkedArray):
            raise Misfit(len(array.chunk(0)), "", _TOO_MUCH)
        return padded(array, self._kind)


def _expected(kind: DataType) -> type:
    match kind:
        case Atom(name):
            return _EXPECTED[name]
        case Decimal():
            return PyDecimal
        case Time():
            return dt.time
        case Interval():
            return dt.timedelta
        case _:
            return str


def _always_coerced(kind: DataType, dialect: str) -> bool:
    return dialect == "text" and not isinstance(kind, Text)


def _after(kind: DataType, *, json: bool) -> Callable[[pa.Array, list[Any]], pa.Array | None] | None:
    """What is still to do when Arrow took the values; None as its result asks for the slow way."""

    def lengths(array: pa.Array, values: list[Any]) -> pa.Array | None:
        check_leaf(array, kind)
        return padded(array, kind)

    def finite(array: pa.Array, values: list[Any]) -> pa.Array | None:
        return None if pc.any(pc.is_inf(array)).as_py() else array

    def zones(array: pa.Array, values: list[Any]) -> pa.Array | None:
        zoned = {value is not None and value.tzinfo is not None for value in values}
        return None if True in zoned else array

    def zones_ranged(array: pa.Array, values: list[Any]) -> pa.Array | None:
        if zones(array, values) is None:
            check_leaf(array, kind)
        return array

    def grained(array: pa.Array, values: list[Any]) -> pa.Array | None:
        check_leaf(array, kind)
        return array

    def grained_zones(array: pa.Array, values: list[Any]) -> pa.Array | None:
        check_leaf(array, kind)
        return zones(array, values)

    match kind:
        case Text(_, int()):
            return lengths
        case Atom("FLOAT"):
            return finite
        case Atom("DOUBLE") if json:
            return finite
        case Atom("TIMESTAMP"):
            return zones_ranged
        case Atom("TIMESTAMP_NTZ"):
            return zones
        case Time():
            return grained_zones
        case Interval() if kind.grain > 1:
            return grained
        case _:
            return None


def _mask(values: list[Any]) -> pa.Array | None:
    nulls = [value is None for value in values]
    return pa.array(nulls) if True in nulls else None


def _of_item(miss: Misfit, offsets: np.ndarray, step: Callable[[int, int], str]) -> Misfit:
    row = int(np.searchsorted(offsets, miss.row, side="right")) - 1
    return miss.within(row, step(row, miss.row - int(offsets[row])))


class _Lists:
    _FAST = frozenset({list, tuple, _NULL})

    def __init__(self, kind: Array, dialect: str) -> None:
        self._kind = kind
        self._arrow = kind.arrow
        self._element = builder(kind.element, dialect)

    def build(self, values: list[Any]) -> pa.Array:
        if not self._FAST.issuperset(map(type, values)):
            values = [self._listed(number, value) for number, value in enumerate(values)]
        offsets = offsets_of([0 if value is None else len(value) for value in values])
        try:
            items = self._element.build(list(chain.from_iterable(filter(None, values))))
        except Misfit as miss:
            raise _of_item(miss, offsets, lambda row, number: f"[{number}]") from None
        return pa.ListArray.from_arrays(pa.array(offsets), items, type=self._arrow, mask=_mask(values))

    def _listed(self, number: int, value: Any) -> Sequence[Any] | None:
        if value is None or isinstance(value, list | tuple):
            return value
        if isinstance(value, np.ndarray) and value.ndim == 1:
            return list(value)
        raise Misfit(number, "", f"{said(value)} is not an ARRAY; give a list")


class _Maps:
    def __init__(self, kind: Map, dialect: str) -> None:
        self._kind = kind
        self._arrow = kind.arrow
        self._keys = builder(kind.key, "text" if dialect == "json" else dialect)
        self._values = builder(kind.value, dialect)

    def build(self, values: list[Any]) -> pa.Array:
        pairs = [self._paired(number, value) for number, value in enumerate(values)]
        offsets = offsets_of([0 if pair is None else len(pair) for pair in pairs])
        flat: list[Any] = list(chain.from_iterable(filter(None, pairs)))
        keys = [key for key, _ in flat]
        try:
            if None in keys:
                raise Misfit(keys.index(None), "", "is NULL, and the keys of a MAP never are")
            new_keys = self._keys.build(keys)
        except Misfit as miss:
            raise _of_item(miss, offsets, lambda row, number: f".key({number})") from None
        try:
            new_values = self._values.build([value for _, value in flat])
        except Misfit as miss:
            place = miss.row
            raise _of_item(miss, offsets, lambda row, number: f"[{keys[place]!r}]") from None
        array = pa.MapArray.from_arrays(
            pa.array(offsets), new_keys, new_values, type=self._arrow, mask=_mask(values)
        )
        check_unique_keys(array)
        return array

    def _paired(self, number: int, value: Any) -> Sequence[Any] | None:
        if value is None:
            return None
        if isinstance(value, Mapping):
            return list(value.items())
        if isinstance(value, list | tuple) and all(
            isinstance(pair, tuple | list) and len(pair) == 2 for pair in value
        ):
            return value
        raise Misfit(number, "", f"{said(value)} is not a MAP; give a dict or a list of pairs")


class _Structs:
    _FAST = frozenset({dict, _NULL})

    def __init__(self, kind: Struct, dialect: str) -> None:
        self._kind = kind
        self._names = frozenset(field.name for field in kind.fields)
        self._arrow_fields = [field.arrow for field in kind.fields]
        self._children = tuple((field, builder(field.type, dialect)) for field in kind.fields)

    def build(self, values: list[Any]) -> pa.Array:
        if not self._FAST.issuperset(map(type, values)):
            values = [self._named(number, value) for number, value in enumerate(values)]
        if not self._names.issuperset(chain.from_iterable(filter(None, values))):
            raise self._unknown(values)
        arrays = []
        for field, child in self._children:
            name = field.name
            inner = [None if value is None else value.get(name) for value in values]
            if not field.nullable:
                for number, value in enumerate(inner):
                    if value is None and values[number] is not None:
                        raise Misfit(number, f".{name}", "is NULL, and the field is NOT NULL")
            try:
                array = child.build(inner)
            except Misfit as miss:
                raise miss.within(miss.row, f".{name}") from None
            arrays.append(array if field.nullable else without_nulls(array, field.type))
        return pa.StructArray.from_arrays(arrays, fields=self._arrow_fields, mask=_mask(values))

    def _named(self, number: int, value: Any) -> Mapping[str, Any] | None:
        found = None if value is None else as_mapping(value)
        if value is not None and found is None:
            raise Misfit(number, "", f"{said(value)} is not a STRUCT; give a dict or a dataclass")
        return found

    def _unknown(self, values: Iterable[Mapping[str, Any] | None]) -> Misfit:
        for number, value in enumerate(values):
            for name in value or ():
                if name not in self._names:
                    return Misfit(number, f".{name}", "is not a field of the STRUCT")
        raise AssertionError("a name was unknown and is not any more")


class _Documents:
    """Nested values in a text cell, as JSON."""

    def __init__(self, nested: Builder) -> None:
        self._nested = nested

    def build(self, values: list[Any]) -> pa.Array:
        return self._nested.build([self._read(number, value) for number, value in enumerate(values)])

    def _read(self, number: int, value: Any) -> Any:
        if value is None:
            return None
        try:
            return json.loads(value, parse_float=PyDecimal, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise Misfit(number, "", f"{said(value)} is not JSON: {error}") from None


def refuse_constant(word: str) -> None:
    """For `parse_constant`: NaN and Infinity are words of JavaScript, not of JSON."""
    raise ValueError(f"{word} is not a number of JSON")
