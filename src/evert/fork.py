"""What happens to open databases when a process forks.

SQLite's connections do not survive a fork: the child would share the parent's file locks without holding
them. So they are closed before the fork, when no thread is using one, and opened again when they are needed.
Locks that other threads hold would stay locked in the child for ever: it makes new ones.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """Something that must be quiet during a fork, or begin anew after it."""

    def before_fork(self) -> None: ...

    def after_fork(self, *, child: bool) -> None: ...


_ALIVE: weakref.WeakSet[Forkable] = weakref.WeakSet()


def watch(thing: Forkable) -> None:
    """Tell this about forks for as long as it lives."""
    _ALIVE.add(thing)


def _before() -> None:
    for thing in list(_ALIVE):
        thing.before_fork()


def _after_in_parent() -> None:
    for thing in list(_ALIVE):
        thing.after_fork(child=False)


def _after_in_child() -> None:
    for thing in list(_ALIVE):
        thing.after_fork(child=True)


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
