"""How much too fast or too slow a device's clock runs: the slope of the line under its gaps.

gap │ ·    ·        ·       With the right drift taken away, the least gaps lie at one level. Those of slow
    │    ·___·____·____·    messages lie anywhere above it, so only the lower half is looked at.
"""

from __future__ import annotations

import numpy as np

DRIFT, LEAST, MOST = 100e-6, 2e-6, 1000e-6
"""What the drift of an unknown clock may be, how well one can be known, and the most that is looked for."""
_GRID = np.sinh(np.linspace(-6, 6, 61)) / np.sinh(6.0) * MOST


def fitted(time: np.ndarray, gap: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The drift that brings the lower half of the gaps closest to one level, and by how much it may be another.

    It may be any that brings them half as close. Where that says less than is known of all clocks, this holds.
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
    return np.where(error < DRIFT, best, 0.0), np.clip(error, LEAST, DRIFT)


def _spread(drifts: np.ndarray, away: np.ndarray, gap: np.ndarray, half: np.ndarray) -> np.ndarray:
    """How far the lower half of the gaps reaches above the least one, if the clock has each of these drifts."""
    level = np.sort(gap[:, None, :] - drifts[:, :, None] * away[:, None, :], axis=2)
    found: np.ndarray = level[np.arange(len(gap)), :, half] - level[:, :, 0]
    return found
