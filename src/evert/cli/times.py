"""Moments as people write them: `"10 minutes ago"`, or ISO 8601."""

from __future__ import annotations

import datetime as dt

from evert.duration import microseconds
from evert.errors import BadOption

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


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
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).__sub__(_EPOCH) // _MICROSECOND


def iso(microseconds_: int) -> str:
    """
    >>> iso(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    return (_EPOCH + dt.timedelta(microseconds=microseconds_)).replace(tzinfo=None).isoformat() + "Z"
