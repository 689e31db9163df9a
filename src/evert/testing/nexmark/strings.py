"""Random texts of Nexmark as Arrow arrays, made without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evert.testing.nexmark.draws import Draws, Ints

Bytes = NDArray[np.uint8]

SHARED_LETTERS = 1 << 20
_BLANK = ord(" ")
_AT_ONCE = 2048
"""How many rows are copied at once: few enough to stay in the processor's cache."""


class Texts:
    """Some texts that are taken often; faster than Arrow's own `take`.

    >>> Texts(["a", "bcd"]).take(np.array([1, 0, 1])).to_pylist()
    ['bcd', 'a', 'bcd']
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths = np.array([len(text) for text in texts])
        self._starts = np.cumsum(self._lengths) - self._lengths
        padding = self._lengths.max()
        self._letters = np.frombuffer("".join(texts).encode("ascii") + bytes(padding), np.uint8)

    def __len__(self) -> int:
        return len(self._lengths)

    def take(self, places: Ints) -> pa.Array:
        return pack(self._letters, self._starts[places], self._lengths[places])


def pack(source: Bytes, starts: Ints, lengths: Ints) -> pa.Array:
    """The substrings of a text that begin at `starts`, as one array.

    Whole windows of the longest length are copied, one after the other; each covers what the one before it had too
    much. This is ten times as fast as copying letter by letter.

    >>> pack(np.frombuffer(b"abcdef", np.uint8), np.array([4, 0, 2]), np.array([2, 1, 3])).to_pylist()
    ['ef', 'a', 'cde']
    """
    count = len(starts)
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=ends[1:])
    width = int(lengths.max(initial=1))
    if starts.max(initial=0) + width > len(source):
        source = np.concatenate([source, np.zeros(width, np.uint8)])
    made = np.empty(ends[-1] + width, np.uint8)
    wide, read = _windows(made, width), _windows(source, width)
    for first in range(0, count, _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        wide[ends[:-1][rows]] = read[starts[rows]]
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.StringArray.from_buffers(count, offsets, pa.py_buffer(made[: ends[-1]]))


def _windows(text: Bytes, width: int) -> NDArray[np.void]:
    """Every substring of a width, by where it begins."""
    return np.ndarray((len(text) - width + 1,), dtype=f"V{width}", buffer=text, strides=(1,))


def words(draws: Draws, field: int, longest: int, special: str = " ") -> pa.Array:
    """Three to `longest - 1` letters, every thirteenth of them special; blanks at the ends are cut off.

    Takes `longest / 2 + 2` fields.
    """
    letters = _alphabet(special)[draws.shorts(field + 2, longest - 1)].reshape(-1)
    lengths = 3 + draws.below(field, longest - 3)
    starts = np.arange(len(lengths)) * (longest - 1)
    while (blank := (letters[starts] == _BLANK) & (lengths > 0)).any():
        starts += blank
        lengths -= blank
    while (blank := (letters[starts + lengths - 1] == _BLANK) & (lengths > 0)).any():
        lengths -= blank
    return pack(letters, starts, lengths)


@cache
def _alphabet(special: str) -> Bytes:
    """What each number of 16 bits means: one in thirteen the special letter, else one of a to z."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)
    sixteen = np.arange(1 << 16)
    specials = (1 << 16) // 13
    spread = (sixteen - specials) * 26 // ((1 << 16) - specials)
    return np.where(sixteen < specials, ord(special), letters[np.maximum(spread, 0)]).astype(np.uint8)


def extras(draws: Draws, field: int, seed: int, used: Ints | int, average: int) -> pa.Array:
    """Letters that bring rows to an average size, a fifth more or less; takes two fields."""
    left = np.maximum(average - used, 0)
    spread = np.floor(0.2 * left + 0.5).astype(np.int64)
    lengths = left - spread + draws.below(field, np.maximum(2 * spread, 1))
    return pack(_shared(seed), draws.below(field + 1, SHARED_LETTERS - lengths), lengths)


@cache
def _shared(seed: int) -> Bytes:
    """The random text that `extra` columns are cut from, and some more so that windows at its end are whole."""
    draws = Draws(np.arange(SHARED_LETTERS + 1024), seed=seed)
    return (ord("a") + draws.below(0, 26)).astype(np.uint8)
