"""The settings of a database, given to `evert.open` as keywords.

Each can be set for all programs by an environment variable: `EVERT_` and the name in capitals.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from evert.duration import microseconds
from evert.errors import BadOption

_DURATIONS = {"ids_kept", "keep_every"}


@dataclass(frozen=True)
class Config:
    """Sizes are in bytes, durations in microseconds."""

    direct_rows: int = 50_000
    """An append of more rows than this is written straight into a segment."""

    direct_bytes: int = 4 << 20
    """An append of more bytes than this is written straight into a segment."""

    spill_bytes: int = 16 << 10
    """An append of more bytes than this, in the tail, lies in a file beside the catalog."""

    seal_rows: int = 500_000
    """A topic's tail is sealed into a segment when it has this many rows."""

    seal_bytes: int = 32 << 20
    """A topic's tail is sealed into a segment when it has this many bytes."""

    seal_entries: int = 2_000
    """A topic's tail is sealed into a segment when it has this many commits."""

    segment_rows: int = 1_000_000
    """Sealing and compaction begin another segment after this many rows."""

    ids_kept: int = 7 * 86_400_000_000
    """How long request ids and producers' sequences are kept."""

    keep_every: int = 10_000_000
    """How often the background keeper looks after retention, compaction and old files."""

    background: bool = True
    """Whether a database that appends also seals and keeps in the background."""

    shards: int = min(8, os.cpu_count() or 2)
    """Into how many shards the state of views is divided; fixed when the first view is defined."""

    spark_master: str = f"local[{min(8, os.cpu_count() or 2)}]"
    """The Spark that keeps the views; a cluster's machines must all see the database folder under its path."""

    hash_bits: int = 64
    """How many bits of key hashes count; fewer only make collisions likely, which tests want."""

    @classmethod
    def make(cls, given: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Config:
        """The defaults, overridden by the environment, overridden by what is given."""
        surroundings = os.environ if environment is None else environment
        known = {f.name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name in known:
            if (text := surroundings.get(f"EVERT_{name.upper()}")) is not None:
                values[name] = text
        for name, value in given.items():
            if name not in known:
                raise BadOption(f"no setting is named {name!r}", hint=f"there are {', '.join(known)}")
            values[name] = value
        return replace(cls(), **{name: _value(name, value) for name, value in values.items()})


def _value(name: str, value: Any) -> Any:
    if name in _DURATIONS:
        return microseconds(value)
    if isinstance(getattr(Config, name), bool):
        if isinstance(value, str):
            value = {"1": True, "true": True, "0": False, "false": False}.get(value.lower(), value)
        if not isinstance(value, bool):
            raise BadOption(f"{name} is true or false, not {value!r}")
        return value
    if isinstance(getattr(Config, name), str):
        if not isinstance(value, str) or not value:
            raise BadOption(f"{name} is a text, not {value!r}")
        return value
    try:
        number = int(value)
    except (TypeError, ValueError) as error:
        raise BadOption(f"{name} is a whole number, not {value!r}") from error
    if number <= 0:
        raise BadOption(f"{name} is a positive number, not {value!r}")
    return number
