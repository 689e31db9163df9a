"""What another node keeps of the keys that an epoch changes, and what comes in, together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from evert.delta.operator import pieces
from evert.delta.touched import Touched
from evert.trace.consolidate import summed

if TYPE_CHECKING:
    from evert.trace.shard import NodeState


@dataclass(frozen=True)
class Together(Touched):
    """Like `Touched`, but of a key's rows only those of the delta, and what `Swap` made of all that came before.

    Parts of sketches go in, one for each key and piece of an epoch. What comes out is merged by Spark, and the one
    sketch that it is then is kept by `Swap` above, in whose state it is found the next time. So this has no state
    of its own, and the node must be one that reads the state of the `Swap`.
    """

    def apply(self, deltas: Sequence[pa.Table | None], state: NodeState) -> Iterator[pa.Table]:
        (given,) = deltas
        given = self.layout.empty() if given is None else given
        delta = summed([given], whole_rows=False, stable=False, bits=state.bits)
        yield from pieces(self._present(delta, state))
