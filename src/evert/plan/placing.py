"""Which nodes find their rows in the shard where they come from, so that nothing has to be exchanged.

A node that groups by `a, b` what another one has grouped by `a` needs no exchange: rows that are equal in `a` and
`b` are equal in `a`, so they are together already. The rows of a view without a key need not be together at all:
a node gives a row, and what takes it back, in one and the same shard.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evert.delta.output import Output
from evert.delta.placement import placement
from evert.plan.catalyst import Catalyst
from evert.plan.chains import Pipe, Select
from evert.plan.tree import Term

if TYPE_CHECKING:
    from evert.delta.operator import Operator
    from evert.plan.nodes import Port

Places = tuple[int, ...]
Placed = tuple[frozenset[int], ...]
"""The columns that decide where the rows of a source are; of those in one set each has the same value."""


def kept_by(
    catalyst: Catalyst, operator: Operator, ports: Sequence[Port], placed: Mapping[str, Placed | None]
) -> Places | None:
    """By which columns of its key an operator's rows are where they must be already; None if they are not.

    The columns are given by their places in the key. `placed` has those that decide where a node's rows are.
    """
    known = placement(operator)
    if known is None or anywhere(operator):
        return None
    # Rows of several sources meet if they are placed by the same columns of the key, of the same types.
    kinds = {tuple(port.kinds[place] for place in key) for port, key in zip(ports, known.ports, strict=True)}
    found = {
        _within(catalyst, pipe, port.terms, placed.get(pipe.source), key)
        for port, key in zip(ports, known.ports, strict=True)
        for pipe in port.pipes
    }
    return found.pop() if len(found) == len(kinds) == 1 else None


def stay(
    catalyst: Catalyst,
    operator: Operator,
    ports: Sequence[Port],
    placed: Mapping[str, Placed | None],
    kept: Places | None,
    single: Collection[str],
) -> list[list[bool]]:
    """For each pipe of each port, whether its rows are where they must be.

    All are if they are `kept`. Else rows are where the hash of the whole key says; those of a source that is placed
    by just that are there already, and the others come to them. If they may be anywhere, those of nodes stay; but
    where all are in one shard they are spread, except from sources that give a `single` row.
    """
    if anywhere(operator):
        spread = {source for source, by in placed.items() if by != () or source in single}
        return [[pipe.plain and pipe.source in spread for pipe in port.pipes] for port in ports]
    known = placement(operator)
    if kept is not None or known is None:
        return [[kept is not None] * len(port.pipes) for port in ports]
    keys = list(zip(ports, known.ports, strict=True))
    alike = len({tuple(port.kinds[place] for place in key) for port, key in keys}) == 1
    return [
        [
            alike
            and bool(key)
            and _within(catalyst, pipe, port.terms, placed.get(pipe.source), key) == tuple(range(len(key)))
            for pipe in port.pipes
        ]
        for port, key in keys
    ]


def placed_by(operator: Operator, kept: Places | None) -> Placed | None:
    """The columns of an operator's output that decide where its rows are, if they stayed or were exchanged."""
    known = placement(operator)
    if known is None or anywhere(operator):
        return None
    return known.output if kept is None else tuple(known.output[place] for place in kept)


def anywhere(operator: Operator) -> bool:
    """Whether an operator's rows may be in any shard, if they always come to the same one."""
    return isinstance(operator, Output) and operator.anywhere


def _within(
    catalyst: Catalyst, pipe: Pipe, terms: Sequence[Term], by: Placed | None, key: Places
) -> Places | None:
    """Where, in the key of a port, the columns come in through a pipe by which its source is placed."""
    if by is None or not pipe.plain:
        return None
    of_key = [_origin(catalyst, pipe, terms[place]) for place in key]
    found = [next((at for at, column in enumerate(of_key) if column in same), None) for same in by]
    known = [at for at in found if at is not None]
    return tuple(known) if len(known) == len(found) else None


def _origin(catalyst: Catalyst, pipe: Pipe, term: Term) -> int | None:
    """The column of its source that a term at the end of a pipe is, if it is one."""
    id = catalyst.attribute_id(term)
    for step in reversed(pipe.steps):
        if id is not None and isinstance(step, Select):
            made = {column.id: one for column, one in zip(step.columns, step.terms, strict=True)}
            id = catalyst.attribute_id(made[id]) if id in made else None
    places = {column.id: place for place, column in enumerate(pipe.columns)}
    return None if id is None else places.get(id)
