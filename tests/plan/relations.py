"""The relations that the queries of these tests read, and random rows of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa

from evert.delta import Versions
from evert.plan.planner import Planner

BID = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("tags", pa.list_(pa.field("element", pa.string()))),
        ("attrs", pa.map_(pa.string(), pa.int32())),
        ("amount", pa.decimal128(10, 2)),
        ("score", pa.float64()),
        ("took", pa.duration("us")),
    ]
)
AUCTION = pa.schema(
    [("id", pa.int64()), ("seller", pa.int64()), ("category", pa.int32()), ("reserve", pa.int64())]
)
PERSON = pa.schema([("id", pa.int64()), ("name", pa.string()), ("state", pa.string())])
START = datetime(2026, 1, 1, tzinfo=UTC)


def planner(spark) -> Planner:
    """A planner that knows a stream, a table and a view."""
    made = Planner(spark)
    made.relations.register("bid", "stream", BID, "t1", (), True)
    made.relations.register(
        "auction", "table", AUCTION, "t2", ("id",), False, versions=Versions(AUCTION, (0,))
    )
    made.relations.register("person", "view", PERSON, "vperson", ("id",), False)
    return made


class World:
    """Rows that come epoch by epoch; what the relations hold is kept beside."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._epoch = 0
        self.bids: list[tuple] = []
        self.auctions: dict[int, tuple] = {}
        self.changes: list[tuple] = []
        self.people: dict[int, tuple] = {}

    def epoch(self, rows: int = 12) -> dict[str, pa.Table]:
        """The next deltas, by leaf."""
        self._epoch += 1
        bids = [self._bid() for _ in range(rows)]
        self.bids += bids
        changes = []
        for _ in range(rows):
            row = (self._small(), self._maybe(self._small()), self._maybe(self._small(3)), self._small(40))
            row = (row[0], row[1], row[2], self._maybe(row[3]))
            gone = self._random.random() < 0.3
            changes.append((*row, self._epoch, len(self.changes), gone))
            self.changes.append((*row, self._now(), self._epoch, len(self.changes), gone))
            if gone:
                self.auctions.pop(row[0], None)
            else:
                self.auctions[row[0]] = row
        people = []
        for _ in range(rows // 2):
            person = (self._small(), self._maybe(self._word()), self._word())
            if old := self.people.pop(person[0], None):
                people.append((*old, -1))
            if self._random.random() < 0.7:
                self.people[person[0]] = person
                people.append((*person, 1))
        system = [
            pa.field("_position", pa.int64()),
            pa.field("_offset", pa.int64()),
            pa.field("_deleted", pa.bool_()),
        ]
        return {
            "t1": _delta(BID, [(*row, 1) for row in bids]),
            "t2": _delta(AUCTION, [(*row, 1) for row in changes], system),
            "t2v": _delta(Versions(AUCTION, (0,)).taken, [(*row, 1) for row in self.changes[-rows:]], system),
            "vperson": _delta(PERSON, people),
        }

    def tables(self) -> dict[str, pa.Table]:
        """What the relations hold now."""
        return {
            "bid": _table(BID, self.bids),
            "auction": _table(AUCTION, list(self.auctions.values())),
            "auction.versions": _table(Versions(AUCTION, (0,)).shown, self._versions()),
            "person": _table(PERSON, list(self.people.values())),
        }

    def _now(self) -> datetime:
        return START + timedelta(seconds=8 * self._epoch)

    def _versions(self) -> list[tuple]:
        """The last change of an auction in each epoch, up to the next epoch that changes it."""
        found = []
        for auction in {change[0] for change in self.changes}:
            last = {change[4]: change for change in self.changes if change[0] == auction}
            times = [change[4] for change in last.values()]
            for change, end in zip(last.values(), [*times[1:], None], strict=True):
                if not change[-1]:
                    found.append((*change[:4], change[6], change[4], end))
        return found

    def _bid(self) -> tuple:
        maybe, small = self._maybe, self._small
        tags = [maybe(self._word()) for _ in range(small(4))]
        attrs = [(word, maybe(small())) for word in {self._word() for _ in range(small(3))}]
        return (
            maybe(small()),
            maybe(small()),
            maybe(small(30)),
            maybe(self._word()),
            maybe(START + timedelta(seconds=small(60))),
            maybe(tags),
            maybe(attrs),
            maybe(Decimal(small(10_000)) / 100),
            maybe(self._random.choice([0.0, -0.0, float("nan"), 1.5, -2.25, 1e6])),
            maybe(timedelta(milliseconds=small(5000))),
        )

    def _small(self, below: int = 8) -> int:
        return self._random.randrange(below)

    def _word(self) -> str:
        return self._random.choice(["a", "b", "Google", "Apple", "x y"])

    def _maybe(self, value):
        return None if self._random.random() < 0.15 else value


def _table(schema: pa.Schema, rows: list[tuple]) -> pa.Table:
    return pa.table(
        [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)], schema=schema
    )


def _delta(schema: pa.Schema, rows: list[tuple], more: list[pa.Field] = ()) -> pa.Table:
    numbered = [pa.field(f"c{at}", field.type) for at, field in enumerate(schema)]
    return _table(pa.schema([*numbered, *more, pa.field("__w", pa.int64())]), rows)
