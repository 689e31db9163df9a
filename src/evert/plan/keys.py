"""Which columns tell rows apart: sets of columns of which no two rows have the same values.

A relation may have several such keys; a handful is kept, since each is only a chance for the view to have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import TypeAlias

Keys: TypeAlias = tuple[tuple[int, ...], ...]
"""Candidate keys, each the ids of its columns in order; the first is the best. No columns: at most one row."""

_KEPT = 8


def through_project(keys: Keys, given: Sequence[tuple[int, int | None]]) -> Keys:
    """Keys of a projection, whose columns are given as (its id, the id of the column that it copies).

    >>> through_project(((1, 2),), [(7, 1), (8, None), (9, 2)])
    ((7, 9),)
    """
    copies: dict[int, list[int]] = {}
    for column, source in given:
        if source is not None:
            copies.setdefault(source, []).append(column)
    return _some(
        renamed
        for key in keys
        if all(column in copies for column in key)
        for renamed in product(*(copies[column] for column in key))
    )


def through_join(left: Keys, right: Keys, equal: Sequence[tuple[int | None, int | None]]) -> Keys:
    """Keys of an inner join; `equal` are the pairs of columns that it sets equal.

    A side whose key is set equal adds at most one row to each row of the other, whose key therefore stays one.

    >>> through_join(((1,),), ((5,),), [(2, 5)])
    ((1,),)
    >>> through_join(((1,),), ((5,),), [])
    ((1, 5),)
    """
    pairs = [(one, two) for one, two in equal if one is not None and two is not None]
    lefts, rights = {one for one, _ in pairs}, {two for _, two in pairs}
    found: list[tuple[int, ...]] = []
    if any(set(key) <= rights for key in right):
        found += left
    if any(set(key) <= lefts for key in left):
        found += right
    found = found or [one + two for one in left for two in right]
    swaps: dict[int, list[int]] = {}
    for one, two in pairs:
        swaps.setdefault(one, []).append(two)
        swaps.setdefault(two, []).append(one)
    return _some([*found, *(other for key in found for other in _swapped(key, swaps))])


def through_outer(kept: Keys, other: Keys, equal: Iterable[int | None]) -> Keys:
    """Keys of a join that keeps all rows of one side; `equal` are the columns of the other that it sets equal.

    Columns of the other side are NULL where it has no row, so they tell nothing apart by themselves.

    >>> through_outer(((1,),), ((5,),), [5])
    ((1,),)
    >>> through_outer(((1,),), ((5,),), [])
    ((1, 5),)
    """
    at_most_one = any(set(key) <= set(equal) for key in other)
    return _some(kept if at_most_one else [one + two for one in kept for two in other])


def _swapped(key: tuple[int, ...], swaps: dict[int, list[int]]) -> Iterable[tuple[int, ...]]:
    return product(*([column, *swaps.get(column, [])] for column in key))


def _some(keys: Iterable[tuple[int, ...]]) -> Keys:
    kept: dict[tuple[int, ...], None] = {}
    for key in keys:
        kept[tuple(dict.fromkeys(key))] = None
        if len(kept) == _KEPT:
            break
    return tuple(kept)
