"""What a device's clock is off by, from when its messages were sent and when they came.

    gap = received - sent = delay + shift          shift: what is to be added to the device's time

    gap │      ·    ·           A delay is never negative, and mostly small: the shift lies just below the
        │  ·  ·   ·     · ·     least gaps. A line under them follows a clock that runs too fast or too slow.
        │ ·_·__·_·__·_·_·__     Gaps far below the line mean that the clock was set forward. Gaps that stay above
        │                       it, close to each other, mean that it was set back, and not that the net is slow.

All states of a batch are one array, and every step is taken for all its devices at once. Times are microseconds
since 1970 as floats, which are exact for some centuries; drifts are microseconds a microsecond.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evert.log.drift import DRIFT, fitted

LOW, RUN, PAST = 16, 8, 4
"""How many low gaps, gaps of a run above the line, and former settings of the clock are kept of a device."""
SECOND = 1_000_000.0
LONGEST = 10 * SECOND
"""How long a message may be under way that nothing else is known of; half of it with every other message."""
SLACK = 0.25 * SECOND
"""What is off by less is not called a jump."""
SURE = 32
"""So many gaps above the line in a row mean a jump, however they are spread."""

Setting = np.dtype(
    [(name, "<f8") for name in ("first", "last", "shift", "below", "above", "drift", "drift_error")]
)
"""A clock between two jumps: its first and last message, and at the last one the shift, how far that may be from
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
"""All that is kept of a device: the low gaps of the present setting and when their messages came, its drift, the
run of gaps above the line, and the former settings, latest first. What is not there is infinite."""


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
    old = ~new & (times < states["first"])
    ahead = ~new & ~old & (gaps < low - np.maximum(high - low, SLACK))
    above = ~new & ~old & (gaps > high + np.maximum(2 * shift.above, SLACK))
    fits = ~(old | ahead | above)
    for which, change in ((ahead, _set_forward), (above, _stayed_above), (fits, _took)):
        if which.any():
            states[which] = change(states[which], times[which], gaps[which], delay)
    _refit(states)
    return states


def line(states: np.ndarray, times: np.ndarray, delay: float) -> Shift:
    """The shift that the line under the low gaps gives at a time of each device; NaN where there are none.

    The quickest of the messages took at most `delay`, and a bit more, as the low gaps are not the least possible.
    How much more, the distances between them tell, or while they are few nothing but their number. What is further
    away in time counts less, as the drift may be another.
    """
    with np.errstate(invalid="ignore"):
        away = times[:, None] - states["time"]
        spare = states["drift_error"][:, None] * np.abs(away)
        bound = states["gap"] + states["drift"][:, None] * away + spare
    bound[np.isnan(bound)] = np.inf
    best = np.argmin(bound, axis=1)
    ordered = np.sort(bound, axis=1)
    least = ordered[:, 0]
    spread = np.full(len(states), LONGEST)
    with np.errstate(invalid="ignore"):
        for place, times_more in ((1, 20.0), (2, 5.0), (4, 2.2)):
            there = np.isfinite(ordered[:, place])
            spread = np.where(there, times_more * (ordered[:, place] - least), spread)
    spread = np.where(states["count"] > 1, np.minimum(spread, LONGEST), 0.0)
    unknown = LONGEST * 0.5 ** np.maximum(states["count"] - 1, 0).astype(np.float64)
    middle = (delay + spread) / 2 + spare[np.arange(len(states)), best]
    least = np.where(np.isfinite(least), least, np.nan)
    return Shift(least - middle, middle + np.maximum(unknown - spread, 0), middle)


def present(states: np.ndarray, times: np.ndarray, delay: float) -> Shift:
    """The same, with what a run above the line may mean: that the clock has been set back."""
    shift = line(states, times, delay)
    newest = states["run_gap"][np.arange(len(states)), (states["run"] - 1) % RUN]
    high = np.where(states["run"] > 0, newest - shift.value, -np.inf)
    return Shift(shift.value, shift.below, np.maximum(shift.above, high))


def latest(states: np.ndarray) -> np.ndarray:
    """When the last message of each device came, whether it fits the line or not."""
    run = np.where(np.isfinite(states["run_time"]), states["run_time"], -np.inf).max(axis=1)
    return np.maximum(states["last"], run)


def _took(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """A gap that fits the line joins the low ones; it also ends a run above the line."""
    states["first"] = np.minimum(states["first"], times)
    states["last"] = np.where(states["count"] > 0, np.maximum(states["last"], times), times)
    states["count"] += 1
    _end_run(states)
    _keep(states, times, gaps)
    _leave_out(states)
    return states


def _leave_out(states: np.ndarray) -> None:
    """The first gap after a jump, if it is far below all others: it is of a slow message from before the jump."""
    away = states["last"][:, None] - np.where(np.isfinite(states["time"]), states["time"], 0.0)
    level = states["gap"] + states["drift"][:, None] * away
    ordered = np.sort(level, axis=1)
    with np.errstate(invalid="ignore"):
        alone = ordered[:, 1] - ordered[:, 0] > np.maximum(4 * (ordered[:, 5] - ordered[:, 1]), SLACK)
    stale = alone & (states["jumps"] > 0) & (np.argmin(level, axis=1) == 0)
    if stale.any():
        for name in ("time", "gap"):
            states[name][stale] = np.append(
                states[name][stale, 1:], np.full((stale.sum(), 1), np.inf), axis=1
            )
        states["first"][stale] = states["time"][stale, 0]


def _keep(states: np.ndarray, times: np.ndarray, gaps: np.ndarray) -> None:
    """Add a gap. If there are too many, of the two neighbours that are closest for their age the lower stays."""
    time = np.concatenate([states["time"], times[:, None]], axis=1)
    gap = np.concatenate([states["gap"], gaps[:, None]], axis=1)
    order = np.argsort(time, axis=1, kind="stable")
    rows = np.arange(len(states))
    time, gap = time[rows[:, None], order], gap[rows[:, None], order]
    drop = np.full(len(states), LOW)
    full = np.flatnonzero(np.isfinite(time[:, -1]))
    if len(full):
        at, there = time[full], states["last"][full, None]
        age = there - at + SECOND
        pair = np.argmin(np.diff(at, axis=1) / age[:, :-1], axis=1)
        level = gap[full] + states["drift"][full, None] * (there - at)
        some = rows[: len(full)]
        drop[full] = pair + (level[some, pair] <= level[some, pair + 1])
    stays = np.arange(LOW + 1) != drop[:, None]
    states["time"], states["gap"] = time[stays].reshape(-1, LOW), gap[stays].reshape(-1, LOW)


def _set_forward(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """No message comes before it was sent: the clock has been set forward, and is known by one message only."""
    _begin(states, delay)
    return _took(states, times, gaps, delay)


def _stayed_above(states: np.ndarray, times: np.ndarray, gaps: np.ndarray, delay: float) -> np.ndarray:
    """A gap above the line is that of a slow message, until so many are that the clock must have been set back."""
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
    rows = np.arange(len(states))[:, None]
    times, gaps = times[rows, order], gaps[rows, order]
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
        drift, error = fitted(states["time"][some], states["gap"][some], states["last"][some])
        states["drift"][some], states["drift_error"][some] = drift, error
        states["fitted"][some] = states["count"][some]
