"""What is forgotten: rows that no change can reach any more.

A node says for a trace which of its columns is a time, and before which moments nothing changes: the watermark of a
stream, or its horizon, each so much earlier or later. What these are in an epoch the epoch knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from evert.trace.arrays import one_chunk

Bound: TypeAlias = frozenset[tuple[str, int]]
"""The least of some moments, each that of a clock and so many microseconds more."""
DAY = 86_400_000_000


class Forgets(NamedTuple):
    """The rows of a trace are forgotten of which a column, or a field of it, has a time before a bound."""

    trace: str
    column: str
    field: int | None
    before: Bound


class Limit(NamedTuple):
    """The same at one moment."""

    column: str
    field: int | None
    before: int


def limits(rules: Iterable[Forgets], moments: Mapping[str, int]) -> dict[str, list[Limit]]:
    """What each trace forgets, where all clocks that it waits for have said something.

    >>> rule = Forgets("left", "c2", None, frozenset({("h1", 0), ("h2", -10)}))
    >>> limits([rule], {"h1": 100, "h2": 105})
    {'left': [Limit(column='c2', field=None, before=95)]}
    >>> limits([rule], {"h1": 100})
    {}
    """
    found: dict[str, list[Limit]] = {}
    for rule in rules:
        if rule.before and all(clock in moments for clock, _ in rule.before):
            before = min(moments[clock] + shift for clock, shift in rule.before)
            found.setdefault(rule.trace, []).append(Limit(rule.column, rule.field, before))
    return found


def alive(rows: pa.Table, before: Sequence[Limit]) -> pa.Table:
    """The rows that may still change; those without a time always may."""
    for limit in before:
        column = one_chunk(rows.column(limit.column))
        if limit.field is not None:
            column = column.flatten()[limit.field]  # a NULL struct has NULL in its fields
        gone = np.asarray(column.is_valid()) & (_micros(column) < limit.before)
        if gone.any():
            rows = rows.filter(pa.array(~gone))
    return rows


def _micros(column: pa.Array) -> np.ndarray:
    if pa.types.is_date32(column.type):
        return np.asarray(column.cast(pa.int32()).fill_null(0)).astype(np.int64) * DAY
    return np.asarray(column.cast(pa.int64()).fill_null(0))
