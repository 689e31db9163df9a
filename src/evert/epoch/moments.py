"""Where the clocks stand by which nodes forget: horizons and watermarks of streams after a position."""

from __future__ import annotations

from collections.abc import Iterable

from evert.catalog import Transaction
from evert.log import watermarks
from evert.plan.bounds import HORIZON
from evert.trace.horizon import Forgets


def standing(tx: Transaction, rules: Iterable[Forgets], upto: int) -> dict[str, int]:
    """The moments of the clocks that rules name, of those that have one."""
    found = {}
    for name in {clock for rule in rules for clock, _ in rule.before}:
        kind, topic = name[0], int(name[1:])
        read = watermarks.horizon if kind == HORIZON else watermarks.watermark
        value = read(tx, topic, upto)
        if value is not None and value != watermarks.LEAST:
            found[name] = value
    return found
