"""Rows as multisets, and what is left when two of them are taken from each other."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

TOLERANCE = 1e-9


def counted(table: pa.Table, weight: str | None = None) -> Counter:
    """Rows as a multiset; rows that differ in anything at all, but for the bits of NaN, are different."""
    rows: Counter = Counter()
    weights = [1] * table.num_rows if weight is None else table.column(weight).to_pylist()
    if weight is not None:
        table = table.drop_columns([weight])
    columns = [column.to_pylist() for column in table.columns]
    for number, times in enumerate(weights):
        rows[tuple(_plain(column[number]) for column in columns)] += times
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, Decimal):
        return ("decimal", str(value))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, datetime):
        return ("datetime", value.isoformat())
    if isinstance(value, dict):
        return ("struct", *((name, _plain(one)) for name, one in value.items()))
    if isinstance(value, list | tuple):
        return ("list", *map(_plain, value))
    return value


def difference(expected: Counter, found: Counter) -> tuple[list, list]:
    """What is only in the one and only in the other, but for the last digits of floating point numbers."""
    missing, unexpected = list((expected - found).elements()), list((found - expected).elements())
    for row in list(missing):
        near = next((other for other in unexpected if _near(row, other)), None)
        if near is not None:
            missing.remove(row)
            unexpected.remove(near)
    return missing, unexpected


def _near(one: Any, two: Any) -> bool:
    if isinstance(one, tuple) and isinstance(two, tuple):
        if one[:1] == two[:1] == ("float",) and len(one) == len(two) == 2:
            a, b = float(one[1]), float(two[1])
            return a == b or math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        return len(one) == len(two) and all(_near(a, b) for a, b in zip(one, two, strict=True))
    return bool(one == two)
