"""Makes a case that breaks the law smaller, by taking views, commits and rows away as long as it still does.

python -m tests.laws.reduce 4711 0      # the seed, and the number of the mode
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.laws.cases import Case, Commit, View, make_case
from tests.laws.law import Broken, Mode, obey, script

T = TypeVar("T")
Fails = Callable[[Case], bool]


def reduced(case: Case, fails: Fails, seconds: float = 600.0) -> Case:
    """A smaller case that fails too."""
    over = time.monotonic() + seconds

    def attempt(other: Case) -> bool:
        return time.monotonic() < over and fails(other)

    case = _without_views(case, attempt)
    steps = _fewer(case.steps, lambda left: attempt(replace(case, steps=left)))
    case = replace(case, steps=steps)
    for place, step in enumerate(case.steps):
        if isinstance(step, Commit):
            case = _smaller_commit(case, place, attempt)
    return case


def _without_views(case: Case, fails: Fails) -> Case:
    """Most views have nothing to do with it: try the last ones first, as others may read the first ones."""
    for step in reversed(case.steps):
        if isinstance(step, View):
            other = replace(case, steps=tuple(one for one in case.steps if one is not step))
            case = other if fails(other) else case
    return case


def _smaller_commit(case: Case, place: int, fails: Fails) -> Case:
    def with_writes(writes: Sequence[Any]) -> Case:
        steps = (*case.steps[:place], Commit(tuple(writes)), *case.steps[place + 1 :])
        return replace(case, steps=steps)

    writes = case.steps[place].writes
    writes = tuple(replace(write, rows=(row,)) for write in writes for row in write.rows)
    left = _fewer(writes, lambda some: fails(with_writes(some)))
    return with_writes(left) if len(left) < len(writes) else case


def _fewer(items: tuple[T, ...], fails: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Without the chunks that are not needed, from large ones to single ones."""
    size = max(1, len(items) // 2)
    while True:
        for start in _starts(len(items), size):
            other = items[:start] + items[start + size :]
            if other and fails(other):
                items = other
        if size == 1:
            return items
        size //= 2


def _starts(length: int, size: int) -> Iterator[int]:
    return reversed(range(0, length, size))


def main() -> None:
    from tests.laws.test_views_law import MODES

    from evert.epoch.spark import session

    seed, number = int(sys.argv[1]), int(sys.argv[2])
    mode: Mode = list(MODES.values())[number]
    spark = session()

    def fails(case: Case) -> bool:
        try:
            obey(spark, case, mode, Path(tempfile.mkdtemp()))
        except Broken:
            return True
        return False

    print(script(reduced(make_case(seed), fails), mode))


if __name__ == "__main__":
    main()
