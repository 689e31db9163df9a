"""A database inside out: a durable log of changes, and views over it that Spark keeps up to date."""

from evert.consumer import Consumer
from evert.database import Database, open
from evert.errors import EvertError
from evert.queue import Queue
from evert.topics import Stream, Table
from evert.transaction import Transaction
from evert.version import __version__
from evert.views import View

__all__ = [
    "Consumer",
    "Database",
    "EvertError",
    "Queue",
    "Stream",
    "Table",
    "Transaction",
    "View",
    "__version__",
    "open",
]
