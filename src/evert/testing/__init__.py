"""Doubles for tests: the same contracts in memory, and a clock that moves only when told."""

from evert.testing.catalog import MemoryCatalog
from evert.testing.clock import ManualClock
from evert.testing.log import MemoryLog

__all__ = ["ManualClock", "MemoryCatalog", "MemoryLog"]
