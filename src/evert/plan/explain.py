"""The plan as a drawn tree, the output at its top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evert.plan.graph import ExplainLine, How


@dataclass(frozen=True)
class Drawing:
    """A part of a plan and what it is fed by."""

    text: str
    children: tuple[Drawing, ...] = ()
    node: str | None = None

    def lines(self, how: Mapping[str, How], depth: int = 0) -> Iterator[ExplainLine]:
        """The part and what is below it; a node that reads more than changes says how it is kept."""
        text = self.text
        if self.node is not None:
            kept = how[self.node]
            text += f" [{self.node}]" if kept == "incremental" else f" [{self.node}, {kept}]"
        yield ExplainLine(depth, text, self.node)
        for child in self.children:
            yield from child.lines(how, depth + 1)
