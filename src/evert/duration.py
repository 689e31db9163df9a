"""Durations as people write them: `"10 minutes"`, `"7 days"`, `90` (seconds) or a `timedelta`."""

from __future__ import annotations

import re
from datetime import timedelta

from evert.errors import BadOption

Duration = str | int | float | timedelta

_UNITS = {
    "us": 1,
    "microsecond": 1,
    "ms": 1_000,
    "millisecond": 1_000,
    "s": 1_000_000,
    "second": 1_000_000,
    "m": 60_000_000,
    "minute": 60_000_000,
    "h": 3_600_000_000,
    "hour": 3_600_000_000,
    "d": 86_400_000_000,
    "day": 86_400_000_000,
    "w": 604_800_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def microseconds(duration: Duration) -> int:
    """The duration in microseconds.

    >>> microseconds("1 minute 30 seconds"), microseconds(2), microseconds("10ms")
    (90000000, 2000000, 10000)
    """
    if isinstance(duration, timedelta):
        total = duration // timedelta(microseconds=1)
    elif isinstance(duration, str):
        total = _parse(duration)
    else:
        total = round(duration * 1_000_000)
    if total < 0:
        raise BadOption(f"a duration cannot be negative: {duration!r}")
    return total


def seconds(duration: Duration) -> float:
    """The duration in seconds."""
    return microseconds(duration) / 1_000_000


def _parse(text: str) -> int:
    total, at = 0, 0
    while match := _PART.match(text, at):
        number, unit = match.groups()
        scale = _UNITS.get(unit.lower()) or _UNITS.get(unit.lower().removesuffix("s"))
        if scale is None:
            break
        total += round(float(number) * scale)
        at = match.end()
    if at == 0 or at != len(text):
        raise BadOption(f"cannot read the duration {text!r}", hint='write it like "10 minutes" or "7 days"')
    return total
