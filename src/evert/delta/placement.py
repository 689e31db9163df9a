"""In which shard a row is: the columns that decide it, on the way into an operator and out of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evert.delta.aggregate import Aggregate
from evert.delta.join import Join
from evert.delta.near import Near
from evert.delta.operator import Operator
from evert.delta.output import Output
from evert.delta.semi import Semi
from evert.delta.session import Session
from evert.delta.swap import Swap
from evert.delta.top import Top
from evert.delta.touched import Touched
from evert.delta.upsert import Upsert
from evert.delta.versions import Versions


@dataclass(frozen=True)
class Placement:
    """Rows of any port that are equal in its `ports` columns must be in one shard, and what comes of them is too.

    The columns of the ports correspond to each other, and to the `output` columns, which have the same values. Of
    these there may be several for one column of a port.
    """

    ports: tuple[tuple[int, ...], ...]
    output: tuple[frozenset[int], ...]


def placement(operator: Operator) -> Placement | None:
    """How an operator's rows are placed; None if their columns alone do not tell."""
    match operator:
        case Aggregate(keys=count):
            group = tuple(range(count))
            return Placement((group,) * len(operator.inputs), _each(group))
        case Join(left_key=left, right_key=right):
            behind = len(operator.left)
            pairs = zip(left, right, strict=True)
            return Placement((left, right), tuple(frozenset({one, behind + other}) for one, other in pairs))
        case Semi(kind="semi", left_key=left):
            return Placement((left, tuple(range(len(left)))), _each(left))
        case Session(keys=count):
            return Placement((tuple(range(count)),), _each(range(count)))
        case Swap(keys=key):
            return Placement((tuple(range(len(key))), key), _each(key))
        case Near(keys=key) | Top(keys=key) | Touched(keys=key) | Upsert(key=key) | Versions(key=key):
            return Placement((key,), _each(key))
        case Output():
            key = tuple(range(len(operator.columns))) if operator.key is None else operator.key
            return Placement((key,), _each(key))
    return None


def _each(columns: Iterable[int]) -> tuple[frozenset[int], ...]:
    return tuple(frozenset({column}) for column in columns)
