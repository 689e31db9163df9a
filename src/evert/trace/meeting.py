"""Where two sorted lists of hashes meet, and places in a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

PAIRS = 1 << 20


def meeting(
    left: np.ndarray, right: np.ndarray, most: int = PAIRS
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs of places with equal values in two sorted lists, at most so many at a time.

    The shorter list is looked up in the longer one, as far as that reaches: few pages of a large run are touched.

    >>> [(a.tolist(), b.tolist()) for a, b in meeting(np.array([1, 3, 3]), np.array([0, 3, 4, 5]))]
    [([1, 2], [1, 1])]
    """
    if len(left) > len(right):
        for second, first in meeting(right, left, most):
            yield first, second
        return
    if not len(left):
        return
    begin, end = np.searchsorted(left, right[0], "left"), np.searchsorted(left, right[-1], "right")
    for first, second in _found(left[begin:end], right, most):
        yield first + begin, second


def _found(left: np.ndarray, right: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The pairs of a shorter list with a longer one."""
    low = np.searchsorted(right, left, "left")
    inside = np.flatnonzero(low < len(right))
    hits = inside[right[low[inside]] == left[inside]]
    if not len(hits):
        return
    low = low[hits]
    counts = np.searchsorted(right, left[hits], "right") - low
    for which, places in stretches(low, counts, most):
        yield hits[which], places


def stretches(
    begins: np.ndarray, counts: np.ndarray, most: int = PAIRS
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """So many places from each begin on, and which begin each is of, at most so many at a time.

    >>> [(a.tolist(), b.tolist()) for a, b in stretches(np.array([10, 3, 7]), np.array([2, 0, 3]), 4)]
    [([0, 0, 2, 2], [10, 11, 7, 8]), ([2], [9])]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, most):
        stop = min(start + most, total)
        first, last = np.searchsorted(ends, [start, stop - 1], "right")
        part = slice(first, last + 1)
        before = ends[part] - counts[part]
        taken = np.minimum(ends[part], stop) - np.maximum(before, start)
        number = np.arange(start, stop) + np.repeat(begins[part] - before, taken)
        yield np.repeat(np.arange(first, last + 1), taken), number
