"""The functions that workers evaluate themselves, in Arrow, by Catalyst's names for them.

Each gives what Spark gives or raises `pa.ArrowInvalid`, and then Spark is asked: for what is too large, divided by
zero, before the year 1, or text that is not ASCII where letters matter. Times are in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.trace.arrays import offsets

Value: TypeAlias = pa.Array | pa.Scalar

_NAIVE = pa.timestamp("us")
_MOST_DIGITS = 38
_YEAR_1, _YEAR_10000 = -62_135_596_800_000_000, 253_402_300_800_000_000
_FIELDS = {
    "yyyy": ("%Y", 86_400_000_000),
    "MM": ("%m", 86_400_000_000),
    "dd": ("%d", 86_400_000_000),
    "HH": ("%H", 3_600_000_000),
    "mm": ("%M", 60_000_000),
    "ss": ("%S", 1_000_000),
}
_PATTERN = re.compile(r"(([A-Za-z])\2*|[-/:., ])")


def time_format(pattern: str) -> tuple[str, int] | None:
    """A pattern of Spark as one of Arrow, and the microseconds within which the text stays the same.

    >>> time_format("yyyy-MM-dd HH:mm")
    ('%Y-%m-%d %H:%M', 60000000)
    >>> time_format("EEE") is None, time_format("MMMM") is None
    (True, True)
    """
    parts = [part for part, _ in _PATTERN.findall(pattern)]
    letters = [part for part in parts if part.isalpha()]
    if "".join(parts) != pattern or not letters or not all(part in _FIELDS for part in letters):
        return None
    fields = [_FIELDS[part] for part in letters]
    return "".join(_FIELDS.get(part, (part,))[0] for part in parts), min(unit for _, unit in fields)


def plain_regex(pattern: str) -> str | None:
    """A regular expression that means the same to Spark and to Arrow, its groups named g1, g2, ...; else None.

    >>> plain_regex("(&|^)id=([^&]*)")
    '(?P<g1>&|^)id=(?P<g2>[^&]*)'
    >>> plain_regex("a$") is None, plain_regex("[a&&b]") is None
    (True, True)
    """
    if "&&" in pattern or not re.fullmatch(
        r"(\[\^?[\w&=/:;, -]+\][*+]?|[\w&=/:;, ^|()-])*", pattern, re.ASCII
    ):
        return None
    number = iter(range(1, len(pattern) + 1))
    return re.sub(r"\(", lambda _: f"(?P<g{next(number)}>", pattern)


def _folded(function: Callable[[Value, Value], Value]) -> Callable[[list[Value], pa.DataType], Value]:
    return lambda values, kind: reduce(function, values)


def _computed(function: Callable[[Value, Value], Value]) -> Callable[[list[Value], pa.DataType], Value]:
    """Checked arithmetic; that of decimals has all the digits it takes, until the result must fit its type."""

    def work(values: list[Value], kind: pa.DataType) -> Value:
        if not pa.types.is_decimal(kind):
            return reduce(function, values)
        wide = [pc.cast(value, pa.decimal256(value.type.precision, value.type.scale)) for value in values]
        return pc.cast(function(*(values if kind.precision < _MOST_DIGITS else wide)), kind)

    return work


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


def _cast(values: list[Value], kind: pa.DataType) -> Value:
    (value,) = values
    if pa.types.is_floating(kind) and pa.types.is_decimal(value.type):
        value = pc.cast(value, pa.int64())
    return pc.cast(value, kind)


def _divide(values: list[Value], kind: pa.DataType) -> Value:
    one, two = values
    if pc.any(pc.and_(pc.is_valid(one), pc.equal(two, 0.0))).as_py():
        raise pa.ArrowInvalid("divide by zero")
    return pc.divide(one, two)


def _average(values: list[Value], kind: pa.DataType) -> Value:
    """A sum by a count, to the nearest of the digits that there are; nothing by 0, which is not asked for."""
    total, number = values
    number = pc.if_else(pc.equal(number, pa.scalar(0, number.type)), pa.scalar(None, number.type), number)
    digits = kind.scale + 2 + number.type.precision
    exact = pc.divide(
        pc.cast(total, pa.decimal256(total.type.precision + digits - total.type.scale, digits)), number
    )
    return pc.cast(pc.round(exact, kind.scale, "half_towards_infinity"), kind)


def _like(values: list[Value], kind: pa.DataType) -> Value:
    text, pattern = values
    return pc.match_like(text, pattern.as_py())


def _containing(function: Callable[[Value, str], Value]) -> Callable[[list[Value], pa.DataType], Value]:
    return lambda values, kind: function(values[0], values[1].as_py())


def _substring(values: list[Value], kind: pa.DataType) -> Value:
    text, first, length = values
    start = first.as_py() - 1
    return pc.utf8_slice_codeunits(text, start, start + length.as_py())


def _part_of_date(function: Callable[[Value], Value]) -> Callable[[list[Value], pa.DataType], Value]:
    return lambda values, kind: pc.cast(function(values[0]), kind)


def _later(values: list[Value], kind: pa.DataType) -> Value:
    at, micros = values
    return pc.cast(pc.add_checked(pc.cast(at, pa.int64()), pc.cast(micros, pa.int64())), kind)


def _formatted(values: list[Value], kind: pa.DataType) -> Value:
    at, pattern = values
    wanted = time_format(pattern.as_py())
    assert wanted is not None
    text, unit = wanted
    known = _by_unit(at, unit)
    return pa.DictionaryArray.from_arrays(known.indices, pc.strftime(known.dictionary, format=text))


def _by_unit(at: pa.Array, unit: int) -> pa.DictionaryArray:
    """The units of time in which these moments are, each once."""
    micros = at.cast(pa.int64())
    least, most = pc.min_max(micros).values()
    if least.is_valid and not (least.as_py() >= _YEAR_1 and most.as_py() < _YEAR_10000):
        raise pa.ArrowInvalid("a year that has no four digits")
    plain = micros.fill_null(0).to_numpy() // unit
    found = pa.array(plain, mask=None if not at.null_count else at.is_null().to_numpy(zero_copy_only=False))
    encoded = found.dictionary_encode()
    seconds = encoded.dictionary.to_numpy() * (unit // 1_000_000)
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(seconds, pa.timestamp("s")))


def _hour(values: list[Value], kind: pa.DataType) -> Value:
    return pc.cast(pc.hour(pc.cast(values[0], _NAIVE)), kind)


def _ascii(function: Callable[[Value], Value]) -> Callable[[list[Value], pa.DataType], Value]:
    def work(values: list[Value], kind: pa.DataType) -> Value:
        if not pc.all(pc.string_is_ascii(values[0]), min_count=0).as_py():
            raise pa.ArrowInvalid("text that is not ASCII")
        return function(values[0])

    return work


def _replaced(values: list[Value], kind: pa.DataType) -> Value:
    text, old, new = values
    return pc.replace_substring(text, old.as_py(), new.as_py())


def _extracted(values: list[Value], kind: pa.DataType) -> Value:
    """What a group of a regular expression matches; nothing is ''."""
    text, pattern, group = values
    found = pc.extract_regex(text, plain_regex(pattern.as_py()))
    return _if(
        pc.is_null(text), pa.scalar(None, kind), pc.fill_null(pc.struct_field(found, [group.as_py() - 1]), "")
    )


def _part(values: list[Value], kind: pa.DataType) -> Value:
    """The nth part of each list; '' if it has not so many."""
    parts, number = values
    places = offsets(parts).astype(np.int64)
    at = places[:-1] + number.as_py() - 1
    there = at < places[1:]
    found = parts.values.take(pa.array(at, mask=~there)).fill_null("")
    return _if(parts.is_null(), pa.scalar(None, kind), found) if parts.null_count else found


FUNCTIONS: Mapping[str, Callable[[list[Value], pa.DataType], Value]] = {
    "Add": _computed(pc.add_checked),
    "And": _folded(pc.and_kleene),
    "CaseWhen": _case,
    "Cast": _cast,
    "Coalesce": lambda values, kind: pc.coalesce(*values),
    "Contains": _containing(pc.match_substring),
    "DateFormatClass": _formatted,
    "DayOfMonth": _part_of_date(pc.day),
    "DecimalDivideWithOverflowCheck": _average,
    "Divide": _divide,
    "ElementAt": _part,
    "EndsWith": _containing(pc.ends_with),
    "EqualNullSafe": _folded(_null_safe),
    "EqualTo": _folded(pc.equal),
    "Floor": lambda values, kind: pc.cast(pc.floor(values[0]), kind),
    "GreaterThan": _folded(pc.greater),
    "GreaterThanOrEqual": _folded(pc.greater_equal),
    "Hour": _hour,
    "If": lambda values, kind: _if(*values),
    "In": _in,
    "IsNotNull": lambda values, kind: pc.is_valid(values[0]),
    "IsNull": lambda values, kind: pc.is_null(values[0]),
    "Length": lambda values, kind: pc.utf8_length(values[0]),
    "LessThan": _folded(pc.less),
    "LessThanOrEqual": _folded(pc.less_equal),
    "Like": _like,
    "Lower": _ascii(pc.ascii_lower),
    "Month": _part_of_date(pc.month),
    "Multiply": _computed(pc.multiply_checked),
    "Not": lambda values, kind: pc.invert(values[0]),
    "Or": _folded(pc.or_kleene),
    "PreciseTimestampConversion": lambda values, kind: pc.cast(values[0], kind),
    "Quarter": _part_of_date(pc.quarter),
    "RegExpExtract": _extracted,
    "Remainder": _folded(_remainder),
    "StartsWith": _containing(pc.starts_with),
    "StringReplace": _replaced,
    "StringSplitSQL": lambda values, kind: pc.split_pattern(values[0], values[1].as_py()),
    "Substring": _substring,
    "Subtract": _computed(pc.subtract_checked),
    "TimestampAddInterval": _later,
    "UnaryMinus": lambda values, kind: pc.negate_checked(values[0]),
    "Upper": _ascii(pc.ascii_upper),
    "Year": _part_of_date(pc.year),
}
"""What each function is in Arrow."""
