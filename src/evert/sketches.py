"""Sketches for which Spark has no functions in SQL: membership, and what a count-min sketch has counted.

They are functions in Python, for views that are functions themselves:

    from evert import sketches

    @db.view
    def visitors(spark):
        users = sketches.bloom_filter(expected=10_000, error=0.01)
        return spark.table("visits").groupBy("page").agg(users("user").alias("users"))

    @db.view
    def known(spark):
        visits, pages = spark.table("clicks"), spark.table("visitors")
        return visits.join(pages, "page").where(sketches.may_contain("users", "user")).select("page", "user")

Outside of Spark, `Bloom.load(view.get("/")["users"])` and `CountMin.load(…)` read what is in a view.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from evert.trace.keys import hash_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column

_BLOOM = struct.Struct("<4sIQ")
_COUNTS = struct.Struct(">iqii")
_MAGIC = b"EVB1"
_PRIME = (1 << 31) - 1


@dataclass(frozen=True)
class Bloom:
    """A set that may say yes of what is not in it, with the probability it is made for, and never no of what is."""

    hashes: int
    bits: np.ndarray

    @classmethod
    def sized(cls, expected: int, error: float) -> Bloom:
        """An empty one, for so many values and this probability of a wrong yes."""
        if expected < 1 or not 0 < error < 1:
            raise ValueError("a Bloom filter is for at least one value, and its error is between 0 and 1")
        size = math.ceil(-expected * math.log(error) / math.log(2) ** 2)
        count = max(1, round(size / expected * math.log(2)))
        return cls(count, np.zeros(-(-size // 8) * 8, np.bool_))

    @classmethod
    def load(cls, data: bytes) -> Bloom:
        magic, hashes, size = _BLOOM.unpack_from(data)
        if magic != _MAGIC or len(data) != _BLOOM.size + size // 8:
            raise ValueError("this is no Bloom filter")
        bits = np.unpackbits(np.frombuffer(data, np.uint8, offset=_BLOOM.size))
        return cls(hashes, bits.astype(np.bool_))

    def dump(self) -> bytes:
        return _BLOOM.pack(_MAGIC, self.hashes, len(self.bits)) + np.packbits(self.bits).tobytes()

    def with_values(self, values: Any) -> Bloom:
        """The filter with these values in it; NULL is none."""
        bits = self.bits.copy()
        bits[self._places(_present(values))] = True
        return Bloom(self.hashes, bits)

    def union(self, other: Bloom) -> Bloom:
        """What is in either."""
        if (self.hashes, len(self.bits)) != (other.hashes, len(other.bits)):
            raise ValueError("only Bloom filters that were made for the same size and error can be merged")
        return Bloom(self.hashes, self.bits | other.bits)

    def may_contain(self, value: Any) -> bool:
        """Whether a value may be in it."""
        return value is not None and bool(self.bits[self._places(pa.array([value]))].all())

    def _places(self, values: pa.Array) -> np.ndarray:
        hashed = hash_rows([values], len(values))
        low, high = hashed & np.uint64(0xFFFFFFFF), (hashed >> np.uint64(32)) | np.uint64(1)
        steps = np.arange(self.hashes, dtype=np.uint64)
        return np.asarray((low[:, None] + high[:, None] * steps) % np.uint64(len(self.bits)))


@dataclass(frozen=True)
class CountMin:
    """What `count_min_sketch(x, eps, confidence, seed)` of Spark has counted: how often a value was there, or more.

    It is more by at most `eps` of all counts, with the confidence it was made for.
    """

    total: int
    factors: np.ndarray
    counts: np.ndarray

    @classmethod
    def load(cls, data: bytes) -> CountMin:
        version, total, depth, width = _COUNTS.unpack_from(data)
        if version != 1 or len(data) != _COUNTS.size + 8 * depth * (1 + width):
            raise ValueError("this is no count-min sketch of Spark")
        numbers = np.frombuffer(data, ">i8", offset=_COUNTS.size).astype(np.int64)
        return cls(total, numbers[:depth], numbers[depth:].reshape(depth, width))

    def union(self, other: CountMin) -> CountMin:
        """The counts of both."""
        if self.counts.shape != other.counts.shape or not np.array_equal(self.factors, other.factors):
            raise ValueError("only count-min sketches with the same error, confidence and seed can be merged")
        return CountMin(self.total + other.total, self.factors, self.counts + other.counts)

    def count(self, value: int | str | bytes) -> int:
        """How often a value was there, at most."""
        places = self._of_bytes(value) if isinstance(value, str | bytes) else self._of_number(value)
        return int(self.counts[np.arange(len(places)), places].min())

    def _of_number(self, value: int) -> np.ndarray:
        with np.errstate(over="ignore"):
            hashed = self.factors * np.int64(value)
            hashed = hashed + (hashed >> np.int64(32))
        return np.asarray((hashed & np.int64(_PRIME)).astype(np.int32) % self.counts.shape[1])

    def _of_bytes(self, value: str | bytes) -> np.ndarray:
        data = value.encode() if isinstance(value, str) else value
        first = _murmur(data, 0)
        second = _murmur(data, first)
        depth, width = self.counts.shape
        return np.array([abs(math.fmod(_int(first + row * second), width)) for row in range(depth)], np.int64)


def bloom_filter(*, expected: int, error: float = 0.01) -> Callable[[Any], Column]:
    """An aggregate function: the values of a column as a Bloom filter."""
    empty = Bloom.sized(expected, error)

    def filtered(values: Any) -> bytes:
        return empty.with_values(pa.Array.from_pandas(values)).dump()

    return _aggregate(filtered)


def bloom_union(column: Any) -> Column:
    """An aggregate: Bloom filters of the same size, put together."""

    def merged(filters: Any) -> bytes | None:
        found = [Bloom.load(one) for one in filters if one is not None]
        return reduce(Bloom.union, found).dump() if found else None

    return _aggregate(merged)(column)


def may_contain(filters: Any, values: Any) -> Column:
    """Whether a value may be in a Bloom filter; NULL if there is none."""

    def asked(data: bytes | None, value: Any) -> bool | None:
        return None if data is None else Bloom.load(data).may_contain(value)

    return _each(asked, "boolean")(filters, values)


def counted(counts: Any, values: Any) -> Column:
    """How often a value was there, at most, as a count-min sketch of Spark has counted."""

    def asked(data: bytes | None, value: Any) -> int | None:
        return None if data is None or value is None else CountMin.load(data).count(value)

    return _each(asked, "bigint")(counts, values)


def _aggregate(function: Callable[[Any], bytes | None]) -> Callable[[Any], Column]:
    import pandas as pd
    from pyspark.sql.functions import pandas_udf

    function.__annotations__ = {next(iter(function.__annotations__)): pd.Series, "return": bytes}
    return cast("Callable[[Any], Column]", pandas_udf(function, "binary"))


def _each(function: Callable[[Any, Any], Any], kind: str) -> Callable[[Any, Any], Column]:
    from pyspark.sql.functions import udf

    function.__annotations__ = {}  # which Spark would read
    return cast("Callable[[Any, Any], Column]", udf(function, kind))


def _present(values: Any) -> pa.Array:
    return (values if isinstance(values, pa.Array) else pa.array(values)).drop_null()


def _int(value: int) -> int:
    """The number in 32 bits, as Java has it.

    >>> _int(2**31), _int(-1)
    (-2147483648, -1)
    """
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _murmur(data: bytes, seed: int) -> int:
    """The 32-bit hash of Murmur3, the bytes behind the last four mixed one by one, as Spark does."""
    state, mask = seed & 0xFFFFFFFF, 0xFFFFFFFF
    whole = len(data) // 4 * 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    words += [byte - 256 if byte > 127 else byte for byte in data[whole:]]
    for word in words:
        mixed = (word * 0xCC9E2D51) & mask
        mixed = ((mixed << 15) | (mixed >> 17)) & mask
        mixed = (mixed * 0x1B873593) & mask
        state ^= mixed
        state = ((state << 13) | (state >> 19)) & mask
        state = (state * 5 + 0xE6546B64) & mask
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = ((state ^ (state >> shift)) * factor) & mask
    return _int(state)
