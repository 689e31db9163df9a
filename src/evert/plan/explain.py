"""The plan as a drawn tree, the output at its top."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evert.plan.graph import ExplainLine


@dataclass(frozen=True)
class Drawing:
    """A part of a plan and what it is fed by."""

    text: str
    children: tuple[Drawing, ...] = ()
    node: str | None = None

    def lines(self, notes: Mapping[str, Sequence[str]], depth: int = 0) -> Iterator[ExplainLine]:
        """The part and what is below it; of a node its name is shown, and what there is to note about it."""
        text = self.text
        if self.node is not None:
            text += f" [{', '.join((self.node, *notes[self.node]))}]"
        yield ExplainLine(depth, text, self.node)
        for child in self.children:
            yield from child.lines(notes, depth + 1)
