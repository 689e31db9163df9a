"""Three small tables for queries of all kinds, with NULL and what is odd in them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa

from evert.schema.schema import Schema

nan = float("nan")
PEOPLE = "id BIGINT, name STRING, country STRING, age INT, score DOUBLE, born DATE"
ORDERS = "id BIGINT, person BIGINT, amount DECIMAL(10,2), at TIMESTAMP, note STRING"


def made(ddl: str, rows: list[tuple]) -> pa.Table:
    schema = Schema.parse(ddl).arrow
    return pa.table([pa.array([row[i] for row in rows], f.type) for i, f in enumerate(schema)], schema=schema)


def moment(day: int, hour: int) -> dt.datetime:
    return dt.datetime(2026, 3, day, hour, 59, 59, 999999, tzinfo=dt.UTC)


TABLES = {
    "people": made(
        PEOPLE,
        [
            (1, "Anna", "CH", 34, 1.5, dt.date(1990, 2, 28)),
            (2, "bert", "DE", 21, -0.0, dt.date(2000, 1, 1)),
            (3, "Élodie", "CH", None, None, None),
            (4, None, None, 56, nan, dt.date(1969, 12, 31)),
            (5, "", "AT", 21, float("inf"), dt.date(2000, 1, 1)),
            (6, "Anna", "DE", 40, 0.0, dt.date(1984, 2, 29)),
        ],
    ),
    "orders": made(
        ORDERS,
        [
            (1, 1, Decimal("19.90"), moment(1, 1), "a"),
            (2, 1, Decimal("0.10"), moment(1, 1), None),
            (3, 2, Decimal("-5.00"), moment(2, 23), "b%"),
            (4, None, Decimal("7.77"), None, ""),
            (5, 3, None, moment(2, 23), "x_y"),
            (6, 9, Decimal("99999999.99"), moment(3, 0), "é"),
        ],
    ),
    "none_": made("country STRING, age INT", []),
}
