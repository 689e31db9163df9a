"""For which arguments workers evaluate a function themselves, and the type of what it gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from evert.delta.functions import plain_regex, time_format
from evert.delta.inline import Constant, Expression

Kind: TypeAlias = pa.DataType | None
"""The type of an argument; None is one that can be passed on, and nothing else."""

_TESTS = {
    "And",
    "EqualNullSafe",
    "EqualTo",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "Or",
}
_ARITHMETIC = {"Remainder", "UnaryMinus"}
_UTC = {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}
_MOST_DIGITS = 38
_KEPT_DIGITS = 6
"""So many digits behind the point Spark never gives up for those before it."""
_WIDEST = 76
"""The digits that workers compute with."""
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""How many digits integers of so many bits have."""


def result(
    name: str, node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind], cast: Kind
) -> pa.DataType | None:
    """The type of what a function gives for arguments of these types; None if Spark must evaluate it.

    `node` is the function as Catalyst writes it, and `cast` the type that a cast makes of its argument.
    """
    if name in ("IsNull", "IsNotNull"):
        return pa.bool_()
    first = kinds[0]
    if first is None or any(kind is None for kind in kinds):
        return None
    if name == "Cast":
        return _cast(first, cast)
    if name in _SPECIAL:
        return _SPECIAL[name](node, values, kinds)
    if len(set(kinds)) > 1 or pa.types.is_nested(first) or pa.types.is_floating(first):
        return None
    if name in _ARITHMETIC and not (
        pa.types.is_integer(first) or (name == "UnaryMinus" and pa.types.is_decimal(first))
    ):
        return None
    return pa.bool_() if name in _TESTS else first


def _cast(given: pa.DataType, wanted: Kind) -> pa.DataType | None:
    """Between whole numbers, and from them to floating point, and to decimals with as many digits behind the point:
    what does not fit is an error here."""
    types = pa.types
    if types.is_decimal(given) and wanted is not None and types.is_decimal(wanted):
        return wanted if wanted.scale >= given.scale else None
    whole = types.is_integer(given) or (types.is_decimal(given) and given.scale == 0)
    if wanted is None or not whole:
        return None
    if types.is_decimal(wanted):
        fits = types.is_integer(given) and wanted.precision - wanted.scale >= _DIGITS[given.bit_width]
        return wanted if fits else None
    return wanted if types.is_integer(wanted) or types.is_float64(wanted) else None


def _chosen(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    """The one type of the arguments among which a function chooses."""
    name = node["class"].rpartition(".")[2]
    if name == "If":
        kinds = kinds[1:]
    elif name == "CaseWhen":
        kinds = [*kinds[1::2], *(kinds[-1:] if len(kinds) % 2 else [])]
    return None if len(set(kinds)) > 1 or pa.types.is_nested(kinds[0]) else kinds[0]


def _multiply(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Any]) -> Kind:
    one, two = kinds
    if pa.types.is_decimal(one) and pa.types.is_decimal(two):
        return _decimal(one.precision + two.precision + 1, one.scale + two.scale)
    return _whole(one, two)


def _add(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Any]) -> Kind:
    one, two = kinds
    if pa.types.is_decimal(one) and pa.types.is_decimal(two):
        scale = max(one.scale, two.scale)
        return _decimal(max(one.precision - one.scale, two.precision - two.scale) + scale + 1, scale)
    return _whole(one, two)


def _whole(one: Any, two: Any) -> Kind:
    return one if one == two and pa.types.is_integer(one) else None


def _decimal(digits: int, scale: int) -> Kind:
    """The type of a result of so many digits, if it is the same whether or not Spark may give some of them up."""
    if digits <= _MOST_DIGITS:
        return pa.decimal128(digits, scale)
    return pa.decimal128(_MOST_DIGITS, scale) if scale <= _KEPT_DIGITS and digits <= _WIDEST else None


def _average(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Any]) -> Kind:
    """The sum of decimals by their count."""
    made = re.fullmatch(r"decimal\((\d+),(\d+)\)", str(node.get("dataType")))
    total, number = kinds
    if made is None or not (pa.types.is_decimal(total) and pa.types.is_decimal(number)) or number.scale:
        return None
    wanted = pa.decimal128(int(made[1]), int(made[2]))
    digits = total.precision + wanted.scale + 2 + number.precision - total.scale
    return wanted if wanted.scale >= total.scale and digits + number.precision < _WIDEST else None


def _divide(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return kinds[0] if all(kind == pa.float64() for kind in kinds) else None


def _floor(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.int64() if kinds[0] == pa.float64() else None


def _conversion(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.int64() if node["toType"] == "long" else _moment(node["toType"])


def _moment(name: str) -> Kind:
    return {"timestamp": pa.timestamp("us", "UTC"), "timestamp_ntz": pa.timestamp("us")}.get(name)


def _later(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    steps = isinstance(values[1], Constant) and pa.types.is_duration(kinds[1])
    return kinds[0] if steps and _in_utc(node, kinds[0]) else None


def _hour(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.int32() if _in_utc(node, kinds[0]) else None


def _formatted(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    pattern = _text(values[1])
    known = pattern is not None and time_format(pattern) is not None
    return pa.string() if known and _in_utc(node, kinds[0]) else None


def _in_utc(node: Mapping[str, Any], kind: Any) -> bool:
    """Whether a time is what it is in UTC, where all days have 24 hours."""
    return pa.types.is_timestamp(kind) and (kind.tz is None or node.get("timeZoneId") in _UTC)


def _letters(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.string() if kinds[0] == pa.string() else None


def _pattern(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    """A test of a text against a constant one."""
    text = _text(values[1])
    return pa.bool_() if text is not None and "\\" not in text and set(kinds) == {pa.string()} else None


def _substring(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    first, length = (value.value if isinstance(value, Constant) else None for value in values[1:])
    plain = isinstance(first, int) and isinstance(length, int) and first >= 1 and length >= 0
    return pa.string() if plain and kinds[0] == pa.string() else None


def _part_of_date(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.int32() if kinds[0] == pa.date32() else None


def _length(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.int32() if kinds[0] == pa.string() else None


def _replaced(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    known = _text(values[1]) and _text(values[2]) is not None
    return pa.string() if known and set(kinds) == {pa.string()} else None


def _extracted(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    pattern, group = _text(values[1]), values[2]
    if pattern is None or kinds[0] != pa.string() or (named := plain_regex(pattern)) is None:
        return None
    groups = named.count("(?P<")
    known = isinstance(group, Constant) and isinstance(group.value, int) and 1 <= group.value <= groups
    return pa.string() if known else None


def _split(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    return pa.list_(pa.string()) if _text(values[1]) and kinds[0] == pa.string() else None


def _part(node: Mapping[str, Any], values: Sequence[Expression], kinds: Sequence[Kind]) -> Kind:
    """The nth part of a text, or '': what Catalyst makes of split_part."""
    number, otherwise = values[1], node.get("defaultValueOutOfBound")
    first = isinstance(number, Constant) and isinstance(number.value, int) and number.value > 0
    empty = isinstance(otherwise, list) and [one.get("value") for one in otherwise] == [""]
    return pa.string() if first and empty and kinds[0] == pa.list_(pa.string()) else None


def _text(value: Expression) -> str | None:
    return value.value if isinstance(value, Constant) and isinstance(value.value, str) else None


_SPECIAL: Mapping[str, Callable[[Mapping[str, Any], Sequence[Expression], Sequence[Any]], Kind]] = {
    "Add": _add,
    "CaseWhen": _chosen,
    "Coalesce": _chosen,
    "Contains": _pattern,
    "DateFormatClass": _formatted,
    "DayOfMonth": _part_of_date,
    "DecimalDivideWithOverflowCheck": _average,
    "Divide": _divide,
    "ElementAt": _part,
    "EndsWith": _pattern,
    "Floor": _floor,
    "Hour": _hour,
    "If": _chosen,
    "Length": _length,
    "Like": _pattern,
    "Lower": _letters,
    "Month": _part_of_date,
    "Multiply": _multiply,
    "PreciseTimestampConversion": _conversion,
    "Quarter": _part_of_date,
    "RegExpExtract": _extracted,
    "StartsWith": _pattern,
    "StringReplace": _replaced,
    "StringSplitSQL": _split,
    "Substring": _substring,
    "Subtract": _add,
    "TimestampAddInterval": _later,
    "Upper": _letters,
    "Year": _part_of_date,
}
