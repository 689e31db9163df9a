"""What does a change do to a node? Operators that turn the deltas of their inputs into their own."""

from evert.delta.accumulate import Function
from evert.delta.aggregate import Aggregate
from evert.delta.join import Join
from evert.delta.operator import DataError, Operator
from evert.delta.output import Output
from evert.delta.semi import Semi
from evert.delta.swap import Swap
from evert.delta.top import Order, Top
from evert.delta.touched import Touched
from evert.delta.upsert import Upsert
from evert.delta.versions import Versions

__all__ = [
    "Aggregate",
    "DataError",
    "Function",
    "Join",
    "Operator",
    "Order",
    "Output",
    "Semi",
    "Swap",
    "Top",
    "Touched",
    "Upsert",
    "Versions",
]
