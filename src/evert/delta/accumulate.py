"""What an aggregate keeps of a group, so that rows can come and go without the group being read again.

| column | holds | for |
| --- | --- | --- |
| `weight` | the sum of the weights: the group's rows | every aggregate, count(*) |
| `count<n>` | the sum of the weights where argument n is not NULL | count, sum, some |
| `sum<n>` | the exact sum of argument n times weight, see `wide.py` | sum |
| `min<n>`, `max<n>` | the least or greatest value so far | min, max over input that only grows |

Functions of the same argument share their columns. Where rows only come and it only matters whether there are some,
a sum of weights is one as soon as it is not zero: so a group that is known does not change any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from evert.delta import wide
from evert.delta.operator import DataError
from evert.schema.digest import valid, whole
from evert.trace.arrays import one_chunk
from evert.trace.groups import Groups
from evert.trace.order import total_codes

_LIMIT = 2**63
_NONE = 2**63 - 1


@dataclass(frozen=True)
class Function:
    """One aggregate function: `count`, `sum`, `min` or `max` of a column; count of None counts rows.

    `some` says whether a column has a value that is not NULL.
    """

    kind: str
    argument: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("count", "sum", "min", "max", "some") or (
            self.argument is None and self.kind != "count"
        ):
            raise ValueError(f"there is no aggregate function {self.kind}({self.argument})")


@dataclass(frozen=True)
class Accumulators:
    """The accumulators of these functions over columns of these types.

    With `once` it only matters whether there are rows, and none is ever taken out.
    """

    types: tuple[pa.DataType, ...]
    functions: tuple[Function, ...]
    once: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, each once."""
        found = {"weight": pa.int64()}
        for function in self.functions:
            at = function.argument
            if at is None:
                continue
            if function.kind in ("count", "sum", "some"):
                found[f"count{at}"] = pa.int64()
            if function.kind == "sum":
                found[f"sum{at}"] = wide.DIGITS
            if function.kind in ("min", "max"):
                found[f"{function.kind}{at}"] = self.types[at]
        return pa.schema(found)

    @property
    def results(self) -> tuple[pa.DataType, ...]:
        """The types of the functions' results."""
        return tuple(self._result_type(function) for function in self.functions)

    @property
    def grows_only(self) -> bool:
        """Whether a row cannot be taken back."""
        return self.once or any(function.kind in ("min", "max") for function in self.functions)

    def partial(self, arguments: Sequence[pa.Array], weight: np.ndarray, groups: Groups) -> pa.Table:
        """The accumulators of groups of rows."""
        _check_range(weight)
        found: list[pa.Array] = []
        for name in self.schema.names:
            kind, at = _split(name)
            if kind == "weight":
                found.append(self._sums(weight, groups))
            elif kind == "count":
                present = valid(arguments[at])
                found.append(self._sums(weight if present is None else weight * present, groups))
            elif kind == "sum":
                found.append(wide.total(arguments[at], weight, groups))
            else:
                found.append(_extreme(arguments[at], groups, greatest=kind == "max"))
        return pa.table(found, schema=self.schema)

    def merged(self, table: pa.Table, groups: Groups) -> pa.Table:
        """The accumulators of groups of accumulators."""
        found: list[pa.Array] = []
        for name, array in zip(self.schema.names, _arrays(table, self.schema), strict=True):
            kind, _ = _split(name)
            if kind in ("weight", "count"):
                _check_range(array.to_numpy())
                found.append(self._sums(array.to_numpy(), groups))
            elif kind == "sum":
                found.append(wide.merged(array, groups))
            else:
                found.append(_extreme(array, groups, greatest=kind == "max"))
        return pa.table(found, schema=self.schema)

    def nothing(self, count: int) -> pa.Table:
        """The accumulators of so many groups without rows."""
        found: list[pa.Array] = []
        for field in self.schema:
            kind, _ = _split(field.name)
            if kind in ("weight", "count"):
                found.append(pa.array(np.zeros(count, np.int64)))
            else:
                found.append(wide.none(count) if kind == "sum" else pa.nulls(count, field.type))
        return pa.table(found, schema=self.schema)

    def idle(self, table: pa.Table) -> np.ndarray:
        """Which accumulators would change nothing if they were merged with others."""
        found = np.ones(table.num_rows, bool)
        for name, array in zip(self.schema.names, _arrays(table, self.schema), strict=True):
            kind, _ = _split(name)
            if kind in ("weight", "count"):
                found &= array.to_numpy() == 0
            elif kind == "sum":
                found &= wide.empty(array)
            else:
                found &= array.is_null().to_numpy(zero_copy_only=False)
        return found

    def finished(self, table: pa.Table) -> list[pa.Array]:
        """The functions' results; DataError if one does not fit or more was taken out than put in."""
        columns = dict(zip(self.schema.names, _arrays(table, self.schema), strict=True))
        for name, array in columns.items():
            if name.startswith(("weight", "count")) and (array.to_numpy() < 0).any():
                raise DataError("more rows were taken out of a group than had been put in")
        found = []
        for function, kind in zip(self.functions, self.results, strict=True):
            at = function.argument
            if function.kind == "sum":
                absent = columns[f"count{at}"].to_numpy() == 0
                found.append(wide.result(columns[f"sum{at}"], kind, absent))
            elif function.kind == "some":
                found.append(pa.array(columns[f"count{at}"].to_numpy() > 0))
            else:
                found.append(columns["weight" if at is None else f"{function.kind}{at}"])
        return found

    def differ(self, old: pa.Table, new: pa.Table) -> np.ndarray:
        """Which accumulators are not what they were, where these count whether there are rows."""
        found = np.zeros(old.num_rows, bool)
        for before, after in zip(_arrays(old, self.schema), _arrays(new, self.schema), strict=True):
            found |= before.to_numpy() != after.to_numpy()
        return found

    def _sums(self, numbers: np.ndarray, groups: Groups) -> pa.Array:
        sums = groups.sums(numbers)
        return pa.array(np.minimum(sums, 1) if self.once else sums)

    def _result_type(self, function: Function) -> pa.DataType:
        if function.argument is None or function.kind == "count":
            return pa.int64()
        if function.kind == "some":
            return pa.bool_()
        kind = self.types[function.argument]
        return wide.sum_of(kind) if function.kind == "sum" else kind


def _split(name: str) -> tuple[str, int]:
    kind = name.rstrip("0123456789")
    return kind, int(name[len(kind) :] or -1)


def _arrays(table: pa.Table, schema: pa.Schema) -> list[pa.Array]:
    return [whole(table.column(name)) for name in schema.names]


def _extreme(values: pa.Array, groups: Groups, *, greatest: bool) -> pa.Array:
    """The least or greatest value of each group of rows, NULL where a group has none.

    Of 0.0 and -0.0, which Spark takes for equal and of which it keeps the one it meets first, -0.0 is the lesser
    here: so the order of the rows does not matter.
    """
    if not len(groups):
        return values.slice(0, 0)
    ranks = total_codes(values)
    if greatest:
        ranks = ~ranks
    present = valid(values)
    if present is not None:
        ranks = np.where(present, ranks, _NONE)
    hit = ranks == groups.least(ranks, _NONE)[groups.of_row]
    if present is not None:
        hit &= present
    place = groups.first_of(np.flatnonzero(hit), len(ranks))
    return one_chunk(values.take(pa.array(place, mask=place == len(ranks))))


def _check_range(numbers: np.ndarray) -> None:
    """Weights are int64; sums of them that might not be are refused rather than wrapped around."""
    if not len(numbers) or max(int(numbers.max()), -int(numbers.min())) * len(numbers) < _LIMIT:
        return
    if sum(abs(number) for number in numbers.tolist()) >= _LIMIT:
        raise DataError("a group has more rows than can be counted")
