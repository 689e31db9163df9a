"""Leases with fencing tokens: one holder at a time, and a holder that lost its lease cannot commit.

A lease is a row in the catalog. Its token grows whenever it changes hands. Work done under a lease checks the
token in its own transaction: a holder that slept through its time finds the token gone and fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from evert.catalog.protocol import Catalog, Transaction
from evert.errors import Fenced

MOST = 3_600_000_000
"""The longest time for which a lease is ever taken, in microseconds."""


@dataclass(frozen=True)
class Lease:
    """A name held by an owner; `check` it inside every transaction that relies on it."""

    name: str
    owner: str
    token: int

    def check(self, tx: Transaction) -> None:
        row = tx.one("SELECT token FROM leases WHERE name = ?", self.name)
        if row is None or row[0] != self.token:
            raise Fenced(f"the lease {self.name!r} has gone to another holder")


def acquire(catalog: Catalog, name: str, owner: str, duration: int) -> Lease | None:
    """The lease, taken or renewed for some microseconds; None while another owner holds it.

    A lease that ends in a future that no lease reaches was taken by a clock that went wrong: it is over.
    """

    def work(tx: Transaction) -> Lease | None:
        row = tx.one("SELECT owner, token, until FROM leases WHERE name = ?", name)
        held = row is not None and row[0] != owner and tx.now < row[2] <= tx.now + MOST
        if held:
            return None
        token = 1 if row is None else row[1] + (row[0] != owner)
        tx.run(
            "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE"
            " SET owner = excluded.owner, token = excluded.token, until = excluded.until",
            name,
            owner,
            token,
            tx.now + duration,
        )
        return Lease(name, owner, token)

    return catalog.write(work)


def release(catalog: Catalog, lease: Lease) -> None:
    """Give the lease up. The row stays, so that tokens never repeat."""
    sql = "UPDATE leases SET until = 0, owner = '' WHERE name = ? AND token = ?"
    catalog.write(lambda tx: tx.run(sql, lease.name, lease.token))
