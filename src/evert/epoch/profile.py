"""What the time of an epoch's tasks went into, as the catalog keeps it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict

from evert.epoch.flow import Flow
from evert.epoch.receipt import PACK, SCAN, Receipt, Spent


def profile(said: Sequence[Receipt | Spent], flow: Flow, *, inline: bool) -> str:
    """By node, the sums over all tasks; and the nodes some of whose expressions Spark evaluated."""
    sums: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for spent in said:
        if isinstance(spent, Spent):
            for name, value in asdict(spent).items():
                sums[spent.node][name] += value
    steps = [(node.id, step) for node in flow.nodes for step in node.steps]
    by_spark = sorted({node for node, step in steps if not inline or step.chain.inline is None})
    outside = {
        word: sums.pop(number, {}).get("micros", 0) for word, number in (("scan", SCAN), ("pack", PACK))
    }
    nodes = [{**sums_of, "node": node} for node, sums_of in sorted(sums.items())]
    return json.dumps({**outside, "nodes": nodes, "by_spark": by_spark}, separators=(",", ":"))
