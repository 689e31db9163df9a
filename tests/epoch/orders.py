"""A small shop: a stream of orders, a table of customers, and the join of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import evert

JOINED = "SELECT o.id, o.amount, c.country FROM orders o JOIN customers c ON o.customer = c.id"


@contextmanager
def opened(folder: Path) -> Iterator[evert.Database]:
    """The shop with four customers and no orders."""
    with evert.open(folder / "db", background=False) as made:
        made.stream("orders", "id INT, customer INT, amount INT")
        made.table("customers", "id INT, country STRING", key="id")
        made.topic("customers").upsert([{"id": n, "country": "AB"[n % 2]} for n in range(4)])
        yield made


def right(db: evert.Database) -> bool:
    """Whether all views are what Spark makes of the log."""
    return all(proof.holds for proof in db.prove())
