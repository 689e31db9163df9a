"""The events of the Nexmark benchmark: any slice of one endless, seeded sequence of persons, auctions and bids.

Of every 50 events the first is a person, the next three are auctions and 46 are bids. Half of the bids go to the
hot auction of the moment and three quarters come from the hot bidder; three quarters of the auctions are of the
hot seller. Some auctions and bids name a person or an auction that comes only later. Each value is a function of
(seed, event, field): a slice is the same whether it is made alone or as part of more, and again after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evert.testing.nexmark.draws import Draws, Ints
from evert.testing.nexmark.strings import Texts, extras, words

SCHEMAS: Mapping[str, str] = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "dateTime TIMESTAMP, extra STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
    "dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, "
    "extra STRING",
}
"""The three relations in Spark DDL."""

BLOCK = 32_768
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
LEAD = 10
HOT_BATCH = 100
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]

_ARROW = {"BIGINT": pa.int64(), "STRING": pa.string(), "TIMESTAMP": pa.timestamp("us", tz="UTC")}
_NAMES = Texts([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES])
_FOUR_DIGITS = Texts([f"{number:04}" for number in range(10_000)])
_CITIES, _STATES = Texts(CITIES), Texts(STATES)
_PERSONS, _AUCTIONS, _BIDS, _URLS, _TEXT = range(5)


@dataclass(frozen=True, kw_only=True)
class Config:
    """How the sequence is made; the defaults are those of Nexmark."""

    seed: int = 1
    rate: float = 10_000
    """Events a second, in event time."""
    base_time: int = 1_767_225_600_000
    """The time of the first event, in milliseconds since 1970."""
    persons: int = 1
    auctions: int = 3
    bids: int = 46
    out_of_order: int = 1
    """Events come shuffled in groups of this size."""
    hot_auctions: int = 2
    hot_sellers: int = 4
    hot_bidders: int = 4
    in_flight: int = 100
    active: int = 1000
    person_size: int = 200
    auction_size: int = 500
    bid_size: int = 100
    bidders_apart: bool = False
    """Add 1000 to every bidder, as Flink's generator does: bids then hardly ever meet their persons."""

    @property
    def round(self) -> int:
        """After how many events the kinds of events repeat."""
        return self.persons + self.auctions + self.bids


@dataclass(frozen=True)
class Events:
    """A slice of the sequence, by kind; rows are in the order of their events."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table

    def tables(self) -> dict[str, pa.Table]:
        return {"person": self.person, "auction": self.auction, "bid": self.bid}


def events(first: int, count: int, config: Config | None = None) -> Events:
    """The events number `first` to `first + count - 1`.

    >>> {name: table.num_rows for name, table in events(0, 1000).tables().items()}
    {'person': 20, 'auction': 60, 'bid': 920}
    >>> events(0, 100).bid.slice(46).equals(events(50, 50).bid)
    True
    """
    config = config or Config()
    made: dict[str, list[pa.RecordBatch]] = {name: [] for name in SCHEMAS}
    for start in range(first, first + count, BLOCK):
        numbers = _numbers(start, min(BLOCK, first + count - start), config.out_of_order)
        place = numbers - numbers // config.round * config.round
        for name, chosen in (
            ("person", place < config.persons),
            ("auction", (place >= config.persons) & (place < config.persons + config.auctions)),
            ("bid", place >= config.persons + config.auctions),
        ):
            made[name].append(_MAKERS[name](numbers[chosen], config))
    return Events(**{name: pa.Table.from_batches(made[name], schema(name)) for name in SCHEMAS})


@cache
def schema(name: str) -> pa.Schema:
    """The columns of `person`, `auction` or `bid` in Arrow's types."""
    columns = (column.split() for column in SCHEMAS[name].split(", "))
    return pa.schema([(column, _ARROW[kind]) for column, kind in columns])


def _numbers(first: int, count: int, group: int) -> Ints:
    """The ids of the events in their order, which is their own unless they come out of order."""
    order = np.arange(first, first + count, dtype=np.int64)
    return order // group * group + order * 953 % group if group > 1 else order


def _persons(event: Ints, config: Config) -> pa.RecordBatch:
    draw = Draws(event, seed=config.seed * 8 + _PERSONS)
    name = _NAMES.take(draw.below(0, len(_NAMES)))
    email = pc.binary_join_element_wise(words(draw, 10, 7), "@", words(draw, 20, 5), ".com", "")
    groups = [_FOUR_DIGITS.take(draw.below(2 + place, 10_000)) for place in range(4)]
    card = pc.binary_join_element_wise(*groups, " ")
    city = _CITIES.take(draw.below(6, len(_CITIES)))
    state = _STATES.take(draw.below(7, len(_STATES)))
    used = 8 + sum(_lengths(column) for column in (name, email, card, city, state))
    extra = extras(draw, 8, config.seed * 8 + _TEXT, used, config.person_size)
    identity = FIRST_ID + _last_person(event, config)
    time = _times(_milliseconds(event, config))
    return _batch("person", identity, name, email, card, city, state, time, extra)


def _auctions(event: Ints, config: Config) -> pa.RecordBatch:
    draw = Draws(event, seed=config.seed * 8 + _AUCTIONS)
    last_person = _last_person(event, config)
    hot = last_person // HOT_BATCH * HOT_BATCH
    seller = np.where(draw.hits(0, config.hot_sellers), hot, _some_person(draw, 1, last_person, config))
    category = FIRST_CATEGORY + draw.below(2, CATEGORIES)
    initial = _price(draw, 4)
    reserve = initial + _price(draw, 6)
    time = _milliseconds(event, config)
    horizon = _milliseconds(event + config.in_flight * config.round // config.auctions, config) - time
    expires = time + 1 + draw.below(3, np.maximum(2 * horizon, 1))
    item, description = words(draw, 10, 20), words(draw, 30, 100)
    used = 48 + _lengths(item) + _lengths(description)
    extra = extras(draw, 8, config.seed * 8 + _TEXT, used, config.auction_size)
    identity = FIRST_ID + _last_auction(event, config)
    times = (_times(time), _times(expires))
    return _batch(
        "auction", identity, item, description, initial, reserve, *times, FIRST_ID + seller, category, extra
    )


def _bids(event: Ints, config: Config) -> pa.RecordBatch:
    draw = Draws(event, seed=config.seed * 8 + _BIDS)
    last_auction, last_person = _last_auction(event, config), _last_person(event, config)
    hot_auction = last_auction // HOT_BATCH * HOT_BATCH
    hot_bidder = last_person // HOT_BATCH * HOT_BATCH + 1
    some_auction = _some_auction(draw, 1, last_auction, config)
    some_bidder = _some_person(draw, 3, last_person, config)
    auction = np.where(draw.hits(0, config.hot_auctions), hot_auction, some_auction)
    bidder = np.where(draw.hits(2, config.hot_bidders), hot_bidder, some_bidder)
    bidder += 2 * FIRST_ID if config.bidders_apart else FIRST_ID
    channels, urls = _channels(config.seed)
    hot_channel, channel = draw.below(6, len(HOT_CHANNELS)), draw.below(7, CHANNELS) + len(HOT_CHANNELS)
    channel = np.where(draw.hits(8, 2), hot_channel, channel)
    extra = extras(draw, 10, config.seed * 8 + _TEXT, 32, config.bid_size)
    time = _times(_milliseconds(event, config))
    return _batch(
        "bid",
        FIRST_ID + auction,
        bidder,
        _price(draw, 4),
        channels.take(channel),
        urls.take(channel),
        time,
        extra,
    )


_MAKERS: Mapping[str, Callable[[Ints, Config], pa.RecordBatch]] = {
    "person": _persons,
    "auction": _auctions,
    "bid": _bids,
}


def _last_person(event: Ints, config: Config) -> Ints:
    """The last person that there is at an event, counted from 0."""
    rounds = event // config.round
    return rounds * config.persons + np.minimum(event - rounds * config.round, config.persons - 1)


def _last_auction(event: Ints, config: Config) -> Ints:
    """The last auction that there is at an event, counted from 0; -1 before the first."""
    rounds = event // config.round
    place = event - rounds * config.round - config.persons
    return rounds * config.auctions + np.minimum(np.maximum(place, -1), config.auctions - 1)


def _some_person(draw: Draws, field: int, last: Ints, config: Config) -> Ints:
    active = np.minimum(last + 1, config.active)
    return last + 1 - active + draw.below(field, active + LEAD)


def _some_auction(draw: Draws, field: int, last: Ints, config: Config) -> Ints:
    oldest = np.maximum(last - config.in_flight, 0)
    return oldest + draw.below(field, last - oldest + 1 + LEAD)


def _price(draw: Draws, field: int) -> Ints:
    """Cents, from 1 to a million units: every power of ten has as many."""
    return np.floor(np.exp(draw.fractions(field) * np.log(1e6)) * 100 + 0.5).astype(np.int64)


def _milliseconds(event: Ints, config: Config) -> Ints:
    return config.base_time + (event * (1e6 / config.rate)).astype(np.int64) // 1000


def _times(milliseconds: Ints) -> pa.Array:
    return pa.array(milliseconds * 1000).view(_ARROW["TIMESTAMP"])


def _lengths(texts: pa.Array) -> Ints:
    return pc.binary_length(texts).to_numpy().astype(np.int64)


def _batch(name: str, *columns: pa.Array | Ints) -> pa.RecordBatch:
    arrays = [pa.array(column) if isinstance(column, np.ndarray) else column for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=schema(name))


@cache
def _channels(seed: int) -> tuple[Texts, Texts]:
    """The channels and their urls, the hot ones first."""
    draw = Draws(np.arange(len(HOT_CHANNELS) + CHANNELS), seed=seed * 8 + _URLS)
    folders = [words(draw, field, 5, "_").to_pylist() for field in (10, 20, 30)]
    with_id = draw.hits(0, 10)
    urls = []
    for number, path in enumerate(zip(*folders, strict=True)):
        url = f"https://www.nexmark.com/{'/'.join(path)}/item.htm?query=1"
        channel = number - len(HOT_CHANNELS)
        if channel >= 0 and with_id[number]:
            url += f"&channel_id={_reversed(channel)}"
        urls.append(url)
    return Texts([*HOT_CHANNELS, *(f"channel-{n}" for n in range(CHANNELS))]), Texts(urls)


def _reversed(number: int) -> int:
    """The 32 bits of a number from back to front, without their sign."""
    backwards = int(f"{number:032b}"[::-1], 2)
    return backwards if backwards < 1 << 31 else (1 << 32) - backwards


def side_input(rows: int = 10_000) -> pa.Table:
    """The relation that q13 looks up: numbers and themselves."""
    numbers = np.arange(rows, dtype=np.int64)
    return pa.table({"key": numbers, "value": numbers})
