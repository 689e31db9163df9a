"""Exact sums of any size: integers, decimals and floating point numbers as digits to the base 2^32.

A number is a sum of digits times 2^(32 * position). Digits are signed, from -2^31 to 2^31 - 1, so a number
has one form only, a small one has few digits whatever its sign, and zero has none. A double is a 53-bit
integer times a power of two, thus two or three digits somewhere between the positions -36 and 34. Nothing is
ever rounded while numbers come and go; a result is rounded once, when it is asked for. So a retraction leaves
no drift, and the order of the rows and the cuts between epochs cannot be seen in a result.

NaN, infinity and minus infinity are counted, at positions of their own above all finite ones.

    1.0                     [(0, 1)]
    1e16 + 1.0              [(0, 1874919425), (1, 2328306)]
    1e16 + 1.0 - 1e16       [(0, 1)]

One list of int64 holds the digits of a sum in ascending order of their positions, each packed with its position
as `position * 2^32 + digit`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.delta.operator import DataError
from evert.schema.digest import floats, integers, valid
from evert.trace.groups import Groups

DIGITS = pa.list_(pa.int64())

_BASE = 32
_HALF = np.int64(1 << 31)
_MASK = np.int64(0xFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(_BASE)
_SPECIAL = 64
_NAN, _INFINITY, _MINUS_INFINITY = 64, 72, 80
_SMALL = 1 << 28
_TEN_38 = 10**38

Terms = list[tuple[np.ndarray | int, np.ndarray]]


def sum_of(kind: pa.DataType) -> pa.DataType:
    """The type of a sum over a column of this type."""
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    if pa.types.is_integer(kind):
        return pa.decimal128(38, 0)
    if pa.types.is_duration(kind):
        return kind
    if pa.types.is_floating(kind) or pa.types.is_null(kind):
        return pa.float64()
    raise TypeError(f"there is no sum of {kind}")


def total(values: pa.Array, weights: np.ndarray, groups: Groups) -> pa.Array:
    """The sums of value times weight over groups of rows."""
    terms = _terms(values)
    if _magnitude(weights) >= _SMALL:
        terms = [term for position, digit in terms for term in _products(position, digit, weights)]
    elif (weights != 1).any():
        terms = [(position, digit * weights) for position, digit in terms]
    return _grouped(terms, groups)


def merged(sums: pa.Array, groups: Groups) -> pa.Array:
    """The sums of these sums over groups of rows."""
    at, positions, digits = _unpacked(sums)
    dense: dict[int, np.ndarray] = {}
    for position in _distinct(positions):
        chosen = np.flatnonzero(positions == position)
        dense[position] = groups.sums(digits[chosen], at[chosen])
    return _listed(dense, len(groups))


def none(count: int) -> pa.Array:
    """So many sums of nothing."""
    return pa.ListArray.from_arrays(pa.array(np.zeros(count + 1, np.int32)), pa.array([], pa.int64()))


def empty(sums: pa.Array) -> np.ndarray:
    """Which sums are zero; one that has met NaN or infinity is not."""
    found: np.ndarray = pc.list_value_length(sums).to_numpy(zero_copy_only=False) == 0
    return found


def result(sums: pa.Array, kind: pa.DataType, absent: np.ndarray) -> pa.Array:
    """The sums as values of this type, NULL where absent; DataError if one does not fit into it."""
    if pa.types.is_floating(kind):
        return pa.array(_doubles(sums), pa.float64(), mask=absent)
    low, high, beyond = _words(sums)
    if pa.types.is_duration(kind):
        if (beyond | (high != low.view(np.int64) >> np.int64(63)))[~absent].any():
            raise DataError("a sum of intervals is too large")
        return pa.array(low.view(np.int64), pa.int64(), mask=absent).view(kind)
    if (beyond | _over_38_digits(low, high))[~absent].any():
        raise DataError("a sum has more than 38 digits")
    words = np.stack([low, high.view(np.uint64)], axis=1)
    present = pa.array(~absent).buffers()[1] if absent.any() else None
    return pa.Array.from_buffers(kind, len(low), [present, pa.py_buffer(words.tobytes())])


def _terms(values: pa.Array) -> Terms:
    kind = values.type
    if pa.types.is_null(kind):
        return []
    if pa.types.is_floating(kind):
        return _float_terms(floats(values))
    if pa.types.is_decimal(kind):
        words = np.frombuffer(values.buffers()[1], np.int64, count=2 * len(values), offset=16 * values.offset)
        low, high = words[0::2], words[1::2]
        present = valid(values)
        if present is not None:
            low, high = np.where(present, low, 0), np.where(present, high, 0)
        if kind.precision <= 18:
            return [(0, low & _MASK), (1, low >> _BASE)]
        return [(0, low & _MASK), (1, (low >> _BASE) & _MASK), (2, high & _MASK), (3, high >> _BASE)]
    whole = integers(values)
    if kind.bit_width <= 32:
        return [(0, whole)]
    return [(0, whole & _MASK), (1, whole >> _BASE)]


def _float_terms(values: np.ndarray) -> Terms:
    finite = np.isfinite(values)
    terms: Terms = []
    if not finite.all():
        terms.append((_NAN, np.isnan(values).astype(np.int64)))
        terms.append((_INFINITY, (values == np.inf).astype(np.int64)))
        terms.append((_MINUS_INFINITY, (values == -np.inf).astype(np.int64)))
        values = np.where(finite, values, 0.0)
    fraction, exponent = np.frexp(values)
    mantissa = np.ldexp(fraction, 53).astype(np.int64)
    sign = np.sign(mantissa)
    size = np.abs(mantissa).view(np.uint64)
    exponent = exponent.astype(np.int64) - 53
    position = exponent >> 5
    shift = (exponent & 31).astype(np.uint64)
    upper = size >> (_SHIFT - shift)
    for place, digit in enumerate(((size << shift) & _LOW, upper & _LOW, upper >> _SHIFT)):
        terms.append((position + place, digit.view(np.int64) * sign))
    return terms


def _magnitude(weights: np.ndarray) -> int:
    """An upper bound of the sum of the weights' sizes."""
    if not len(weights):
        return 0
    return max(int(weights.max()), -int(weights.min())) * len(weights)


def _products(position: np.ndarray | int, digit: np.ndarray, weights: np.ndarray) -> Terms:
    """A digit times a weight of up to 64 bits, as digits that leave room for adding many of them up."""
    sign = np.sign(digit) * np.sign(weights)
    size = np.abs(digit).view(np.uint64)
    heavy = np.abs(weights).view(np.uint64)
    terms: Terms = []
    for place, part in enumerate((heavy & _LOW, heavy >> _SHIFT)):
        product = size * part
        terms.append((position + place, (product & _LOW).view(np.int64) * sign))
        terms.append((position + place + 1, (product >> _SHIFT).view(np.int64) * sign))
    return terms


def _grouped(terms: Terms, groups: Groups) -> pa.Array:
    dense: dict[int, np.ndarray] = {}
    for positions, digits in terms:
        if isinstance(positions, int):
            _add(dense, positions, groups.sums(digits))
            continue
        found = _distinct(positions)
        for position in found:
            rows = None if len(found) == 1 else np.flatnonzero(positions == position)
            _add(dense, position, groups.sums(digits if rows is None else digits[rows], rows))
    return _listed(dense, len(groups))


def _listed(dense: dict[int, np.ndarray], count: int) -> pa.Array:
    """The digits of so many sums, which may be too large for their positions, as lists."""
    carried = _carried(dense)
    if not carried:
        return none(count)
    matrix = np.stack([digit for _, digit in carried], axis=1)
    used = matrix != 0
    matrix += np.array([position for position, _ in carried], np.int64) << _BASE
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(used.sum(axis=1), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(matrix[used]))


def _add(dense: dict[int, np.ndarray], position: int, digits: np.ndarray) -> None:
    dense[position] = dense[position] + digits if position in dense else digits


def _carried(dense: dict[int, np.ndarray]) -> list[tuple[int, np.ndarray]]:
    """Brings every digit into its range, from the lowest position up."""
    found = []
    while dense:
        position = min(dense)
        digit = dense.pop(position)
        carry = (digit + _HALF) >> _BASE
        if carry.any():
            digit = digit - (carry << _BASE)
            _add(dense, position + 1, carry)
        if digit.any():
            found.append((position, digit))
    return found


def _distinct(positions: np.ndarray) -> list[int]:
    if not len(positions):
        return []
    least = int(positions.min())
    return [int(place) + least for place in np.flatnonzero(np.bincount(positions - least))]


def _unpacked(sums: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For every digit: the row of its sum, its position and the digit."""
    lengths = pc.list_value_length(sums).to_numpy(zero_copy_only=False)
    packed = sums.flatten().to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    positions = (packed + _HALF) >> _BASE
    return np.repeat(np.arange(len(sums)), lengths), positions, packed - (positions << _BASE)


def _words(sums: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers as 128 bits: the low word, the high word, and which numbers do not fit."""
    at, positions, digits = _unpacked(sums)
    carry = np.zeros(len(sums), np.int64)
    parts = []
    for position in range(max(3, int(positions.max(initial=0))) + 1):
        chosen = positions == position
        carry[at[chosen]] += digits[chosen]
        parts.append(carry & _MASK)
        carry = carry >> _BASE
    low = (parts[0] | (parts[1] << _BASE)).view(np.uint64)
    high = parts[2] | (parts[3] << _BASE)
    extension = high >> np.int64(63)
    beyond = carry != extension
    for part in parts[4:]:
        beyond |= part != (extension & _MASK)
    return low, high, beyond


def _over_38_digits(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    top, rest = _TEN_38 >> 64, np.uint64(_TEN_38 & (2**64 - 1))
    above = (high > top) | ((high == top) & (low >= rest))
    lowest = -_TEN_38
    top, rest = lowest >> 64, np.uint64(lowest & (2**64 - 1))
    found: np.ndarray = above | (high < top) | ((high == top) & (low <= rest))
    return found


def _doubles(sums: pa.Array) -> np.ndarray:
    """The nearest double of each sum, half to even; infinite when it is beyond their range."""
    at, positions, digits = _unpacked(sums)
    special = positions >= _SPECIAL
    if not special.any():
        return _nearest(len(sums), at, positions, digits)
    finite = ~special
    found = _nearest(len(sums), at[finite], positions[finite], digits[finite])
    counts = {}
    for first in (_NAN, _INFINITY, _MINUS_INFINITY):
        inside = (positions >= first) & (positions < first + 8)
        top = np.append((at[1:] != at[:-1]) | (positions[1:] >= first + 8), True)
        if (digits[inside & top] < 0).any():
            raise DataError("more infinities or NaN were taken out of a sum than had been put in")
        counts[first] = np.zeros(len(sums), bool)
        counts[first][at[inside]] = True
    found[counts[_INFINITY]] = np.inf
    found[counts[_MINUS_INFINITY]] = -np.inf
    found[counts[_NAN] | (counts[_INFINITY] & counts[_MINUS_INFINITY])] = np.nan
    return found


def _nearest(count: int, at: np.ndarray, positions: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """Takes the top three digits, at least 62 bits of the number, and notes what lies below in the last bit.

    The conversion of 64 bits to a double rounds correctly then. Scaling it is exact: where a double has fewer
    bits than 53, so has the sum, for it is a multiple of the least double.
    """
    ends = np.searchsorted(at, np.arange(count), side="right")
    begins = np.searchsorted(at, np.arange(count), side="left")
    some = np.flatnonzero(ends > begins)
    found = np.zeros(count)
    if not len(some):
        return found
    last, begin = ends[some] - 1, begins[some]
    top = positions[last]
    sign = np.sign(digits[last])
    first = digits[last] * sign
    second, third, tail = np.zeros((3, len(some)), np.int64)
    for step in (1, 2, 3):
        place = np.maximum(last - step, 0)
        digit = np.where(last - step >= begin, digits[place], 0) * sign
        gap = top - positions[place]
        second += np.where(gap == 1, digit, 0)
        third += np.where(gap == 2, digit, 0)
        tail = np.where((gap > 2) & (tail == 0), np.sign(digit), tail)
    third -= tail < 0
    second += third >> _BASE
    first += second >> _BASE
    high = first.view(np.uint64)
    low = ((second & _MASK) << _BASE | (third & _MASK)).view(np.uint64)
    bits = np.frexp(first.astype(np.float64))[1].astype(np.uint64)
    lost = low & ((np.uint64(1) << bits) - np.uint64(1))
    number = np.where(bits > 0, high << (np.uint64(64) - np.maximum(bits, np.uint64(1))), np.uint64(0))
    number |= (low >> bits) | ((lost != 0) | (tail != 0)).astype(np.uint64)
    with np.errstate(over="ignore"):
        found[some] = np.ldexp(number.astype(np.float64), _BASE * (top - 2) + bits.view(np.int64)) * sign
    return found
