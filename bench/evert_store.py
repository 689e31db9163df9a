"""Evert itself, given Arrow record batches or lists of dicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from bench.nexmark_bids import DDL, SCHEMA
from bench.stores import Expected, Store, Writer

import evert

TOPIC = "bids"


@dataclass(frozen=True)
class Evert(Store):
    """`background=False` leaves everything in the tail until `seal`."""

    background: bool = True
    name = "evert"

    def create(self) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with self.open() as db:
            db.stream(TOPIC, DDL)

    def open(self) -> Any:
        return evert.open(self.folder, background=self.background)

    def inputs(self, batch: pa.RecordBatch) -> Any:
        return batch

    def writers(self, count: int) -> list[Writer]:
        """All threads of a process use the same open database, as a server would."""
        db = self.open()
        return [_Writer(db, db.topics[TOPIC]) for _ in range(count)]

    def holds(self, expected: Expected) -> bool:
        events = price = 0
        first: dict[str, Any] = {}
        last: dict[str, Any] = {}
        with self.open() as db:
            for batch in db.topics[TOPIC].read():
                if not _in_order(batch, events):
                    return False
                first = first or _row(batch, 0)
                last = _row(batch, batch.num_rows - 1)
                events += batch.num_rows
                price += pc.sum(batch["price"]).as_py()
        right = (events, price) == (expected.events, expected.price)
        return right and (not events or (first in expected.first and last in expected.last))

    def read(self, events: int) -> int:
        with self.open() as db:
            return sum(batch.num_rows for batch in db.topics[TOPIC].read())

    def follow(self) -> Iterator[list[int]]:
        with self.open() as db:
            for batch in db.topics[TOPIC].read(follow=True):
                yield batch["price"].to_pylist()

    def seal(self) -> None:
        with self.open() as db:
            db.maintain()

    def disk_bytes(self) -> int:
        self.seal()
        return super().disk_bytes()


class EvertDicts(Evert):
    """The same, given what a plain Python program has in its hands."""

    name = "evert, dicts"

    def inputs(self, batch: pa.RecordBatch) -> Any:
        return batch.to_pylist()


class _Writer:
    def __init__(self, db: Any, topic: Any) -> None:
        self._db = db
        self.append = topic.append

    def close(self) -> None:
        self._db.close()


def _row(batch: pa.RecordBatch, index: int) -> dict[str, Any]:
    return dict(batch.slice(index, 1).select(SCHEMA.names).to_pylist()[0])


def _in_order(batch: pa.RecordBatch, first_offset: int) -> bool:
    offsets = batch["_offset"].to_numpy()
    positions = batch["_position"].to_numpy()
    return bool(
        (offsets == np.arange(first_offset, first_offset + len(offsets))).all()
        and (positions[1:] >= positions[:-1]).all()
    )
