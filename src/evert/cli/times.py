"""Moments as people write them: `"10 minutes ago"`, or ISO 8601."""

from __future__ import annotations

import datetime as dt

from evert.duration import microseconds
from evert.errors import BadOption

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
)


def moment(text: str, now: int) -> int:
    """Microseconds since 1970, UTC. A time without a zone is in UTC.

    >>> moment("1970-01-01T00:00:02", 0), moment("2 seconds ago", 5_000_000), moment("1970-01-02", 0)
    (2000000, 3000000, 86400000000)
    """
    words = text.strip()
    if words.lower() == "now":
        return now
    if words.lower().endswith("ago"):
        return now - microseconds(words[:-3].strip())
    try:
        parsed = dt.datetime.fromisoformat(words)
    except ValueError:
        raise BadOption(
            f"cannot read the time {text!r}", hint='write it like "10 minutes ago" or 2026-05-01T12:00:00Z'
        ) from None
    return since_1970(parsed)


def since_1970(moment: dt.datetime) -> int:
    return ((moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - _EPOCH) // _MICROSECOND


def iso(microseconds_: int) -> str:
    """
    >>> iso(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return (_EPOCH + dt.timedelta(microseconds=microseconds_)).replace(tzinfo=None).isoformat() + "Z"


def spoken(microseconds_: int) -> str:
    """A duration in the largest unit that it is a whole number of.

    >>> spoken(604_800_000_000), spoken(90_000_000), spoken(1_500)
    ('7 days', '90 seconds', '1500 microseconds')
    """
    for unit, size in _UNITS:
        if microseconds_ % size == 0 and microseconds_ >= size:
            count = microseconds_ // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{microseconds_} microseconds"
