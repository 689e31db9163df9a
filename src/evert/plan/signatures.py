"""For which arguments workers evaluate a function themselves, and the type of what it gives."""

from __future__ import annotations

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
_ARITHMETIC = {"Add", "Multiply", "Remainder", "Subtract", "UnaryMinus"}
_UTC = {"UTC", "Etc/UTC", "Z", "GMT", "+00:00"}
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
    if name in _ARITHMETIC and not pa.types.is_integer(first):
        return None
    return pa.bool_() if name in _TESTS else first


def _cast(given: pa.DataType, wanted: Kind) -> pa.DataType | None:
    """Between whole numbers, and from them to floating point: what does not fit is an error here."""
    types = pa.types
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
        digits = one.precision + two.precision + 1
        return pa.decimal128(digits, one.scale + two.scale) if digits <= 38 else None
    return one if one == two and pa.types.is_integer(one) else None


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
    "CaseWhen": _chosen,
    "Coalesce": _chosen,
    "DateFormatClass": _formatted,
    "Divide": _divide,
    "ElementAt": _part,
    "Floor": _floor,
    "Hour": _hour,
    "If": _chosen,
    "Length": _length,
    "Lower": _letters,
    "Multiply": _multiply,
    "PreciseTimestampConversion": _conversion,
    "RegExpExtract": _extracted,
    "StringReplace": _replaced,
    "StringSplitSQL": _split,
    "TimestampAddInterval": _later,
    "Upper": _letters,
}
