"""A process that defines, replaces and drops random views while rows are written; it may be killed at any time."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from tests.laws.choices import Dice
from tests.laws.views_grammar import Grammar, Relation

import evert
from evert.errors import EvertError

SETTINGS: dict[str, Any] = {"background": False, "shards": 2, "seal_rows": 200, "spill_bytes": 2_000}
TOPICS = (
    Relation("e", (("id", "int"), ("k", "int"), ("word", "str"), ("x", "dec")), 15, append_only=True),
    Relation("t", (("id", "int"), ("k", "int"), ("word", "str")), 15),
)
MOST_VIEWS = 8


def make(folder: Path) -> None:
    with evert.open(folder, **SETTINGS) as db:
        db.stream("e", "id INT, k INT, word STRING, x DECIMAL(10,2)")
        db.table("t", "id INT, k INT, word STRING", key="id")


def churn(db: evert.Database, seed: int, log: Path) -> None:
    """Go on for ever; each definition that was accepted is a line in the log."""
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        write(db, chance, number)
        views = db.views
        name = chance.choice([*views, f"v{chance.randrange(30)}"])
        try:
            if len(views) >= MOST_VIEWS or chance.random() < 0.15:
                db.drop(name)
            else:
                grammar = Grammar(Dice(chance.randrange(2**40)), list(TOPICS))
                db.view(name, grammar.view(recomputed=chance.random() < 0.05).sql, replace=name in views)
                with log.open("a") as lines:
                    print(name, file=lines)
        except EvertError:
            pass  # refused, as what another view reads is
        if chance.random() < 0.7:
            db.refresh(timeout=300)


def write(db: evert.Database, chance: random.Random, number: int) -> None:
    words = ["a", "b", "", None]
    rows = [
        {"id": chance.randrange(8), "k": chance.choice([0, 1, 2, None]), "word": chance.choice(words)}
        for _ in range(chance.randint(1, 5))
    ]
    with db.transaction() as tx:
        tx.append("e", [row | {"x": None} for row in rows])
        tx.upsert("t", list({row["id"]: row for row in rows}.values()))
        if number % 3 == 0:
            tx.delete("t", [{"id": chance.randrange(8)}])


if __name__ == "__main__":
    with evert.open(Path(sys.argv[1]), **SETTINGS) as opened:
        churn(opened, int(sys.argv[2]), Path(sys.argv[3]))
