"""A shop with two views, served; one for all tests of a module."""

from __future__ import annotations

import pytest
from tests.serve.serving import serving

import evert

REVENUE = """SELECT country, sum(amount) AS revenue, count(*) AS orders
FROM orders JOIN customers ON customer = customers.id GROUP BY country"""
LARGE = "SELECT id, amount FROM orders WHERE amount >= 100"


@pytest.fixture(scope="module")
def shop(spark, tmp_path_factory):
    with evert.open(tmp_path_factory.mktemp("serve") / "shop.evert") as db:
        db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2), at TIMESTAMP", event_time="at")
        db.table("customers", "id BIGINT, country STRING", key="id")
        db.topic("customers").upsert([{"id": 1, "country": "CH"}, {"id": 2, "country": "DE"}])
        db.topic("orders").append(
            [{"id": n, "customer": 1 + n % 2, "amount": f"{n}.50"} for n in range(1, 201)]
        )
        db.view("revenue", REVENUE, key="country", comment="Revenue by country.")
        db.view("large", LARGE)
        db.refresh()
        yield db


@pytest.fixture(scope="module")
def client(shop):
    with serving(shop) as client:
        yield client


@pytest.fixture
def db(tmp_path):
    """A database without views, which needs no Spark."""
    with evert.open(tmp_path / "shop.evert") as db:
        db.stream("orders", "id BIGINT, customer BIGINT, amount DECIMAL(10,2)")
        db.table("customers", "id BIGINT, country STRING", key="id")
        yield db
