"""Where the time of a view's last epoch went: rows, bytes and time of each node, and the size of its state."""

from __future__ import annotations

import json
from dataclasses import dataclass

from evert.catalog import Transaction
from evert.views import definition, states
from evert.views.definition import Definition


@dataclass(frozen=True)
class NodeProfile:
    """A node in the last epoch of its view's group; its time is that of all tasks together.

    `rows_in` are rows as they come from the exchange, some of them summed already. `home` says who evaluated the
    expressions on the way into it: workers, or Spark. A node that the epoch did not reach has no rows and no time.
    """

    view: str
    node: str
    kind: str
    rows_in: int
    rows_out: int
    bytes_in: int
    milliseconds: float
    state_rows: int
    state_bytes: int
    home: str

    def __str__(self) -> str:
        state = f"state of {self.state_rows:,} rows in {self.state_bytes:,} bytes"
        if not self.milliseconds:
            return f"not reached by the last epoch; {state}"
        return (
            f"{self.rows_in:,} rows in, {self.rows_out:,} out, {self.milliseconds:,.1f} ms, expressions by"
            f" {self.home}; {state}"
        )


@dataclass(frozen=True)
class EpochProfile:
    """The last epoch of a group: how long it took, and what its tasks did in that time, all of them together.

    `scanning` is reading what enters and what workers make of it, `packing` putting what Spark has evaluated into
    cells. Chains and packing between two nodes of one task are in none of the figures.
    """

    group: str
    position: int
    events: int
    milliseconds: float
    scanning: float
    packing: float
    in_nodes: float
    nodes: tuple[NodeProfile, ...]


def profiles(tx: Transaction) -> list[EpochProfile]:
    """The last epoch of each group that has one."""
    shown = [view for view in definition.all(tx) if view.current]
    groups = list(dict.fromkeys(view.group for view in shown))
    found = (of_group(tx, group, [view for view in shown if view.group == group]) for group in groups)
    return [one for one in found if one is not None]


def of_group(tx: Transaction, group: str, views: list[Definition]) -> EpochProfile | None:
    row = tx.one(
        'SELECT upto, rows, micros, profile FROM epochs WHERE "group" = ? AND profile IS NOT NULL'
        " ORDER BY id DESC LIMIT 1",
        group,
    )
    if row is None:
        return None
    position, events, micros, text = row
    told = json.loads(text)
    spent = {one["node"]: one for one in told["nodes"]}
    by_spark = set(told["by_spark"])
    nodes = tuple(node for view in views for node in _of_view(tx, view, spent, by_spark))
    in_nodes = sum(one["micros"] for one in spent.values()) / 1e3
    scanning, packing = told["scan"] / 1e3, told["pack"] / 1e3
    return EpochProfile(group, position, events, micros / 1e3, scanning, packing, in_nodes, nodes)


def _of_view(
    tx: Transaction, view: Definition, spent: dict[int, dict[str, int]], by_spark: set[int]
) -> list[NodeProfile]:
    found = []
    kinds = dict(tx.all("SELECT name, kind FROM nodes WHERE view = ?", view.id))
    for name, number in states.of_view(tx, view.id).items():
        rows, size = tx.one(
            "SELECT coalesce(sum(rows), 0), coalesce(sum(bytes), 0) FROM runs WHERE node = ?", number
        ) or (0, 0)
        one = spent.get(number, {})
        found.append(
            NodeProfile(
                view.name,
                name,
                kinds[name],
                one.get("rows_in", 0),
                one.get("rows_out", 0),
                one.get("bytes_in", 0),
                one.get("micros", 0) / 1e3,
                int(rows),
                int(size),
                "Spark" if number in by_spark else "workers",
            )
        )
    return found
