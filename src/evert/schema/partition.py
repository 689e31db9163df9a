"""Which partition a row belongs to: a hash of its key that is the same for ever and on every machine.

Equal keys hash equally even after a key column was widened: integers hash as 64 bits, decimals by value,
-0.0 as 0.0, every NaN as one, text by its bytes. The numbers are on disk: a change here would scatter the
rows of a key.
"""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.errors import BadSchema
from evert.schema.digest import decimals, floats, integers, texts, valid, whole
from evert.schema.schema import Schema, columns_hint
from evert.schema.types import Atom, Text, is_nested

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_NULL = np.uint64(0xD6E8FEB86659FD93)
_ENCODE_FROM = 64


def check_key(schema: Schema, key: tuple[str, ...]) -> None:
    """Raises BadSchema when these columns cannot be the key of a topic."""
    for place, name in enumerate(key):
        if name not in schema.names:
            raise BadSchema(
                f"the key names {name!r}, which is no column", hint=columns_hint(name, schema.names)
            )
        if name in key[:place]:
            raise BadSchema(f"the key names {name!r} twice", column=name)
        kind = schema.column(name).type
        if is_nested(kind) or kind == Atom("VOID"):
            raise BadSchema(
                f"column {name} cannot be part of a key: it is {kind.ddl()}",
                hint="a key is made of numbers, text, dates and times; take the fields out of the column",
                column=name,
            )
        if isinstance(kind, Text) and kind.collation is not None:
            raise BadSchema(
                f"column {name} cannot be part of a key: keys compare by bytes, and it has a collation",
                hint="use STRING without COLLATE for the key, and collate in the view",
                column=name,
            )


def assign(table: pa.Table, key: tuple[str, ...], partitions: int) -> np.ndarray:
    """The partition of each row as int32, from 0 to `partitions - 1`; all 0 without a key."""
    if partitions == 1 or not key:
        return np.zeros(table.num_rows, np.int32)
    return (hashes(table, key) % np.uint64(partitions)).astype(np.int32)


def hashes(table: pa.Table, key: tuple[str, ...]) -> np.ndarray:
    """The 64-bit hash of each row's key, as uint64; the order of the key columns counts."""
    found = np.zeros(table.num_rows, np.uint64)
    if not len(found):
        return found
    for name in key:
        array = whole(table.column(name))
        codes = _codes(array)
        present = valid(array)
        if present is not None:
            codes = np.where(present, codes, _NULL)
        found = _mixed(found + _STEP + codes)
    return found


def _mixed(number: np.ndarray) -> np.ndarray:
    number = (number ^ (number >> np.uint64(30))) * _MIX_1
    number = (number ^ (number >> np.uint64(27))) * _MIX_2
    return number ^ (number >> np.uint64(31))


def _codes(array: pa.Array) -> np.ndarray:
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.uint64)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _text_codes(array)
    if pa.types.is_floating(kind):
        return (floats(array) + 0.0).view(np.uint64)
    if pa.types.is_decimal(kind):
        low, high, scale = (part.astype(np.uint64) for part in decimals(array))
        plain = (scale == 0) & (high == (low.view(np.int64) >> 63).view(np.uint64))
        return np.where(plain, low, _mixed(low + _mixed(high + _mixed(scale + _STEP))))
    return integers(array).astype(np.uint64)


def _text_codes(array: pa.Array) -> np.ndarray:
    if len(array) < _ENCODE_FROM:
        return _each_text(array)
    encoded = array.dictionary_encode()
    places = pc.fill_null(encoded.indices, 0).to_numpy()
    return (
        _each_text(encoded.dictionary)[places] if len(encoded.dictionary) else np.zeros(len(array), np.uint64)
    )


def _each_text(array: pa.Array) -> np.ndarray:
    offsets, content = texts(array)
    ends = offsets.tolist()
    found = [crc32(content[start:end]) for start, end in pairwise(ends)]
    return np.array(found, np.uint64) | (np.diff(offsets).astype(np.uint64) << np.uint64(32))
