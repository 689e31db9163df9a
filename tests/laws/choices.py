"""Where the randomness of generated cases comes from: a seed, which Hypothesis or the soak draws."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """What generators ask. The same seed gives the same case.

    Hypothesis could draw every choice itself and make a failing case smaller. A run takes seconds, so `reduce`
    does that instead: it takes whole views, commits and rows away.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Different options, in their order."""
        wanted = min(len(options), self.number(least, most))
        return [options[place] for place in sorted(self._random.sample(range(len(options)), wanted))]
