"""The life of the shop: people ask for pages, search, open, fill carts, buy, return, write and follow."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evert.database import Database

BEGIN = datetime(2026, 6, 1, 9, tzinfo=UTC)
STEP = timedelta(seconds=15)
"""The shop's life goes on in steps of so long, each of them one commit."""
PHONE = "phone-7"
WRONG = "meter-3"
"""The meter whose clock is an hour ahead."""
AHEAD = timedelta(hours=1)
PRODUCTS = ("kettle", "lamp", "chair", "globe", "clock", "teapot", "shelf", "radio")
COUNTRIES = ("AT", "CH", "DE", "FR", "IT")
PAGES = ("/", "/search", "/product", "/cart", "/orders")
PLANS = ("free", "plus", "pro")
DEVICES = ("desk-1", "desk-2", "phone-5", "phone-6", PHONE)
METERS = ("meter-1", "meter-2", WRONG)
VISITORS, PEOPLE = 400, 30
READER = 1
"""The person whose timeline is told of: follows and unfollows only when told to."""
_WORDS = ("red", "small", "old", "quiet", "large", "green", "cheap", "round")
Row = dict[str, Any]


class Shop:
    """What happens is chance, but the same for the same seed; `held` is what the phone could not send."""

    def __init__(self, db: Database, seed: int = 1) -> None:
        self._db = db
        self._chance = random.Random(seed)
        self._number = 0
        self._recent: list[Row] = []
        self._carts: list[tuple[int, str]] = []
        self._sold: list[int] = []
        self._posts: list[int] = []
        self._wrote: list[int] = []
        self._read: set[int] = set()
        self.offline = False
        self.held: list[Row] = []
        self.at = BEGIN
        self.events = 0

    def open(self) -> None:
        """What is there in the morning."""
        before = BEGIN - timedelta(hours=1)
        choice = self._chance.choice
        profiles = [{"visitor": n, "plan": choice(PLANS), "since": before} for n in range(VISITORS)]
        rates = [{"country": name, "percent": Decimal("20.0"), "since": before} for name in COUNTRIES]
        pairs = {(self._person(), self._person()) for _ in range(5 * PEOPLE)}
        self._read = {author for follower, author in pairs if follower == READER}
        with self._db.transaction() as tx:
            tx.upsert("profiles", profiles)
            tx.upsert("tax_rates", rates)
            tx.upsert("follows", [{"follower": one, "author": two} for one, two in pairs if one != two])
            tx.append("deliveries", [{"product": one, "pieces": 500, "at": before} for one in PRODUCTS])

    def step(self) -> None:
        """What happens in the next few seconds of the shop, in one commit."""
        self.at += STEP
        writes: dict[str, list[Row]] = {
            "requests": self._requests(),
            "searches": self._searches(),
            "clicks": self._clicks(),
            "cart_changes": self._cart(),
            "orders": self._orders(),
            "meters": self._readings(),
        }
        with self._db.transaction() as tx:
            for name, rows in writes.items():
                if rows:
                    tx.append(name, rows)
            sold = [{name: row[name] for name in ("id", "product", "pieces")} for row in writes["orders"]]
            if sold:
                tx.upsert("sales", sold)
            self._changes(tx)
        self.events += sum(map(len, writes.values()))

    def raise_tax(self, country: str, percent: str) -> None:
        """From now on; orders of before keep the rate that they had."""
        row = {"country": country, "percent": Decimal(percent), "since": self.at}
        self._table("tax_rates").upsert(row)

    def come_back(self) -> int:
        """The phone is online again, and sends what it could not; how much that is."""
        late, self.held, self.offline = self.held, [], False
        if late:
            self._stream("requests").append(late)
        return len(late)

    def stranger(self) -> int:
        """Who wrote last of those whom the reader does not follow."""
        return next(one for one in reversed(self._wrote) if one != READER and one not in self._read)

    def follow(self, author: int) -> None:
        self._table("follows").upsert({"follower": READER, "author": author})

    def unfollow(self, author: int) -> None:
        self._table("follows").delete({"follower": READER, "author": author})

    def _table(self, name: str) -> Any:
        return self._db.topic(name)

    _stream = _table

    def _requests(self) -> list[Row]:
        rows = [
            {
                "visitor": self._visitor(),
                "device": self._chance.choice(DEVICES),
                "page": self._chance.choice(PAGES),
                "milliseconds": self._tenths(self._chance.lognormvariate(4.5, 0.9)),
                "at": self._moment(),
            }
            for _ in range(self._about(45))
        ]
        if not self.offline:
            return rows
        self.held += [row for row in rows if row["device"] == PHONE]
        return [row for row in rows if row["device"] != PHONE]

    def _searches(self) -> list[Row]:
        rows = [
            {
                "id": self._next(),
                "visitor": self._visitor(),
                "words": f"{self._chance.choice(_WORDS)} {self._chance.choice(PRODUCTS)}",
                "at": self._moment(),
            }
            for _ in range(self._about(10))
        ]
        self._recent = (self._recent + rows)[-200:]
        return rows

    def _clicks(self) -> list[Row]:
        """Some searches are followed by a click, most of them soon."""
        chosen = [row for row in self._recent[-40:] if self._chance.random() < 0.12]
        self._recent = [row for row in self._recent if row not in chosen]
        return [
            {
                "search": row["id"],
                "product": row["words"].split()[1],
                "at": max(row["at"], self._moment()),
            }
            for row in chosen
        ]

    def _cart(self) -> list[Row]:
        put = [(self._visitor(), self._chance.choice(PRODUCTS)) for _ in range(self._about(7))]
        gone = [one for one in self._carts if self._chance.random() < 0.05]
        self._carts = [one for one in self._carts if one not in gone][-100:] + put
        signed = [(one, 1) for one in put] + [(one, -1) for one in gone]
        return [
            {"visitor": visitor, "product": product, "pieces": pieces, "at": self._moment()}
            for (visitor, product), pieces in signed
        ]

    def _orders(self) -> list[Row]:
        rows: list[Row] = [
            {
                "id": self._next(),
                "visitor": self._visitor(),
                "product": self._chance.choice(PRODUCTS),
                "pieces": self._chance.randint(1, 3),
                "amount": Decimal(self._chance.randint(500, 20_000)) / 100,
                "country": self._chance.choice(COUNTRIES),
                "at": self._moment(),
            }
            for _ in range(self._about(5))
        ]
        self._sold += [row["id"] for row in rows]
        return rows

    def _readings(self) -> list[Row]:
        rows = []
        for meter in METERS:
            occurred = self._moment()
            sent = occurred + timedelta(seconds=self._chance.uniform(0, 2))
            off = AHEAD if meter == WRONG else timedelta()
            received = sent + timedelta(milliseconds=self._chance.uniform(20, 90))
            times = {"occurred": occurred + off, "sent": sent + off, "received": received}
            rows.append({"device": meter, **times, "watts": self._tenths(self._chance.gauss(400, 40))})
        return rows

    def _changes(self, tx: Any) -> None:
        """What changes in tables: posts come and go, people follow and do not, orders are returned."""
        chance = self._chance
        posts: list[Row] = [
            {"id": self._next(), "author": self._person(), "text": self._text(), "at": self._moment()}
            for _ in range(self._about(2))
        ]
        if posts:
            tx.upsert("posts", posts)
        self._wrote = (self._wrote + [row["author"] for row in posts])[-100:]
        self._posts = (self._posts + [row["id"] for row in posts])[-300:]
        if self._posts and chance.random() < 0.3:
            tx.delete("posts", self._posts.pop(chance.randrange(len(self._posts))))
        one, two = self._person(), self._person()
        if one not in (two, READER) and chance.random() < 0.5:
            pair = {"follower": one, "author": two}
            (tx.upsert if chance.random() < 0.6 else tx.delete)("follows", pair)
        if self._sold and chance.random() < 0.3:
            tx.delete("sales", self._sold.pop(chance.randrange(len(self._sold))))
        if chance.random() < 0.5:
            changed = {"visitor": self._visitor(), "plan": chance.choice(PLANS), "since": self.at}
            tx.upsert("profiles", changed)
        if chance.random() < 0.1:
            tx.append("deliveries", {"product": chance.choice(PRODUCTS), "pieces": 50, "at": self.at})

    def _text(self) -> str:
        return f"a {self._chance.choice(_WORDS)} {self._chance.choice(PRODUCTS)}, at last"

    @staticmethod
    def _tenths(number: float) -> Decimal:
        return Decimal(round(10 * number)) / 10

    def _about(self, number: float) -> int:
        return max(0, round(self._chance.gauss(number, number**0.5)))

    def _moment(self) -> datetime:
        return self.at - STEP * self._chance.random()

    def _visitor(self) -> int:
        """Some come often."""
        return int(VISITORS * self._chance.random() ** 2)

    def _person(self) -> int:
        return self._chance.randrange(PEOPLE)

    def _next(self) -> int:
        self._number += 1
        return self._number
