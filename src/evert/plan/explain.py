"""The plan as a drawn tree, the output at its top."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evert.plan.graph import ExplainLine


@dataclass(frozen=True)
class Drawing:
    """A part of a plan and what it is fed by."""

    text: str
    children: tuple[Drawing, ...] = ()
    node: str | None = None

    def lines(self, depth: int = 0) -> Iterator[ExplainLine]:
        text = f"{self.text} [{self.node}]" if self.node else self.text
        yield ExplainLine(depth, text, self.node)
        for child in self.children:
            yield from child.lines(depth + 1)
