"""Stragglers: events that come later than their stream waits for.

    rows ──> late? ──┬── on time, or late="correct" ───────────────> topic
                     └── late="drop", or older than forget_after ──> <topic>.late

An event is late if it is older than the mark of its source after all earlier commits. What is before the stream's
horizon is set aside whoever sends it: views have forgotten what they would need to count it. The rows are parted
before they are encoded, and the commit looks again: if a mark has moved meanwhile so far that it matters, they are
parted anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.catalog import Transaction
from evert.log import watermarks
from evert.log.topic import Topic
from evert.log.watermarks import LEAST, Sent


class Moved(Exception):
    """A mark has passed events that were on time when they were looked at."""


@dataclass(frozen=True)
class Arrival:
    """Rows of a stream with event time, by source, and the marks and the horizon that they are measured by.

    `accepts`: rows that were set aside once and are let in now, however late.
    """

    topic: Topic
    rows: pa.Table
    marks: np.ndarray
    horizon: int
    accepts: bool = False

    @classmethod
    def look(cls, tx: Transaction, topic: Topic, rows: pa.Table, accepts: bool = False) -> Arrival:
        return cls(topic, rows, np.empty(0, np.int64), LEAST, accepts)._measured(tx)

    @property
    def on_time(self) -> pa.Table:
        """What goes into the topic."""
        return self.rows if not self._gone.any() else self.rows.filter(pa.array(~self._gone))

    @property
    def set_aside(self) -> pa.Table | None:
        """What goes into `<topic>.late`, if there is anything; rows that are let in now are there already."""
        return self.rows.filter(pa.array(self._gone)) if self._gone.any() and not self.accepts else None

    def again(self, tx: Transaction) -> Arrival:
        """The same rows by the marks of now; `Moved` if they would be parted in another way."""
        there = self._measured(tx)
        if np.array_equal(there.marks, self.marks) and there.horizon == self.horizon:
            return self
        if not np.array_equal(there._gone, self._gone):
            raise Moved
        return there

    def record(self, tx: Transaction, position: int, at: int) -> None:
        """Move marks and watermark by what the commit brings."""
        size = len(self._names)
        high = np.full(size, LEAST, np.int64)
        np.maximum.at(high, self._codes[self._dated], self._times[self._dated])
        kinds = (self._dated, self._late, self._gone)
        counts = np.stack([np.bincount(self._codes[which], minlength=size) for which in kinds])
        told = np.zeros_like(counts) if self.accepts else counts  # they were counted when they came
        sent = [
            Sent(name, int(high[place]), *map(int, told[:, place]))
            for place, name in enumerate(self._names)
            if counts[0, place]
        ]
        if sent:
            watermarks.record(tx, self.topic, position, at, sent)
        if late := int((self._late & ~self._gone).sum()):
            watermarks.corrected(tx, self.topic.id, position, late)

    def _measured(self, tx: Transaction) -> Arrival:
        known = watermarks.marks(tx, self.topic, self._names)
        marks = np.array([known[name] for name in self._names], np.int64)
        return replace(self, marks=marks, horizon=watermarks.horizon(tx, self.topic.id))

    @cached_property
    def _late(self) -> np.ndarray:
        return self._dated & (self._times < self.marks[self._codes])

    @cached_property
    def _gone(self) -> np.ndarray:
        options = self.topic.options
        gone = np.zeros(self.rows.num_rows, np.bool_)
        if options.late == "drop" and not self.accepts:
            gone |= self._late
        if options.forget_after is not None:
            least = np.maximum(_less(self.marks, options.forget_after), self.horizon)
            gone |= self._dated & (self._times < least[self._codes])
        return gone

    @cached_property
    def _column(self) -> pa.Array:
        """The times; rows of an older schema may lack the column, and so have none."""
        name = self.topic.options.event_time
        if name not in self.rows.column_names:
            return pa.nulls(self.rows.num_rows, pa.timestamp("us"))
        column = self.rows.column(name).combine_chunks()
        return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column

    @cached_property
    def _dated(self) -> np.ndarray:
        return np.asarray(self._column.is_valid())

    @cached_property
    def _times(self) -> np.ndarray:
        return np.asarray(pc.fill_null(self._column.cast(pa.int64()), 0))

    @cached_property
    def _named(self) -> tuple[np.ndarray, list[str]]:
        name = self.topic.options.source
        if name is None or name not in self.rows.column_names:
            return np.zeros(self.rows.num_rows, np.int64), [""]
        texts = pc.fill_null(self.rows.column(name).cast(pa.string()), "").combine_chunks()
        coded = texts.dictionary_encode()
        return np.asarray(coded.indices).astype(np.int64), coded.dictionary.to_pylist()

    @property
    def _codes(self) -> np.ndarray:
        return self._named[0]

    @property
    def _names(self) -> list[str]:
        return self._named[1]


def source_name(value: str | int | bool) -> str:
    """A value of the column that names sources, as the catalog writes it."""
    return str(pa.array([value]).cast(pa.string())[0])


def _less(marks: np.ndarray, length: int) -> np.ndarray:
    """Marks so much earlier; those of sources that are not known stay."""
    return np.where(marks == LEAST, LEAST, marks - length)
