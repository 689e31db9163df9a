"""What is committed? One transaction under log, state and views."""

from evert.catalog.leases import Lease, acquire, release
from evert.catalog.protocol import Catalog, Transaction
from evert.catalog.sqlite import SqliteCatalog

__all__ = ["Catalog", "Lease", "SqliteCatalog", "Transaction", "acquire", "release"]
