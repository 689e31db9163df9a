"""Bids as the Nexmark benchmark makes them: any slice of one endless, seeded sequence.

Of every 50 events of Nexmark, 46 are bids; only those are made here, with their auctions and bidders skewed
as there: half of the bids go to the hot auction of the moment, three quarters come from its hot bidder,
prices are log-uniform, half of the channels are one of four. Each field is a hash of (seed, number, field):
the bids [a, b) are the same whether they are made alone or as part of more.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

DDL = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, at TIMESTAMP"
SCHEMA = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
    ]
)
EVENTS, PERSONS, AUCTIONS = 50, 1, 3
BIDS = EVENTS - PERSONS - AUCTIONS
FIRST_ID = 1000
IN_FLIGHT, ACTIVE, LEAD = 100, 1000, 10
HOT_BATCH = 100
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
MICROSECONDS_PER_EVENT = 100
BASE_TIME = 1_700_000_000_000_000


def bids(first: int, count: int, *, seed: int = 1) -> pa.RecordBatch:
    """The bids number `first` to `first + count - 1`.

    >>> bids(0, 3).column("auction").to_pylist() == bids(1, 2).column("auction").to_pylist()
    False
    >>> bids(0, 3).slice(1).equals(bids(1, 2))
    True
    """
    number = np.arange(first, first + count, dtype=np.int64)
    event = number // BIDS * EVENTS + (PERSONS + AUCTIONS) + number % BIDS
    last_auction = event // EVENTS * AUCTIONS + AUCTIONS - 1
    last_person = event // EVENTS

    def uniform(field: int, below: np.ndarray | int) -> np.ndarray:
        return (_hash(number, seed, field) % np.asarray(below, dtype=np.uint64)).astype(np.int64)

    oldest = np.maximum(last_auction - IN_FLIGHT, 0)
    some_auction = oldest + uniform(1, last_auction - oldest + 1 + LEAD)
    hot_auction = last_auction // HOT_BATCH * HOT_BATCH
    active = np.minimum(last_person + 1, ACTIVE)
    some_person = last_person + 1 - active + uniform(2, active + LEAD)
    hot_bidder = last_person // HOT_BATCH * HOT_BATCH + 1
    price = np.round(10.0 ** (6 * (_hash(number, seed, 3) / 2.0**64)) * 100).astype(np.int64)
    hot_channel = uniform(4, len(HOT_CHANNELS))
    some_channel = len(HOT_CHANNELS) + uniform(5, CHANNELS)
    channel = np.where(uniform(6, 2) > 0, hot_channel, some_channel)
    milliseconds = event * MICROSECONDS_PER_EVENT // 1000
    return pa.RecordBatch.from_arrays(
        [
            pa.array(FIRST_ID + np.where(uniform(7, 2) > 0, hot_auction, some_auction)),
            pa.array(FIRST_ID + np.where(uniform(8, 4) > 0, hot_bidder, some_person)),
            pa.array(price),
            _channels().take(pa.array(channel)),
            pa.array(BASE_TIME + milliseconds * 1000).cast(SCHEMA.field("at").type),
        ],
        schema=SCHEMA,
    )


@cache
def _channels() -> pa.Array:
    return pa.array([*HOT_CHANNELS, *(f"channel-{n}" for n in range(CHANNELS))])


def _hash(number: np.ndarray, seed: int, field: int) -> np.ndarray:
    """splitmix64 of the number, in a stream of its own for each seed and field."""
    stream = np.uint64((seed * 0x9E3779B97F4A7C15 + field * 0xD1B54A32D192ED03) % 2**64)
    x = (number.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ stream
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
