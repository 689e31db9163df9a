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

from evert.schema.types import Array, Atom, Column, DataType, Decimal, Interval, Map, Struct, Text, Time

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
DAY_MICROS = 86_400_000_000
FIRST_MICRO, LAST_MICRO = FIRST_DAY * DAY_MICROS, (LAST_DAY + 1) * DAY_MICROS - 1
MAX_ITEMS = 2**31 - 1


class Misfit(Exception):
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
    if array.type == kind.arrow and not _must_rebuild(kind):
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
                if needs_check(field.type):
                    try:
                        check(child, field.type)
                    except Misfit as miss:
                        raise miss.within(miss.row, f".{field.name}") from None
        case Array(element):
            if needs_check(element):
                _check_items(list_lengths(array), array.flatten(), element, lambda number: f"[{number}]")
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
            return any(needs_check(field.type) for field in fields)
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


def _must_rebuild(kind: DataType) -> bool:
    """Whether an array of the right type may still need work: CHAR, or NOT NULL fields of a STRUCT."""
    match kind:
        case Struct(fields):
            return any(not field.nullable or _must_rebuild(field.type) for field in fields)
        case Array(element):
            return _must_rebuild(element)
        case Map(key, value):
            return _must_rebuild(key) or _must_rebuild(value)
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
    lengths, keys, _ = map_parts(array)
    if len(keys) < 2 or pa.types.is_nested(keys.type):
        return
    owners = np.repeat(np.arange(len(lengths)), lengths)
    codes = keys.dictionary_encode().indices.to_numpy().astype(np.int64)
    pairs = owners * (int(codes.max()) + 1) + codes
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
        child = children.get(field.name)
        if child is None:
            child = pa.nulls(len(array), field.type.arrow)
        else:
            try:
                child = recast(child, field.type)
            except Misfit as miss:
                raise miss.within(miss.row, f".{field.name}") from None
        if not field.nullable and child.null_count > array.null_count:
            lost = pc.and_(array.is_valid(), child.is_null())
            raise Misfit(first_true(lost), f".{field.name}", "is NULL, and the field is NOT NULL")
        built.append(child if field.nullable else without_nulls(child, field.type))
    arrow_fields = [field.arrow for field in fields]
    return pa.StructArray.from_arrays(built, fields=arrow_fields, mask=_nulls(array))


def without_nulls(array: pa.Array, kind: DataType) -> pa.Array:
    """Fillers for NULL in a NOT NULL field whose STRUCT is NULL, since Parquet takes no NULL there."""
    if not array.null_count:
        return array
    match kind:
        case Struct(fields):
            children = [array.field(place) for place in range(len(fields))]
            return pa.StructArray.from_arrays(children, fields=[field.arrow for field in fields])
        case Array():
            offsets = offsets_of(list_lengths(array))
            return pa.ListArray.from_arrays(pa.array(offsets), array.flatten(), type=kind.arrow)
        case Map():
            lengths, keys, values = map_parts(array)
            return pa.MapArray.from_arrays(pa.array(offsets_of(lengths)), keys, values, type=kind.arrow)
        case Atom("VOID"):
            return array
        case _:
            filler = "" if isinstance(kind, Text) else b"" if kind == Atom("BINARY") else 0
            if kind == Atom("BOOLEAN"):
                filler = False
            return pc.fill_null(array, pa.scalar(filler, kind.arrow))


def _is_list(kind: pa.DataType) -> bool:
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(kind) for test in tests)


def list_lengths(array: pa.Array) -> np.ndarray:
    """The number of elements of each list; a list that is NULL has none."""
    return np.asarray(pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False))


def _recast_list(array: pa.Array, element: DataType, kind: Array) -> pa.Array:
    if not _is_list(array.type):
        raise Misfit(0, "", _wrong(array, kind))
    offsets = offsets_of(list_lengths(array))
    try:
        items = recast(array.flatten(), element)
    except Misfit as miss:
        raise _of_item(miss, offsets, lambda number: f"[{number}]") from None
    return pa.ListArray.from_arrays(pa.array(offsets), items, type=kind.arrow, mask=_nulls(array))


def map_parts(array: pa.Array) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """The number of entries of each map, and all their keys and values; a map that is NULL has none."""
    offsets = array.offsets.to_numpy()
    lengths = np.diff(offsets)
    entries = array.values
    if array.null_count:
        present = array.is_valid().to_numpy(zero_copy_only=False)
        if lengths[~present].any():
            entries = entries.take(pa.array(np.flatnonzero(np.repeat(present, lengths)) + offsets[0]))
            offsets = np.array([0, len(entries)])
            lengths = np.where(present, lengths, 0)
    keys, values = entries.slice(offsets[0], offsets[-1] - offsets[0]).flatten()
    return lengths, keys, values


def _recast_map(array: pa.Array, kind: Map) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise Misfit(0, "", _wrong(array, kind))
    lengths, keys, values = map_parts(array)
    offsets = offsets_of(lengths)
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


def _check_items(lengths: np.ndarray, items: pa.Array, kind: DataType, step: Callable[[int], str]) -> None:
    try:
        check(items, kind)
    except Misfit as miss:
        raise _of_item(miss, offsets_of(lengths), step) from None


def _check_map(array: pa.Array, key: DataType, value: DataType) -> None:
    lengths, keys, values = map_parts(array)
    if keys.null_count:
        miss = Misfit(first_true(keys.is_null()), "", "is NULL, and the keys of a MAP never are")
        raise _of_item(miss, offsets_of(lengths), lambda number: f".key({number})")
    if needs_check(key):
        _check_items(lengths, keys, key, lambda number: f".key({number})")
    if needs_check(value):
        _check_items(lengths, values, value, lambda number: f".value({number})")
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
