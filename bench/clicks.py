"""Click-through: searches and clicks of the same visit, and the clicks that follow a search within an hour.

Five hundred events a second, two searches for each click. A visit lasts two minutes and has three events or so.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from evert.testing.nexmark import Query

SCHEMAS: Mapping[str, str] = {
    "search": "id BIGINT, visit BIGINT, dateTime TIMESTAMP, extra STRING",
    "click": "id BIGINT, visit BIGINT, dateTime TIMESTAMP, extra STRING",
}
OPTIONS = {"event_time": "dateTime", "lateness": "4 seconds", "forget_after": "0 seconds"}
"""What Flink is told by its watermark: nobody waits for longer than four seconds."""
QUERY = Query(
    "clicks",
    "searches and the clicks that followed within an hour",
    "SELECT s.id AS search, c.id AS click, s.dateTime FROM search AS s JOIN click AS c ON s.visit = c.visit"
    " AND c.dateTime BETWEEN s.dateTime AND s.dateTime + INTERVAL '1' HOUR",
    ("search", "click"),
)
STEP, START = 2_000, 1_767_225_600_000_000
BLOCK, NEW = 30_000, 10_000


def tables(first: int, count: int) -> dict[str, pa.Table]:
    """The events with these numbers, by their numbers alone."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    mixed = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    visits = numbers // BLOCK * NEW + (mixed % np.uint64(2 * NEW)).astype(np.int64)
    clicks = mixed // np.uint64(2 * NEW) % np.uint64(3) == 0
    made = pa.table(
        {
            "id": numbers,
            "visit": visits,
            "dateTime": pa.array(START + numbers * STEP).cast(pa.timestamp("us", "UTC")),
            "extra": pa.array(np.full(count, "x" * 40)),
        }
    )
    return {"search": made.filter(pa.array(~clicks)), "click": made.filter(pa.array(clicks))}
