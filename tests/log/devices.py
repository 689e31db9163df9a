"""Devices whose clocks are wrong, and a network that is slow now and then: a simulation with known truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

SECOND = 1e6
START = 1.777e15
HOURS = 6
UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Device:
    """One that sends about `every` so often. Its clock is off by `offset`, drifts, and is set anew now and then."""

    name: str
    every: float
    offset: float
    drift: float
    jumps: tuple[tuple[float, float], ...]

    def shows(self, time: np.ndarray) -> np.ndarray:
        """What its clock shows at true times."""
        shown = time + self.offset + self.drift * (time - START)
        for at, size in self.jumps:
            shown = shown + np.where(time >= at, size, 0.0)
        return shown


def device(chance: np.random.Generator, number: int) -> Device:
    span = HOURS * 3600 * SECOND
    sizes = np.exp(chance.uniform(np.log(2), np.log(2 * 3600), 2)) * SECOND * chance.choice([-1, 1], 2)
    whens = np.sort(START + chance.uniform(0.2, 0.9, 2) * span)
    steady = chance.random() < 0.9
    return Device(
        f"d{number}",
        float(chance.choice([20, 45, 120])) * SECOND,
        float(chance.uniform(-3600, 3600)) * SECOND,
        float(chance.uniform(-50, 50) if steady else chance.uniform(-200, 200)) * 1e-6,
        tuple(zip(whens, sizes, strict=True))[: chance.choice([0, 0, 1, 2])],
    )


def events(chance: np.random.Generator, one: Device, near: bool) -> pa.Table:
    """What comes of a device, in the order it comes, with the true time of each event."""
    size = int(HOURS * 3600 * SECOND / one.every)
    occurred = np.sort(chance.uniform(0, HOURS * 3600 * SECOND, size)) + START
    sent = occurred + chance.exponential(0.3 * SECOND, size)
    if chance.random() < 0.4:
        begin = START + chance.uniform(0.1, 0.7) * HOURS * 3600 * SECOND
        end = begin + chance.uniform(600, 3600) * SECOND
        sent = np.where((occurred >= begin) & (occurred < end), end, sent)
    messages, owner = np.unique(sent, return_inverse=True)
    received = (messages + delays(chance, messages, near))[owner]
    order = np.argsort(received, kind="stable")
    columns = {
        "occurred": one.shows(occurred),
        "sent": one.shows(sent),
        "received": received,
        "truth": occurred,
    }
    arrays = {
        name: pa.array(np.rint(values[order]).astype(np.int64)).cast(UTC) for name, values in columns.items()
    }
    return pa.table({"device": pa.array([one.name] * size), **arrays})


def delays(chance: np.random.Generator, messages: np.ndarray, near: bool) -> np.ndarray:
    """Some 50 ms, more often more than less; or `near`, from a millisecond on. One in thirty is slower by seconds,
    and at times all of them are.
    """
    size = len(messages)
    if near:
        found = chance.uniform(0, 1e3) + chance.exponential(chance.uniform(2e3, 50e3), size)
    else:
        least, middle, width = chance.uniform(5e3, 40e3), chance.uniform(10e3, 60e3), chance.uniform(0.5, 1.3)
        found = least + middle * np.exp(width * chance.standard_normal(size))
    found += np.where(chance.random(size) < 1 / 30, chance.exponential(20 * SECOND, size), 0)
    if chance.random() < 0.3:
        begin = START + chance.uniform(0.1, 0.9) * HOURS * 3600 * SECOND
        slow = (messages >= begin) & (messages < begin + 600 * SECOND)
        found += np.where(slow, chance.exponential(3 * SECOND, size), 0)
    return found


def day(seed: int, size: int, *, near: bool = False) -> pa.Table:
    """What comes of so many devices, in the order it comes."""
    chance = np.random.default_rng(seed)
    made = [events(chance, device(chance, number), near) for number in range(size)]
    return pa.concat_tables(made).sort_by("received")
