"""The rows that a bag holds under some keys, with a bounded number of bytes in hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from evert.trace.arrays import take_rows
from evert.trace.consolidate import summed
from evert.trace.trace import Trace

BATCH_BYTES = 64 << 20


def gathered(
    trace: Trace, hashes: np.ndarray, keys: Sequence[pa.Array], bits: int
) -> Iterator[tuple[slice, pa.Table]]:
    """Some of the keys at a time, as a slice of them, and all rows that the bag has under these, consolidated.

    The keys are unique. A batch ends where its rows may be larger than 64 MB, but one key is never cut.
    """
    for start, stop in pairwise(_cuts(trace, hashes)):
        part = slice(start, stop)
        needles = [key.slice(start, stop - start) for key in keys]
        found = [take_rows(run.table, rows) for _, run, rows in trace.matches(hashes[part], needles)]
        yield part, summed([trace.layout.empty(), *found], whole_rows=False, stable=False, bits=bits)


def _cuts(trace: Trace, hashes: np.ndarray) -> list[int]:
    """Where batches start, and where the last one ends: the hashes say how many rows there may be."""
    if not len(hashes):
        return []
    size = np.zeros(len(hashes))
    for run in trace.runs:
        rows = np.searchsorted(run.hashes, hashes, "right") - np.searchsorted(run.hashes, hashes, "left")
        size += rows * (run.stored.bytes / max(1, run.rows))
    batch = np.cumsum(size) // BATCH_BYTES
    return [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(hashes)]
