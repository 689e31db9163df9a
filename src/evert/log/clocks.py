"""The clocks of devices, as the catalog keeps them: one small state for each device of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from evert.catalog import Transaction
from evert.log import envelope
from evert.log.times import moment
from evert.log.topic import Topic

_AT_ONCE = 500


@dataclass(frozen=True)
class DeviceClock:
    """The clock of one device: by how much it is ahead of the log's, how far that may be from the truth, and by how
    many millionths it runs too fast. `events` are those whose time was corrected, `seen` is when the last came.
    """

    device: str
    offset: timedelta
    error: timedelta
    drift: float
    jumps: int
    events: int
    seen: datetime | None


def read(tx: Transaction, topic: int, devices: Sequence[str]) -> list[bytes]:
    """The states of devices; empty for those that have none yet."""
    found: dict[str, bytes] = {}
    for start in range(0, len(devices), _AT_ONCE):
        some = devices[start : start + _AT_ONCE]
        places = ", ".join("?" * len(some))
        sql = f"SELECT device, state FROM clocks WHERE topic = ? AND device IN ({places})"
        found.update((device, bytes(state)) for device, state in tx.all(sql, topic, *some))
    return [found.get(device, b"") for device in devices]


def write(tx: Transaction, topic: int, devices: Sequence[str], states: np.ndarray) -> None:
    for device, state in zip(devices, states, strict=True):
        tx.run(
            "INSERT INTO clocks VALUES (?, ?, ?) ON CONFLICT (topic, device) DO UPDATE SET state = excluded.state",
            topic,
            device,
            state.tobytes(),
        )


def decoded(stored: Sequence[bytes]) -> np.ndarray:
    """States that can be worked with."""
    unknown = envelope.fresh(1).tobytes()
    return np.frombuffer(b"".join(state or unknown for state in stored), envelope.State).copy()


def clocks(tx: Transaction, topic: Topic) -> list[DeviceClock]:
    """What is known of the clocks of a stream's devices, those that are furthest ahead first."""
    rows = tx.all("SELECT device, state FROM clocks WHERE topic = ?", topic.id)
    if not rows:
        return []
    states = decoded([bytes(state) for _, state in rows])
    seen = envelope.latest(states)
    shift = envelope.present(states, seen, float(topic.options.min_delay))
    found = [
        DeviceClock(
            device,
            -timedelta(microseconds=round(value)),
            timedelta(microseconds=round(error)),
            round(-float(state["drift"]) * 1e6, 3) + 0.0,
            int(state["jumps"]),
            int(state["events"]),
            moment(int(last)),
        )
        for (device, _), state, value, error, last in zip(
            rows, states, shift.value, shift.error, seen, strict=True
        )
    ]
    return sorted(found, key=lambda clock: (-clock.offset, clock.device))


def forget(tx: Transaction, topic: int) -> None:
    """A topic is dropped, or other columns say what its devices' clocks show."""
    tx.run("DELETE FROM clocks WHERE topic = ?", topic)
