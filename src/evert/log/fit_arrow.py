"""Arrow data brought to the types of a schema, and checked against them, a column at a time.

`recast` changes the form (large_string to string, int32 to int64, another unit of time) and refuses every
value that would not survive it; `check` finds what the form alone does not tell: a NULL where none may be, a
text that is too long, a day outside of the years 1 to 9999, a key twice in a map. Both raise `Misfit`.

    Misfit(row=4, path="[2].sku", reason="is NULL, and the field is NOT NULL")

Nothing is converted with loss, but for one case: a DOUBLE given to a FLOAT column becomes the nearest FLOAT.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.log.types import Array, Atom, Column, DataType, Decimal, Interval, Map, Struct, Text, Time

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_MICROS = 86_400_000_000
FIRST_MICRO, LAST_MICRO = FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1
MAX_ITEMS = 2**31 - 1


class Misfit(Exception):  # noqa: N818
    """A value that does not fit: which row, where inside its column (`path`, else empty), and why."""

    def __init__(self, row: int, path: str, reason: str) -> None:
        super().__init__(row, path, reason)
        self.row = row
        self.path = path
        self.reason = reason

    def within(self, row: int, step: str) -> Misfit:
        """The same misfit as seen from the value around it."""
        return Misfit(row, step + self.path, self.reason)


def recast(array: pa.Array, kind: DataType) -> pa.Array:
    """The array in the Arrow type of `kind`; the same array where it has that type already."""
    if array.type == kind.arrow and not has_char(kind):
        return array
    array = _plain(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), kind.arrow)
    match kind:
        case Struct(fields):
            return _recast_struct(array, fields, kind)
        case Array(element):
            return _recast_list(array, element, kind)
        case Map():
            return _recast_map(array, kind)
        case _:
            return _recast_leaf(array, kind)


def check(array: pa.Array, kind: DataType) -> None:
    """Finds values that the Arrow type allows and the column does not; the array has the type of `kind`."""
    match kind:
        case Struct(fields):
            for field, child in zip(fields, array.flatten(), strict=True):
                if not field.nullable and child.null_count > array.null_count:
                    lost = pc.and_(array.is_valid(), child.is_null())
                    raise Misfit(first_true(lost), f".{field.name}", "is NULL, and the field is NOT NULL")
                if needs_check(field.type):
                    try:
                        check(child, field.type)
                    except Misfit as miss:
                        raise miss.within(miss.row, f".{field.name}") from None
        case Array(element):
            if needs_check(element):
                _check_items(array, array.flatten(), element, lambda number: f"[{number}]")
        case Map(key, value):
            _check_map(array, key, value)
        case _:
            check_leaf(array, kind)


def check_leaf(array: pa.Array, kind: DataType) -> None:
    match kind:
        case Text(_, int() as length):
            lengths = pc.utf8_length(array)
            if (pc.max(lengths).as_py() or 0) > length:
                row = first_true(pc.greater(lengths, length))
                raise Misfit(row, "", f"has {lengths[row]} characters, and the column takes {length}")
        case Atom("DATE"):
            _check_range(array, pa.int32(), FIRST_DAY, LAST_DAY)
        case Atom("TIMESTAMP" | "TIMESTAMP_NTZ"):
            _check_range(array, pa.int64(), FIRST_MICRO, LAST_MICRO)
        case Time() | Interval() if kind.grain > 1:
            numbers = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            off = numbers % kind.grain != 0
            if off.any():
                raise Misfit(int(off.argmax()), "", f"is finer than {kind.ddl()} can hold")


def needs_check(kind: DataType) -> bool:
    """Whether `check` could find anything."""
    match kind:
        case Struct(fields):
            return any(not field.nullable or needs_check(field.type) for field in fields)
        case Array(element):
            return needs_check(element)
        case Map():
            return True
        case Text(_, length):
            return length is not None
        case Time() | Interval():
            return kind.grain > 1
        case Atom(name):
            return name in ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
        case _:
            return False


def has_char(kind: DataType) -> bool:
    """Whether values must be padded with blanks somewhere inside."""
    match kind:
        case Struct(fields):
            return any(has_char(field.type) for field in fields)
        case Array(element):
            return has_char(element)
        case Map(key, value):
            return has_char(key) or has_char(value)
        case _:
            return isinstance(kind, Text) and kind.kind == "CHAR"


def first_true(mask: Any) -> int:
    """The place of the first true value; NULL counts as false."""
    return int(pc.index(mask, pa.scalar(True)).as_py())


def offsets_of(lengths: Any) -> np.ndarray:
    """The int32 offsets of lists of these lengths."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if len(ends) and ends[-1] > MAX_ITEMS:
        raise Misfit(
            int(np.searchsorted(ends, MAX_ITEMS)), "", "the batch holds too many items; append fewer rows"
        )
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    return offsets


def check_unique_keys(array: pa.Array) -> None:
    """No map of the array holds a key twice; keys that are STRUCT or ARRAY are not looked at."""
    keys = _entries(array)[0]
    if len(keys) < 2 or pa.types.is_nested(keys.type):
        return
    owners = pc.list_parent_indices(_as_list(array)).to_numpy()
    codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    pairs = owners.astype(np.int64) * (int(codes.max()) + 1) + codes
    _, firsts = np.unique(pairs, return_index=True)
    if len(firsts) < len(pairs):
        again = np.setdiff1d(np.arange(len(pairs)), firsts)[0]
        raise Misfit(int(owners[again]), f"[{keys[int(again)].as_py()!r}]", "is a key that the map has twice")


def _plain(array: pa.Array) -> pa.Array:
    while True:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            return array


def _nulls(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _recast_struct(array: pa.Array, fields: tuple[Column, ...], kind: Struct) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise Misfit(0, "", _wrong(array, kind))
    names = [field.name for field in array.type]
    children = dict(zip(names, array.flatten(), strict=True))
    known = {field.name for field in fields}
    for name in names:
        if name not in known:
            raise Misfit(0, f".{name}", f"is not a field of {kind.ddl()}")
    built = []
    for field in fields:
        if field.name not in children:
            built.append(pa.nulls(len(array), field.type.arrow))
            continue
        try:
            built.append(recast(children[field.name], field.type))
        except Misfit as miss:
            raise miss.within(miss.row, f".{field.name}") from None
    arrow_fields = [field.arrow for field in fields]
    return pa.StructArray.from_arrays(built, fields=arrow_fields, mask=_nulls(array))


def _is_list(kind: pa.DataType) -> bool:
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(kind) for test in tests)


def _recast_list(array: pa.Array, element: DataType, kind: Array) -> pa.Array:
    if not _is_list(array.type):
        raise Misfit(0, "", _wrong(array, kind))
    offsets = offsets_of(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False))
    try:
        items = recast(array.flatten(), element)
    except Misfit as miss:
        raise _of_item(miss, offsets, lambda number: f"[{number}]") from None
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind.arrow, mask=_nulls(array))


def _as_list(array: pa.Array) -> pa.Array:
    entry = pa.struct([array.type.key_field, array.type.item_field])
    return array.cast(pa.list_(pa.field("entries", entry, nullable=False)))


def _entries(array: pa.Array) -> tuple[pa.Array, pa.Array]:
    keys, values = _as_list(array).flatten().flatten()
    return keys, values


def _recast_map(array: pa.Array, kind: Map) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise Misfit(0, "", _wrong(array, kind))
    keys, values = _entries(array)
    offsets = offsets_of(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False))
    try:
        new_keys = recast(keys, kind.key)
    except Misfit as miss:
        raise _of_item(miss, offsets, lambda number: f".key({number})") from None
    try:
        new_values = recast(values, kind.value)
    except Misfit as miss:
        raise _of_item(miss, offsets, lambda number: f".value({number})") from None
    return pa.MapArray.from_arrays(
        pa.array(offsets), new_keys, new_values, type=kind.arrow, mask=_nulls(array)
    )


def _of_item(miss: Misfit, offsets: np.ndarray, step: Callable[[int], str]) -> Misfit:
    row = int(np.searchsorted(offsets, miss.row, side="right")) - 1
    return miss.within(row, step(miss.row - int(offsets[row])))


def _check_items(array: pa.Array, items: pa.Array, kind: DataType, step: Callable[[int], str]) -> None:
    try:
        check(items, kind)
    except Misfit as miss:
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        raise _of_item(miss, offsets_of(lengths), step) from None


def _check_map(array: pa.Array, key: DataType, value: DataType) -> None:
    keys, values = _entries(array)
    if keys.null_count:
        owners = pc.list_parent_indices(_as_list(array))
        raise Misfit(owners[first_true(keys.is_null())].as_py(), "", "has a key that is NULL")
    if needs_check(key):
        _check_items(array, keys, key, lambda number: f".key({number})")
    if needs_check(value):
        _check_items(array, values, value, lambda number: f".value({number})")
    check_unique_keys(array)


def _check_range(array: pa.Array, number: pa.DataType, low: int, high: int) -> None:
    numbers = array.view(number)
    ends = pc.min_max(numbers)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is not None and (least < low or most > high):
        outside = pc.or_(pc.less(numbers, low), pc.greater(numbers, high))
        raise Misfit(first_true(outside), "", "lies outside of the years 1 to 9999")


def _wrong(array: pa.Array, kind: DataType) -> str:
    return f"is Arrow {array.type}, and the column is {kind.ddl()}"


def _recast_leaf(array: pa.Array, kind: DataType) -> pa.Array:
    source = array.type
    if not _may_cast(source, kind):
        if array.null_count == len(array):
            return pa.nulls(len(array), kind.arrow)
        raise Misfit(first_true(array.is_valid()), "", _wrong(array, kind))
    if isinstance(kind, Decimal) and pa.types.is_integer(source):
        array = array.cast(pa.decimal128(20, 0))
    if source != kind.arrow:
        before, array = array, _cast(array, kind)
        if kind == Atom("FLOAT") and not pa.types.is_float16(source):
            grown = pc.and_(pc.is_inf(array), pc.is_finite(before))
            if pc.any(grown).as_py():
                raise Misfit(first_true(grown), "", "is too large for FLOAT")
    return padded(array, kind)


def padded(array: pa.Array, kind: DataType) -> pa.Array:
    """CHAR(n) filled up with blanks; any other type as it is."""
    if isinstance(kind, Text) and kind.kind == "CHAR":
        return pc.utf8_rpad(array, kind.length, " ")
    return array


def _cast(array: pa.Array, kind: DataType) -> pa.Array:
    try:
        return pc.cast(array, kind.arrow, safe=True)
    except pa.ArrowException as error:
        row = first_bad(array, lambda part: pc.cast(part, kind.arrow, safe=True))
        value = array[row]
        raise Misfit(row, "", f"holds {value}, which {kind.ddl()} cannot hold exactly") from error


def first_bad(array: pa.Array, attempt: Callable[[pa.Array], Any]) -> int:
    """The row that makes the attempt fail on the whole array, found by halving."""
    low, high = 0, len(array)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt(array.take(pa.array(np.arange(low, middle))))
        except pa.ArrowException:
            high = middle
        else:
            low = middle
    return low


def _may_cast(source: pa.DataType, kind: DataType) -> bool:
    types = pa.types
    match kind:
        case Atom("BOOLEAN"):
            return bool(types.is_boolean(source))
        case Atom("TINYINT" | "SMALLINT" | "INT" | "BIGINT"):
            return bool(types.is_integer(source))
        case Atom("FLOAT" | "DOUBLE"):
            return bool(types.is_floating(source) or types.is_integer(source))
        case Decimal():
            return bool(types.is_decimal(source) or types.is_integer(source))
        case Text():
            return bool(
                types.is_string(source) or types.is_large_string(source) or types.is_string_view(source)
            )
        case Atom("BINARY"):
            tests = (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
            return any(test(source) for test in tests)
        case Atom("DATE"):
            return bool(types.is_date(source))
        case Atom("TIMESTAMP"):
            return bool(types.is_timestamp(source))
        case Atom("TIMESTAMP_NTZ"):
            return bool(types.is_timestamp(source)) and source.tz is None
        case Time():
            return bool(types.is_time(source))
        case Interval():
            return bool(types.is_duration(source))
        case _:
            return False
