"""What `evert demo` tells: a shop opens, lives through a few mishaps, and everything is proved in the end."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evert.database import Database
from evert.database import open as open_database
from evert.demo.keeping import Keeper, Said
from evert.demo.life import AHEAD, PHONE, READER, STEP, WRONG, Shop
from evert.errors import Disproved

SPEED = 60
"""How many times as fast as ours the time of the shop goes by."""
_READ = 0.4
"""The part of the whole after which the reader unfollows."""
Say = Callable[[str], None]


@dataclass
class Ran:
    """What is remembered for the summary."""

    waited: int = 0
    paused: float = 0.0
    late: int = 0
    author: int | None = None
    brought: int = 0
    unfollowed: bool = False
    killed: bool = False


class Story:
    """The shop's day, from opening to proof, in so many seconds."""

    def __init__(self, folder: Path, *, seconds: float, crash: bool, say: Say) -> None:
        self._folder = folder
        self._steps = max(40, round(seconds / (STEP.total_seconds() / SPEED)))
        self._crash = crash
        self._say = say
        self._ran = Ran()
        self._epochs: list[Said] = []

    def tell(self) -> None:
        begun = time.monotonic()
        with open_database(self._folder) as db:
            self._say("Starting Spark and defining the shop: streams, tables and views of every kind ...")
            self._keeper = Keeper(self._folder)
            try:
                views = self._keeper.wait("defined")[-1]["defined"]
                self._say(f"{views} views are defined. They are built over what is there in the morning ...")
                shop = Shop(db)
                shop.open()
                shop.step()
                self._keeper.order("build")
                self._keeper.wait("built")
                self._say("The shop opens. A minute of it takes a second.")
                self._keeper.order("go")
                self._live(db, shop)
                self._say(
                    "\nThe shop closes. Every view is computed anew by plain Spark SQL and compared ..."
                )
                self._keeper.order("prove")
                proofs = [said for said in self._keeper.wait("proved") if "view" in said]
            finally:
                self._epochs += self._keeper.epochs
                self._keeper.end()
            for line in summary(db, shop, self._ran, self._epochs):
                self._say(line)
            wrong = [proof for proof in proofs if not proof["holds"]]
            if wrong:
                first = wrong[0]
                raise Disproved(
                    f"the view {first['view']} is wrong: it lacks {first['missing']} and has {first['unexpected']}",
                    **first,
                )
            rows = sum(proof["rows"] for proof in proofs)
            self._say(
                f"\nProved: {len(proofs)} views with {rows:,} rows are exactly what plain Spark SQL makes of the"
                f" whole log ({time.monotonic() - begun:.0f} s in all)."
            )

    def _live(self, db: Database, shop: Shop) -> None:
        acts = self._acts(shop)
        due = time.monotonic()
        for number in range(self._steps):
            for at, act in acts:
                if number == round(at * self._steps):
                    act()
            if number > self._steps * _READ and not self._ran.unfollowed:
                self._unfollow(db, shop)
            shop.step()
            due += STEP.total_seconds() / SPEED
            time.sleep(max(0.0, due - time.monotonic()))

    def _unfollow(self, db: Database, shop: Shop) -> None:
        """As soon as the reader has something of the author; the processor may have been busy, or away."""
        ran = self._ran
        ran.brought = posts_of(db.views["timelines"].rows(), ran.author)
        if ran.author is not None and ran.brought:
            shop.unfollow(ran.author)
            ran.unfollowed = True
            self._say(
                f"  {shop.at:%H:%M}  ... has {ran.brought} recent posts of person {ran.author}, and unfollows"
            )

    def _acts(self, shop: Shop) -> list[tuple[float, Callable[[], None]]]:
        """What happens when, as a part of the whole."""
        clock = lambda: f"{shop.at:%H:%M}"  # noqa: E731
        ran = self._ran

        def tax() -> None:
            self._say(f"  {clock()}  the tax in CH goes up from 20 to 22.5 %")
            shop.raise_tax("CH", "22.5")

        def offline() -> None:
            self._say(f"  {clock()}  {PHONE} has lost its connection, and keeps what it would send")
            shop.offline = True

        def follow() -> None:
            ran.author = shop.stranger()
            shop.follow(ran.author)
            self._say(f"  {clock()}  person {READER} follows person {ran.author}")

        def stop() -> None:
            self._begun, self._held = time.monotonic(), shop.events
            if self._crash:
                self._say(f"  {clock()}  the process that keeps the views is killed (kill -9)")
                self._epochs += self._keeper.epochs
                self._keeper.kill()
                self._keeper = Keeper(self._folder)
                ran.killed = True
            else:
                self._say(f"  {clock()}  the processor pauses; events go on coming in")
                self._keeper.order("pause")

        def go() -> None:
            if self._crash:
                self._keeper.wait("defined")
            ran.paused, ran.waited = time.monotonic() - self._begun, shop.events - self._held
            self._say(f"  {clock()}  it goes on, {ran.waited:,} events behind")
            self._keeper.order("go")

        def back() -> None:
            ran.late = shop.come_back()
            self._say(f"  {clock()}  {PHONE} is back, and sends {ran.late} requests that are late")

        return [
            (0.1, tax),
            (0.2, offline),
            (0.3, follow),
            (0.5, stop),
            (0.65, go),
            (0.8, back),
        ]


def posts_of(rows: list[dict[str, Any]], author: int | None) -> int:
    """How many posts of somebody are in the reader's timeline."""
    return sum((row["follower"], row["author"]) == (READER, author) for row in rows)


def summary(db: Database, shop: Shop, ran: Ran, epochs: list[Said]) -> list[str]:
    """What one could see, with its figures."""
    answers = {name: answer.rows.to_pylist() for name, answer in db.answers().items()}
    status = {one.name: one for one in db.status()}
    return [
        "",
        *_of_joins(answers, ran),
        *_of_time(answers, status, ran, shop),
        *_of_tables(answers),
        *_of_epochs(epochs, shop),
    ]


def _of_joins(answers: dict[str, list[dict[str, Any]]], ran: Ran) -> list[str]:
    through = answers["click_through"]
    searches, clicked = (sum(row[name] for row in through) for name in ("searches", "clicked"))
    rates: dict[Any, int] = {}
    for row in answers["invoices"]:
        if row["country"] == "CH":
            rates[row["percent"]] = rates.get(row["percent"], 0) + 1
    taxed = ", ".join(f"{count} at {percent} %" for percent, count in sorted(rates.items()))
    longest = max((row["place"] for row in answers["timelines"]), default=0)
    left = posts_of(answers["timelines"], ran.author)
    followed = f"; following person {ran.author} brought {ran.brought}, unfollowing left {left}"
    return [
        f"Click-through     {searches:,} searches, {100 * clicked / max(searches, 1):.0f} % of them opened within"
        " an hour",
        f"Taxes             orders in CH, each by the rate of its time: {taxed}",
        f"Timelines         at most {longest} posts each{followed if ran.unfollowed else ''}",
    ]


def _of_time(
    answers: dict[str, list[dict[str, Any]]], status: dict[str, Any], ran: Ran, shop: Shop
) -> list[str]:
    rate = [float(row["per_second"]) for row in sorted(answers["request_rate"], key=_start)][1:-1]
    middle = statistics.median(rate) if rate else 0.0
    peak = max(rate, default=0.0)
    why = "was killed" if ran.killed else "paused"
    corrected = sum(row["corrected"] for row in answers["energy"])
    return [
        f"Requests          {middle:.1f} a second, never more than {peak:.1f}, though the processor {why} for"
        f" {ran.paused:.0f} s and then took in {ran.waited:,} events at once: time is that of the events",
        f"Stragglers        {ran.late} requests came late from {PHONE};"
        f" request_rate counts {status['request_rate'].corrections} corrections",
        f"Clocks            {WRONG} is {AHEAD.seconds // 60} minutes ahead: {corrected:,} of its readings were put"
        " right",
        f"Visits            {len(answers['visits']):,}, the longest with"
        f" {max((row['requests'] for row in answers['visits']), default=0)} requests",
    ]


def _of_tables(answers: dict[str, list[dict[str, Any]]]) -> list[str]:
    put, out = (sum(row[name] for row in answers["considered"]) for name in ("put_in", "taken_out"))
    last = max(answers["visitors"], key=_start, default=None)
    sketch = "" if last is None else f"{last['exact']} exactly, {last['estimate']} by a sketch"
    store = ", ".join(
        f"{row['product']} {row['pieces']}"
        for row in sorted(answers["stock"], key=lambda row: row["product"])[:4]
    )
    return [
        f"Carts             {put:,} things put in, {out:,} taken out again, both remembered",
        f"Store             {store}, ...; returns are back in it",
        f"Visitors          of the last ten minutes: {sketch}",
    ]


def _of_epochs(epochs: list[Said], shop: Shop) -> list[str]:
    spent = [said["milliseconds"] for said in epochs]
    if not spent:
        return []
    return [
        f"Epochs            {len(epochs)} took in {sum(said['rows'] for said in epochs):,} events and changed"
        f" {sum(said['changed'] for said in epochs):,} rows of views,"
        f" {statistics.median(spent):.0f} ms each (median)",
    ]


def _start(row: dict[str, Any]) -> Any:
    return row["window"]["start"]
