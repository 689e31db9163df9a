"""Random numbers that are a function of (seed, event, field), so that any event can be made alone."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


class Draws:
    """Independent draws for each of some numbered things.

    A field is a small number that names one draw. Two neighbouring fields share a hash of 64 bits, half each.

    >>> every, one = Draws(np.arange(5), seed=1), Draws(np.array([3]), seed=1)
    >>> every.below(0, 10).tolist()[3] == one.below(0, 10).tolist()[0]
    True
    """

    def __init__(self, numbers: Ints, *, seed: int) -> None:
        self._steps = numbers.astype(np.uint64) * np.uint64(_GOLDEN)
        self._seed = seed
        self._hashes: dict[int, Words] = {}

    def below(self, field: int, limit: Ints | int) -> Ints:
        """Uniform integers from 0 to `limit - 1`; the limit is less than 2**32."""
        wide = limit.view(np.uint64) if isinstance(limit, np.ndarray) else np.uint64(limit)
        product = self._half(field) * wide
        product >>= _32
        return product.view(np.int64)

    def hits(self, field: int, ratio: int) -> NDArray[np.bool_]:
        """True with a probability of `1 - 1 / ratio`."""
        return self.below(field, ratio) > 0

    def fractions(self, field: int) -> NDArray[np.float64]:
        """Uniform numbers in [0, 1), all 53 bits of them; they take the field beside theirs too."""
        return (self._hash(field // 2) >> np.uint64(11)) * np.float64(2.0**-53)

    def shorts(self, field: int, count: int) -> NDArray[np.uint16]:
        """`count` numbers of 16 bits for each thing, a row each; they take `count / 2` fields."""
        words = [self._hash(field // 2 + place) for place in range((count + 3) // 4)]
        return np.stack(words, axis=1).view(np.uint16)[:, :count]

    def _half(self, field: int) -> Words:
        whole = self._hash(field // 2)
        return whole >> _32 if field % 2 else whole & _LOW

    def _hash(self, place: int) -> Words:
        made = self._hashes.get(place)
        if made is None:
            made = self._hashes[place] = _mixed(self._steps + np.uint64(_stream(self._seed, place)))
        return made


def _mixed(x: Words) -> Words:
    """The last step of splitmix64."""
    x = x ^ (x >> np.uint64(30))
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


@cache
def _stream(seed: int, place: int) -> int:
    """Where the sequence of a seed and a place begins: far from all others, with all but certainty."""
    start = np.array([(seed * _GOLDEN + place * 0xD1B54A32D192ED03 + 1) % 2**64], dtype=np.uint64)
    return int(_mixed(_mixed(start) + np.uint64(_GOLDEN))[0])
