"""Where is the state? Traces: immutable runs sorted by hash, memory-mapped."""

from evert.trace.consolidate import (
    GONE,
    HASH,
    WEIGHT,
    consolidate,
    empty_like,
    negate,
    plus,
    sorted_by_hash,
    with_hash,
)
from evert.trace.keys import hash_rows, same_rows
from evert.trace.runs import Run, RunCache, RunWriter, Stored
from evert.trace.shard import NodeState
from evert.trace.trace import Layout, Trace, merge

__all__ = [
    "GONE",
    "HASH",
    "WEIGHT",
    "Layout",
    "NodeState",
    "Run",
    "RunCache",
    "RunWriter",
    "Stored",
    "Trace",
    "consolidate",
    "empty_like",
    "hash_rows",
    "merge",
    "negate",
    "plus",
    "same_rows",
    "sorted_by_hash",
    "with_hash",
]
