"""Times of devices, corrected: what is added to the rows of a stream whose devices say what their clocks showed.

    device, occurred, sent ──┐
    received, or now ────────┴─> gaps ──> states of the clocks ──> corrected_time, clock_error

The times are worked out before the rows are encoded, from what was committed by then and from the rows themselves,
and are stored with the rows. The commit then brings the states on from where it finds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.catalog import Transaction
from evert.log import clocks, envelope
from evert.log.settings import Events, correct
from evert.log.topic import CLOCK_ERROR, CORRECTED, Topic

STEPS = 256
"""A device's messages of one commit count as at most so many: of those that came one after another the quickest."""
FURTHEST = 2.0**52
"""Times further from 1970 are no clock's, in microseconds: some 140 years."""


@dataclass(frozen=True)
class Messages:
    """Messages of devices by their place in `devices`: one of each at most, when they came, and their gaps.

    `rows` are the places of their events, `owner` says for each of these which of the messages brought it.
    """

    devices: np.ndarray
    times: np.ndarray
    gaps: np.ndarray
    rows: np.ndarray
    owner: np.ndarray


@dataclass(frozen=True)
class Correction:
    """Rows of a stream whose devices say what their clocks showed, and the states of these clocks before."""

    topic: Topic
    rows: pa.Table
    now: int
    stored: tuple[bytes, ...] = ()

    @classmethod
    def look(cls, tx: Transaction, topic: Topic, rows: pa.Table) -> Correction:
        made = cls(topic, rows, tx.now)
        return replace(made, stored=tuple(clocks.read(tx, topic.id, made._devices)))

    @property
    def corrected(self) -> pa.Table:
        """The rows with the columns that Evert adds."""
        _, time, error = self._done
        known = np.zeros(self.rows.num_rows, np.bool_)
        known[self._places] = True
        occurred = self._column(self.topic.options.occurred)
        times = np.asarray(pc.fill_null(occurred.cast(pa.int64()), 0)).copy()
        times[self._places] = np.rint(time)
        errors = np.zeros(self.rows.num_rows)
        errors[self._places] = np.ceil(error) / envelope.SECOND
        arrow = self.topic.schema.arrow
        made = {
            CORRECTED: pa.array(times, mask=~np.asarray(occurred.is_valid())),
            CLOCK_ERROR: pa.array(errors, mask=~known),
        }
        arrays = [
            made[field.name].cast(field.type) if field.name in made else self.rows.column(field.name)
            for field in arrow
        ]
        return pa.Table.from_arrays(arrays, schema=arrow)

    def record(self, tx: Transaction) -> None:
        """Bring the clocks on, from where they are now."""
        there = tuple(clocks.read(tx, self.topic.id, self._devices))
        states = self._done[0] if there == self.stored else replace(self, stored=there)._done[0]
        states["events"] = clocks.decoded(there)["events"] + self._events
        clocks.write(tx, self.topic.id, self._devices, states)

    @cached_property
    def _done(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The states after the rows, and the time and error of each event that a clock is known of."""
        states = clocks.decoded(self.stored)
        time, error = np.empty(len(self._places)), np.empty(len(self._places))
        delay = float(self.topic.options.min_delay)
        for one in self._messages():
            after = envelope.observe(states[one.devices], one.times, one.gaps, delay)
            states[one.devices] = after
            events = Events(
                one.owner, self._occurred[one.rows], self._sent[one.rows], self._received[one.rows]
            )
            time[one.rows], error[one.rows] = correct(after, one.times, events, delay)
        return states, time, error

    def _messages(self) -> Iterator[Messages]:
        """The messages in the order they came, of all devices side by side; events that came together are one's."""
        if not len(self._places):
            return
        order = np.lexsort((self._received, self._codes))
        device, received = self._codes[order], self._received[order]
        start = np.flatnonzero(_changes(device) | _changes(received))
        gap = received[start] - np.maximum.reduceat(self._sent[order], start)
        device, received = device[start], received[start]
        count = np.bincount(device, minlength=len(self._devices))
        number = np.arange(len(start)) - (np.cumsum(count) - count)[device]
        step = number // -(-count // STEPS)[device]
        first = np.flatnonzero(_changes(device) | _changes(step))
        least = np.repeat(np.minimum.reduceat(gap, first), np.diff(first, append=len(start)))
        is_least = np.flatnonzero(gap == least)
        quickest = is_least[np.searchsorted(is_least, first)]
        size = np.diff(start[first], append=len(order))
        group = np.repeat(np.arange(len(first)), size)
        by_step = np.argsort(step[first], kind="stable")
        rows = order[np.argsort(step[first][group], kind="stable")]
        done = 0
        for some in np.split(by_step, np.flatnonzero(np.diff(step[first][by_step])) + 1):
            owner = np.repeat(np.arange(len(some)), size[some])
            mine = rows[done : done + len(owner)]
            done += len(owner)
            at = quickest[some]
            yield Messages(device[first[some]], received[at], gap[at], mine, owner)

    @cached_property
    def _named(self) -> pa.DictionaryArray:
        return self._column(self.topic.options.source).cast(pa.string()).dictionary_encode()

    @cached_property
    def _devices(self) -> list[str]:
        """The devices that have a clock, in the order of their first event."""
        found: list[str] = pc.take(self._named.dictionary, pa.array(self._present[0])).to_pylist()
        return found

    @cached_property
    def _present(self) -> tuple[np.ndarray, np.ndarray]:
        """Which of the named devices have events with all their times, and which of them each event is of."""
        code = np.asarray(pc.fill_null(self._named.indices, 0)).astype(np.int64)[self._places]
        return np.unique(code, return_inverse=True)

    @property
    def _codes(self) -> np.ndarray:
        return self._present[1]

    @property
    def _events(self) -> np.ndarray:
        return np.bincount(self._codes, minlength=len(self._devices))

    @cached_property
    def _places(self) -> np.ndarray:
        """The rows that have a device and all times."""
        fine = np.asarray(self._named.is_valid()).copy()
        for column in self._times:
            fine &= np.asarray(column.is_valid())
            fine &= np.abs(_floats(column)) < FURTHEST
        return np.flatnonzero(fine)

    @cached_property
    def _times(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        options = self.topic.options
        received = pa.repeat(pa.scalar(self.now, pa.timestamp("us")), self.rows.num_rows)
        if options.received is not None:
            received = self._column(options.received)
        return self._column(options.occurred), self._column(options.sent), received

    @cached_property
    def _occurred(self) -> np.ndarray:
        return _floats(self._times[0])[self._places]

    @cached_property
    def _sent(self) -> np.ndarray:
        return _floats(self._times[1])[self._places]

    @cached_property
    def _received(self) -> np.ndarray:
        return _floats(self._times[2])[self._places]

    def _column(self, name: str | None) -> pa.Array:
        column = self.rows.column(name).combine_chunks()
        return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _floats(times: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(times.cast(pa.int64()), 0)).astype(np.float64)


def _changes(values: np.ndarray) -> np.ndarray:
    """Where another value begins."""
    found = np.ones(len(values), np.bool_)
    found[1:] = values[1:] != values[:-1]
    return found
