"""What an epoch is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evert.epoch.replacing import Switch
from evert.epoch.reuse import Reuse
from evert.views.definition import Definition


@dataclass(frozen=True)
class Work:
    """Views that stand at one position, and the position they go to.

    `joins`: they become visible with this commit, and if they are built from nothing they are fed the views
    they read, which they have not seen before, whole. `switches`: replacements among the views that take
    their places with this commit. `forgets`: for topics, by id, the position up to which their events are
    taken back. `reuses`: for new views, by id, the state that they take over.
    """

    views: tuple[Definition, ...]
    upto: int
    joins: bool = False
    switches: tuple[Switch, ...] = ()
    forgets: Mapping[int, int] = field(default_factory=dict)
    reuses: Mapping[int, Reuse] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len({view.position for view in self.views}) != 1:
            raise ValueError("the views of an epoch stand at one position")

    @property
    def group(self) -> str:
        return self.views[0].group

    @property
    def after(self) -> int:
        return self.views[0].position

    @property
    def building(self) -> bool:
        return self.views[0].state == "building"
