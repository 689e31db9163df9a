"""What the tests of consumer groups, lag and queues share."""

from __future__ import annotations

import time

SCHEMA = "id BIGINT, word STRING"


def rows(*ids):
    return [{"id": number, "word": f"w{number}"} for number in ids]


def ids(batches):
    return sorted(number for batch in batches for number in batch.rows.column("id").to_pylist())


def drain(consumer):
    """Everything that a consumer can get now."""
    found = []
    while batches := consumer.poll(0):
        found += ids(batches)
    return sorted(found)


def until(condition, seconds=60):
    """Wait for other processes."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
