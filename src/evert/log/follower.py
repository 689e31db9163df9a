"""Rows of a topic from some offsets on, asked for piece by piece and read once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from evert.log.protocol import Batch, Position
from evert.log.reader import LogReader
from evert.log.topic import OFFSET, PARTITION, POSITION, Topic

WINDOW = 1024
NEVER = 2**62


@dataclass(frozen=True)
class Cursor:
    """How far one partition is read: all offsets below `next`, which is all rows up to `position`.

    Some rows after `position` may be below `next` too: the ones of a commit that was read in part.
    """

    next: int
    position: Position


@dataclass(frozen=True)
class Extent:
    """What a topic holds, as one snapshot of the catalog sees it."""

    firsts: Mapping[int, int]
    ends: Mapping[int, int]
    gone: Position
    head: Position


@dataclass(frozen=True)
class Piece:
    """Rows in the log's order; with them, all rows up to the position `complete` have been seen."""

    rows: pa.RecordBatch | None
    complete: Position


class _Loaded:
    """A batch with its stamps as numpy arrays."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self.rows = rows
        self.partitions = rows.column(PARTITION).to_numpy()
        self.offsets = rows.column(OFFSET).to_numpy()
        self.positions = rows.column(POSITION).to_numpy()


class Follower:
    """Reads one topic along some cursors.

    Asking twice with the same cursors gives the same rows: what was given is forgotten only when the cursors
    have passed it. Cursors that went back, or that are new, make it read again from there.
    """

    def __init__(self, reader: LogReader, topic: Topic) -> None:
        self._reader = reader
        self._topic = topic
        self._batches: Iterator[Batch] = iter(())
        self._ahead: deque[_Loaded] = deque()
        self._start = 0
        self._upto: Position = 0
        self._floor: dict[int, int] = {}

    def rows(self, cursors: Mapping[int, Cursor], extent: Extent, most: int) -> Piece:
        """At most so many rows of the cursors' partitions, from the cursors on."""
        behind = [cursor for p, cursor in cursors.items() if cursor.next < extent.ends[p]]
        if not behind:
            return Piece(None, extent.head)
        if any(self._floor.get(p, NEVER) > cursor.next for p, cursor in cursors.items()):
            self._restart(min(cursor.position for cursor in behind), extent)
        self._floor = {p: cursor.next for p, cursor in cursors.items()}
        nexts = np.full(self._topic.partitions, NEVER)
        for partition, cursor in cursors.items():
            nexts[partition] = cursor.next
        try:
            return self._collect(nexts, extent, most)
        except BaseException:
            self.forget()
            raise

    def _restart(self, after: Position, extent: Extent) -> None:
        after = max(after, extent.gone)
        self._ahead.clear()
        self._start = 0
        self._upto = extent.head
        self._batches = self._reader.rows_of(self._topic, after, extent.head, None)

    def forget(self) -> None:
        """Begin again at the cursors of the next call."""
        self._floor = {}

    def _load(self, extent: Extent) -> bool:
        """Another batch, if there is one up to the head."""
        while True:
            for batch in self._batches:
                if batch.rows.num_rows:
                    self._ahead.append(_Loaded(batch.rows))
                    return True
            if self._upto >= extent.head:
                return False
            after = max(self._upto, extent.gone)
            self._batches = self._reader.rows_of(self._topic, after, extent.head, None)
            self._upto = extent.head

    def _collect(self, nexts: np.ndarray, extent: Extent, most: int) -> Piece:
        found: list[pa.RecordBatch] = []
        left = most
        index, at = 0, self._start
        while True:
            if index == len(self._ahead) and not self._load(extent):
                return Piece(_joined(found), self._upto)
            loaded = self._ahead[index]
            if at >= len(loaded.offsets):
                if not found:
                    self._ahead.popleft()
                    self._start = 0
                else:
                    index += 1
                at = 0
                continue
            if not left or (found and found[0].schema != loaded.rows.schema):
                return Piece(_joined(found), int(loaded.positions[at]) - 1)
            end = min(at + max(left, WINDOW), len(loaded.offsets))
            hits = at + np.flatnonzero(loaded.offsets[at:end] >= nexts[loaded.partitions[at:end]])
            if len(hits) > left:
                hits = hits[:left]
                end = int(hits[-1]) + 1
            if not found:
                self._start = int(hits[0]) if len(hits) else end
            if len(hits):
                found.append(_taken(loaded.rows, hits))
                left -= len(hits)
            at = end


def _taken(rows: pa.RecordBatch, hits: np.ndarray) -> pa.RecordBatch:
    first, last = int(hits[0]), int(hits[-1])
    if last - first + 1 == len(hits):
        return rows.slice(first, len(hits))
    return rows.take(pa.array(hits))


def _joined(found: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    if len(found) < 2:
        return found[0] if found else None
    return pa.concat_batches(found)
