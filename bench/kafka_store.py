"""Kafka, set up to promise what Evert promises: the broker flushes to disk before it acknowledges.

One partition, because Evert's log is one total order. Where a setting can make Kafka faster without changing
that promise, it is chosen so: no lingering for single events; for batches large requests, LZ4, and the call
that takes a list of messages at once. Messages are encoded before the clock starts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from bench.nexmark_bids import bids
from bench.stores import Expected, Store, Writer, as_json, blocks, encode
from tests.servers import kafka

# Files of dropped topics would stay for a minute and fill the disk.
PROPERTIES = {"log.flush.interval.messages": "1", "log.segment.delete.delay.ms": "1000"}
JVM = ("-Xms1g", "-Xmx1g")
QUIET = {"log_level": 2}
SINGLE = {"linger.ms": 0}
BATCHED = {
    "linger.ms": 5,
    "batch.size": 1_000_000,
    "batch.num.messages": 100_000,
    "compression.type": "lz4",
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 2_000_000,
}
# By default a consumer pauses for a second whenever it has read 100,000 messages ahead.
READ_AHEAD = {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 1}


def available() -> str | None:
    try:
        import confluent_kafka  # noqa: F401
    except ImportError as missing:
        return f"the Python client cannot be imported: {missing}"
    return kafka.available()


def start(folder: Path, *, seconds: float = 6) -> kafka.Broker:
    """A broker that has run long enough for its machine code to be compiled."""
    broker = kafka.Broker(folder, properties=PROPERTIES, jvm=JVM).start()
    try:
        for batch in (1, 10_000):
            _warm_up(Kafka(folder, batch, broker.address, f"warm-{batch}"), seconds)
    except BaseException:
        broker.stop()
        raise
    return broker


def _warm_up(store: Kafka, seconds: float) -> None:
    store.create()
    (writer,) = store.writers(1)
    rows = store.inputs(bids(0, store.batch))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        writer.append(rows)
    store.drop()


@dataclass(frozen=True)
class Kafka(Store):
    address: str = ""
    topic: str = ""
    name = "kafka"

    def create(self) -> None:
        from confluent_kafka.admin import NewTopic

        admin = self._admin()
        for made in admin.create_topics([NewTopic(self.topic, 1, 1)]).values():
            made.result()

    def inputs(self, batch: pa.RecordBatch) -> list[dict[str, Any]]:
        return [{"value": encode(row).encode()} for row in as_json(batch)]

    def writers(self, count: int) -> list[Writer]:
        return [_Producer(self) for _ in range(count)]

    def holds(self, expected: Expected) -> bool:
        consumer = self._consumer()
        _, end = consumer.get_watermark_offsets(self._partition, timeout=30)
        consumer.close()
        return bool(end == expected.events)

    def read(self, events: int) -> int:
        consumer = self._consumer(**READ_AHEAD)
        consumer.assign([self._partition])
        count = size = 0
        while count < events:
            for message in consumer.consume(min(10_000, events - count), timeout=10):
                size += len(message.value())
                count += 1
        consumer.close()
        return count

    def follow(self) -> Iterator[list[int]]:
        consumer = self._consumer()
        consumer.assign([self._partition])
        while True:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                yield [json.loads(message.value())["price"]]

    def disk_bytes(self) -> int:
        return blocks(self._data)

    def drop(self) -> None:
        admin = self._admin()
        for gone in admin.delete_topics([self.topic]).values():
            gone.result()

    @property
    def _data(self) -> Path:
        return self.folder / "data" / f"{self.topic}-0"

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, **QUIET})

    def _consumer(self, **settings: Any) -> Any:
        from confluent_kafka import Consumer

        return Consumer({"bootstrap.servers": self.address, "group.id": self.topic, **QUIET, **settings})

    @property
    def _partition(self) -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self.topic, 0, 0)


class _Producer:
    def __init__(self, store: Kafka) -> None:
        from confluent_kafka import Producer

        settings = SINGLE if store.batch == 1 else BATCHED
        self._producer = Producer({"bootstrap.servers": store.address, "acks": "all", **QUIET, **settings})
        self._topic = store.topic
        self._failures: list[Any] = []

    def append(self, messages: list[dict[str, Any]]) -> None:
        if len(messages) == 1:
            self._producer.produce(
                self._topic, messages[0]["value"], partition=0, on_delivery=self._note_failure
            )
        else:
            queued = self._producer.produce_batch(self._topic, messages, partition=0)
            if queued != len(messages):
                raise RuntimeError(f"{queued} of {len(messages)} messages were taken")
        if self._producer.flush(60) or self._failures:
            raise RuntimeError(f"not acknowledged: {self._failures[:1]}")

    def close(self) -> None:
        self._producer.flush(60)

    def _note_failure(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failures.append(error)
