"""Which setting of its device's clock an event is of, and when it really occurred.

set back                                     device's time ─>
────────────────────────┤ former             An event that was kept before it was sent may be of either, where
           ├──────────────────────── present  both have had its time. The error then holds both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evert.log.envelope import PAST, SECOND, present

Bounds = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Times of events, and the least and the most that they may be."""
AT_ONCE = 60 * SECOND
"""An event that its device sent within this time is taken to be of the same setting as its message."""


@dataclass(frozen=True)
class Events:
    """The times of events, and which of the devices each is of."""

    device: np.ndarray
    occurred: np.ndarray
    sent: np.ndarray
    received: np.ndarray


def correct(
    states: np.ndarray, times: np.ndarray, events: Events, delay: float
) -> tuple[np.ndarray, np.ndarray]:
    """When events really occurred, and how far that may be from the truth.

    `times` is when the latest message of each device came. An event that was sent at once is of the present
    setting, one that was kept for a while of any that has had its time. If one was sent before it occurred, the
    clock was set back in between, by at least as much.
    """
    shift = present(states, times, delay)
    which, occurred = events.device, events.occurred
    off = shift.value[which] + occurred - times[which]
    spare = states["drift_error"][which] * np.abs(off)
    value = occurred + shift.value[which] + states["drift"][which] * off
    kept = events.sent - occurred
    low = value - shift.below[which] - spare - np.maximum(-kept, 0.0)
    high = value + shift.above[which] + spare
    unsure = (kept < 0) | (kept > AT_ONCE) | (events.received < states["first"][which])
    places = np.flatnonzero(unsure & (states["jumps"][which] > 0))
    if len(places):
        value[places], low[places], high[places] = _of_any(
            states[which[places]],
            occurred[places],
            events.received[places],
            (value[places], low[places], high[places]),
        )
    return value, np.maximum(value - low, high - value)


def _of_any(states: np.ndarray, occurred: np.ndarray, received: np.ndarray, now: Bounds) -> Bounds:
    """Times of events whose setting is not certain: the latest that fits, with all that fit within the error.

    A setting fits if it was the clock's at the time that it makes of the event, and the event came after that.
    """
    value, low, high = now
    past = states["past"]
    fits = (high >= past["last"][:, 0]) & (value - (high - value) <= received)
    found = np.where(fits, value, np.nan)
    least, most = np.where(fits, low, np.inf), np.where(fits, high, -np.inf)
    begun = states["first"]
    for place in range(PAST):
        one = past[:, place]
        there = np.isfinite(one["first"])
        off = np.where(there, occurred + one["shift"] - one["last"], 0.0)
        time = occurred + one["shift"] + one["drift"] * off
        spare = one["drift_error"] * np.abs(off)
        older = past["last"][:, place + 1] if place + 1 < PAST else np.full(len(states), np.inf)
        older = np.where(np.isfinite(older), older, -np.inf)
        fits = there & (time - one["below"] - spare <= begun) & (time + one["above"] + spare >= older)
        found = np.where(fits & np.isnan(found), time, found)
        least = np.where(fits, np.minimum(least, time - one["below"] - spare), least)
        most = np.where(fits, np.maximum(most, time + one["above"] + spare), most)
        begun = one["first"]
    none = np.isnan(found)
    return np.where(none, value, found), np.where(none, low, least), np.where(none, high, most)
