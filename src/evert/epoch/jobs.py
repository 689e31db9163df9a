"""Prepared jobs that will be run again, as many as there is memory for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable

from evert.epoch.job import Job

MOST_JOBS = 64
MOST_NODES = 500
"""Of all kept jobs together: a plan grows with its nodes, and those of many large queries would fill the JVM."""


class Jobs:
    """One job for each set of nodes that an epoch reached; those that were not used for longest go first."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Job, int]] = {}

    def get(self, key: Hashable, nodes: int, make: Callable[[], Job]) -> Job:
        """The job of a key, or a new one of so many nodes. Room for it is made before it is."""
        found = self._kept.pop(key, None)
        if found is None:
            self._make_room(nodes)
            found = make(), nodes
        self._kept[key] = found
        return found[0]

    def forget(self, key: Hashable) -> None:
        """The job of this key is not kept any longer."""
        self._kept.pop(key, None)

    def __len__(self) -> int:
        return len(self._kept)

    def _make_room(self, nodes: int) -> None:
        before = len(self._kept)
        while self._kept and (
            len(self._kept) >= MOST_JOBS or nodes + sum(size for _, size in self._kept.values()) > MOST_NODES
        ):
            del self._kept[next(iter(self._kept))]
        if before and not self._kept:
            gc.collect()  # what Python holds of the JVM's objects is let go with its own
