"""The arithmetic of hashes: numbers mixed, and sequences of numbers or bytes folded into one number each."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from evert.trace.arrays import offsets

STEP = np.uint64(0x9E3779B97F4A7C15)
NULL = np.uint64(0xD6E8FEB86659FD93)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_LENGTH = np.uint64(0xA0761D6478BD642F)
_KEPT = np.array([(1 << (8 * kept)) - 1 for kept in range(9)], np.uint64)
_BLOCK_ROWS = 1 << 15
_BLOCK_BYTES = 1 << 19


def mixed(number: np.ndarray) -> np.ndarray:
    """Every bit of the result depends on every bit of the number; in place, one to one."""
    spare = number >> np.uint64(30)
    number ^= spare
    number *= _FIRST
    np.right_shift(number, np.uint64(27), out=spare)
    number ^= spare
    number *= _SECOND
    np.right_shift(number, np.uint64(31), out=spare)
    number ^= spare
    return number


def folded(codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """One number for each sequence of codes; the sequences lie one after the other.

    Each code is mixed with its place in the sequence, so that the mixed codes can simply be added.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    place = np.arange(1, len(codes) + 1, dtype=np.uint64)
    place -= np.repeat(starts.astype(np.uint64), lengths)
    place *= STEP
    place += codes
    sums = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(mixed(place), out=sums[1:])
    found = sums[ends] - sums[starts]
    found += lengths.astype(np.uint64) * _LENGTH
    return mixed(found)


def text_codes(array: pa.Array) -> np.ndarray:
    """One number for each string or binary: its bytes as 64-bit words, the last one filled with zeros."""
    found = np.empty(len(array), np.uint64)
    places = offsets(array)
    data = array.buffers()[2]
    content = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    start = 0
    while start < len(array):
        full = int(np.searchsorted(places, int(places[start]) + _BLOCK_BYTES, "right")) - 1
        end = min(len(array), start + _BLOCK_ROWS, max(start + 1, full))
        part = places[start : end + 1].astype(np.int64)
        found[start:end] = _block_codes(part - part[0], content[part[0] : part[-1]])
        start = end
    return found


def _block_codes(places: np.ndarray, content: np.ndarray) -> np.ndarray:
    padded = np.zeros(len(content) + 8, np.uint8)
    padded[: len(content)] = content
    unaligned = np.ndarray((len(content) + 1,), "<u8", padded, strides=(1,))
    lengths = np.diff(places)
    counts = (lengths + 7) >> 3
    ends = np.cumsum(counts)
    at = np.arange(0, 8 * int(ends[-1]), 8)
    at += np.repeat(places[:-1] - 8 * (ends - counts), counts)
    codes = unaligned[at].astype(np.uint64, copy=False)
    some = counts > 0
    codes[ends[some] - 1] &= _KEPT[lengths[some] - 8 * (counts[some] - 1)]
    found = folded(codes, counts)
    found += lengths.astype(np.uint64)
    return mixed(found)
