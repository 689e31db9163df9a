"""What a device's clock is off by, from when its messages were sent and when they came.

    gap = received - sent = delay + shift          shift: what is to be added to the device's time

    gap │      ·    ·           A delay is never negative, and mostly small: the shift lies just below the
        │  ·  ·   ·     · ·     least gaps. A line under them follows a clock that runs too fast or too slow.
        │ ·_·__·_·__·_·_·__     Gaps far below the line mean that the clock was set forward. Gaps that stay above
        │                       it, close to each other, mean that it was set back, and not that the net is slow.

All states of a batch are one array, and every step is taken for all its devices at once. Times are microseconds since
1970 as floats, which are exact for some centuries; drifts are microseconds a microsecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LOW, RUN, PAST = 16, 8, 4
"""How many low gaps, gaps of a run above the line, and former settings of the clock are kept of a device."""
SECOND = 1_000_000.0
LONGEST = 10 * SECOND
"""How long a message may be under way that nothing else is known of; half of it with every other message."""
SLACK = 0.25 * SECOND
"""What is off by less is not called a jump."""
SURE = 32
"""So many gaps above the line in a row mean a jump, however they are spread."""
AT_ONCE = 60 * SECOND
"""An event that its device sent within this time is taken to be of the same setting as its message."""
DRIFT, LEAST_DRIFT, MOST_DRIFT = 100e-6, 2e-6, 1000e-6
"""What the drift of an unknown clock may be, how well one can be known, and the most that is looked for."""

Setting = np.dtype(
    [(name, "<f8") for name in ("first", "last", "shift", "below", "above", "drift", "drift_error")]
)
"""A clock between two jumps: the first and last message of it, and at the last one the shift, how far that may be from
the truth, and the drift."""

State = np.dtype(
    [
        ("events", "<i8"),
        ("jumps", "<i8"),
        ("count", "<i8"),
        ("first", "<f8"),
        ("last", "<f8"),
        ("time", "<f8", LOW),
        ("gap", "<f8", LOW),
        ("drift", "<f8"),
        ("drift_error", "<f8"),
        ("fitted", "<i8"),
        ("run", "<i8"),
        ("run_time", "<f8", RUN),
        ("run_gap", "<f8", RUN),
        ("past", Setting, PAST),
    ]
)
"""All that is kept of a device: the low gaps of the present setting and when their messages came, its drift, the run of
gaps above the line, and the former settings, latest first. What is not there is infinite."""


@dataclass(frozen=True)
class Shift:
    """What is to be added to the time of each device, and how far the truth may lie below and above that."""

    value: np.ndarray
    below: np.ndarray
    above: np.ndarray

    @property
    def error(self) -> np.ndarray:
        return np.maximum(self.below, self.above)


def fresh(size: int) -> np.ndarray:
    """The states of devices that nothing is known of."""
    made = np.zeros(size, State)
    for name in ("first", "last", "time", "gap", "run_time", "run_gap"):
        made[name] = np.inf
    made["drift_error"] = DRIFT
    made["past"]["first"] = made["past"]["last"] = np.inf
    return made


def observe(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """The states after one more message of each device; `delay` is the most that the quickest messages take."""
    states = states.copy()
    new = states["count"] == 0
    shift = line(states, times, delay)
    high, low = shift.value + shift.above, shift.value - shift.below
    slack = np.maximum(high - low, SLACK)
    old = ~new & (times < states["first"])
    ahead = ~new & ~old & (gaps < low - slack)
    above = ~new & ~old & (gaps > high + slack)
    fits = ~(old | ahead | above)
    for which, change in ((ahead, _set_forward), (above, _stayed_above), (fits, _took)):
        if which.any():
            states[which] = change(states[which], times[which], gaps[which], delay)
    _refit(states)
    return states


def line(states: np.ndarray, times: np.ndarray, delay: float) -> Shift:
    """The shift that the line under the low gaps gives at a time of each device; NaN where there are none.

    The quickest of the messages took at most `delay`, and a bit more, as the low gaps are not the least possible. How
    much more, the distances between them tell, or while they are few nothing but their number.
    """
    with np.errstate(invalid="ignore"):
        away = times[:, None] - states["time"]
        spare = states["drift_error"][:, None] * np.abs(away)
        bound = states["gap"] + states["drift"][:, None] * away + spare
    bound[np.isnan(bound)] = np.inf
    best = np.argmin(bound, axis=1)
    ordered = np.sort(bound, axis=1)
    least = ordered[:, 0]
    with np.errstate(invalid="ignore"):
        few = np.fmin(np.where(states["count"] > 1, 20 * (ordered[:, 1] - least), 0), LONGEST)
        spread = np.select(
            [np.isfinite(ordered[:, 4]), np.isfinite(ordered[:, 2])],
            [2.2 * (ordered[:, 4] - least), 5 * (ordered[:, 2] - least)],
            few,
        )
    spread = np.fmin(spread, LONGEST)
    unknown = LONGEST * 0.5 ** np.maximum(states["count"] - 1, 0).astype(np.float64)
    penalty = 2 * np.take_along_axis(spare, best[:, None], axis=1)[:, 0]
    middle = (delay + spread + penalty) / 2
    least = np.where(np.isfinite(least), least, np.nan)
    return Shift(least - middle, middle + np.maximum(unknown - spread, 0), middle)


def present(states: np.ndarray, times: np.ndarray, delay: float) -> Shift:
    """The same, with what a run above the line may mean: that the clock has been set back."""
    shift = line(states, times, delay)
    newest = states["run_gap"][np.arange(len(states)), (states["run"] - 1) % RUN]
    high = np.where(states["run"] > 0, newest - shift.value, -np.inf)
    return Shift(shift.value, shift.below, np.maximum(shift.above, high))


def correct(
    states: np.ndarray,
    times: np.ndarray,
    which: np.ndarray,
    occurred: np.ndarray,
    sent: np.ndarray,
    received: np.ndarray,
    delay: float,
) -> tuple[np.ndarray, np.ndarray]:
    """When events really occurred, and how far that may be from the truth.

    `times` is when the latest message of each device came, `which` the device of each event. An event that was sent
    at once was so under the present setting. One that was kept for a while may be of any setting that had its time.
    """
    shift = present(states, times, delay)
    off = shift.value[which] + occurred - times[which]
    drift, drift_error = states["drift"][which], states["drift_error"][which]
    value = occurred + shift.value[which] + drift * off
    low = value - shift.below[which] - drift_error * np.abs(off)
    high = value + shift.above[which] + drift_error * np.abs(off)
    kept = sent - occurred
    asked = (kept < 0) | (kept > AT_ONCE) | (received < states["first"][which])
    asked &= states["jumps"][which] > 0
    places = np.flatnonzero(asked)
    if len(places):
        value[places], low[places], high[places] = _of_any(
            states[which[places]], occurred[places], value[places], low[places], high[places]
        )
    return value, np.maximum(value - low, high - value)


def _of_any(
    states: np.ndarray, occurred: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times of events whose setting is not certain: the latest that fits, with all that fit within the error."""
    past = states["past"]
    before = past["last"][:, 0]
    fits = value >= before
    found = np.where(fits, value, np.nan)
    least, most = np.where(fits, low, np.inf), np.where(fits, high, -np.inf)
    begun = states["first"]
    for place in range(PAST):
        one = past[:, place]
        there = np.isfinite(one["first"])
        off = occurred + one["shift"] - one["last"]
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
    return (
        np.where(none, value, found),
        np.where(none, low, least),
        np.where(none, high, most),
    )


def _took(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """A gap that fits the line joins the low ones; it also ends a run above the line."""
    states["first"] = np.minimum(states["first"], times)
    states["last"] = np.where(states["count"] > 0, np.maximum(states["last"], times), times)
    states["count"] += 1
    _end_run(states)
    _keep(states, times, gaps)
    return states


def _keep(states: np.ndarray, times: np.ndarray, gaps: np.ndarray) -> None:
    """Add a gap. If there are too many, the lower of two neighbours stays, of those that are closest for their age."""
    time = np.concatenate([states["time"], times[:, None]], axis=1)
    gap = np.concatenate([states["gap"], gaps[:, None]], axis=1)
    order = np.argsort(time, axis=1, kind="stable")
    time, gap = np.take_along_axis(time, order, axis=1), np.take_along_axis(gap, order, axis=1)
    drop = np.full(len(states), LOW)
    full = np.flatnonzero(np.isfinite(time[:, -1]))
    if len(full):
        at, there = time[full], states["last"][full, None]
        age = there - at + SECOND
        pair = np.argmin(np.diff(at, axis=1) / age[:, :-1], axis=1)
        level = gap[full] + states["drift"][full, None] * (there - at)
        rows = np.arange(len(full))
        drop[full] = pair + (level[rows, pair] <= level[rows, pair + 1])
    stays = np.arange(LOW + 1) != drop[:, None]
    states["time"], states["gap"] = time[stays].reshape(-1, LOW), gap[stays].reshape(-1, LOW)


def _set_forward(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """No message comes before it was sent: the clock has been set forward, and is known by one message only."""
    _begin(states, delay)
    return _took(states, times, gaps, delay)


def _stayed_above(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """A gap above the line is one of a slow message, until there are so many that the clock must have been set back."""
    rows = np.arange(len(states))
    place = states["run"] % RUN
    states["run_time"][rows, place], states["run_gap"][rows, place] = times, gaps
    states["run"] += 1
    shift = line(states, times, delay)
    ordered = np.sort(states["run_gap"], axis=1)
    with np.errstate(invalid="ignore"):
        close = 4 * (ordered[:, 4] - ordered[:, 0]) < ordered[:, 0] - shift.value - shift.above
    back = (states["run"] >= 5) & (close | (states["run"] >= SURE))
    if back.any():
        states[back] = _set_back(states[back], delay)
    return states


def _set_back(states: np.ndarray, delay: float) -> np.ndarray:
    """The run is the clock's new setting."""
    times, gaps, count = (states[name].copy() for name in ("run_time", "run_gap", "run"))
    _begin(states, delay)
    order = np.argsort(times, axis=1)
    times, gaps = np.take_along_axis(times, order, axis=1), np.take_along_axis(gaps, order, axis=1)
    states["time"][:, :RUN], states["gap"][:, :RUN] = times, gaps
    states["count"], states["first"] = np.minimum(count, RUN), times[:, 0]
    states["last"] = np.where(np.isfinite(times), times, -np.inf).max(axis=1)
    return states


def _begin(states: np.ndarray, delay: float) -> None:
    """The present setting becomes a former one, and nothing is known of the new one but the drift."""
    shift = line(states, states["last"], delay)
    states["past"][:, 1:] = states["past"][:, :-1].copy()
    for name in ("first", "last", "drift", "drift_error"):
        states["past"][name][:, 0] = states[name]
    for name, value in (("shift", shift.value), ("below", shift.below), ("above", shift.above)):
        states["past"][name][:, 0] = value
    states["jumps"] += 1
    states["count"] = states["fitted"] = 0
    states["first"] = states["last"] = states["time"] = states["gap"] = np.inf
    _end_run(states)


def _end_run(states: np.ndarray) -> None:
    states["run"] = 0
    states["run_time"] = states["run_gap"] = np.inf


def _refit(states: np.ndarray) -> None:
    """Look for the drift again where there is enough that is new."""
    known = np.isfinite(states["time"]).sum(axis=1)
    new = states["count"] - states["fitted"]
    due = np.flatnonzero((known >= 5) & (new >= np.maximum(3, states["fitted"] // 4)))
    for start in range(0, len(due), 1000):
        some = due[start : start + 1000]
        drift, error = _fit(states["time"][some], states["gap"][some], states["last"][some])
        states["drift"][some], states["drift_error"][some] = drift, error
        states["fitted"][some] = states["count"][some]


_GRID = np.sinh(np.linspace(-6, 6, 61)) / np.sinh(6.0) * MOST_DRIFT


def _fit(time: np.ndarray, gap: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The drift that brings the lower half of the gaps closest to one level, and by how much it may be another.

    It may be any that brings them half as close. If that says no more than what is known of clocks in general, this holds.
    """
    there = np.isfinite(time)
    away = np.where(there, time - last[:, None], 0.0)
    half = (there.sum(axis=1) - 1) // 2
    rows = np.arange(len(time))
    coarse = np.broadcast_to(_GRID, (len(time), len(_GRID)))
    spread = _spread(coarse, away, gap, half)
    place = np.argmin(spread, axis=1)
    step = _GRID[np.minimum(place + 1, len(_GRID) - 1)] - _GRID[np.maximum(place - 1, 0)]
    fine = coarse[rows, place][:, None] + step[:, None] * np.linspace(-1, 1, 21)
    drifts = np.concatenate([coarse, fine], axis=1)
    spread = np.concatenate([spread, _spread(fine, away, gap, half)], axis=1)
    place = np.argmin(spread, axis=1)
    best = drifts[rows, place]
    plausible = spread <= 2 * spread[rows, place][:, None] + 1000
    off = np.where(plausible, np.abs(drifts - best[:, None]), 0).max(axis=1)
    error = np.maximum(off, step / 20)
    return np.where(error < DRIFT, best, 0.0), np.clip(error, LEAST_DRIFT, DRIFT)


def _spread(drifts: np.ndarray, away: np.ndarray, gap: np.ndarray, half: np.ndarray) -> np.ndarray:
    """How far the lower half of the gaps reaches above the least one, if the clock has each of these drifts."""
    level = np.sort(gap[:, None, :] - drifts[:, :, None] * away[:, None, :], axis=2)
    found: np.ndarray = level[np.arange(len(gap)), :, half] - level[:, :, 0]
    return found
