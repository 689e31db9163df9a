"""What a node has given so far, all of it: for a node that is put on top of it later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import pyarrow as pa

from evert.delta.operator import Operator

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


@runtime_checkable
class Remembers(Operator, Protocol):
    """An operator whose state is enough to give again what it has given."""

    def content(self, state: NodeState) -> Iterator[pa.Table]:
        """The sum of all deltas so far in pieces, without any row that is not there."""


@dataclass(frozen=True)
class Content:
    """Gives what another operator has given so far, and leaves its state as it is."""

    of: Remembers

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return ()

    @property
    def output(self) -> pa.Schema:
        return self.of.output

    def prepare(self, port: int, rows: pa.Table, bits: int) -> pa.Table:
        raise TypeError("what a node has given is in its state: nothing comes in")

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        yield from self.of.content(state)
