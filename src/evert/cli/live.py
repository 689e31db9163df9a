"""The table of views that `evert run` keeps fresh on a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TextIO

from evert.cli.output import Sheet, shortened
from evert.cli.status import columns_of, note, shown

if TYPE_CHECKING:
    from evert.views.status import ViewStatus

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_END_OF_LINE, _BELOW = "\x1b[K", "\x1b[J"

Size = Callable[[], os.terminal_size]


def on_terminal() -> bool:
    """Whether stdout understands how to move the cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Board:
    """A few lines at the bottom of the terminal that are written over again and again.

    Lines are cut to the terminal: one that wraps, or scrolls the first away, could not be found again.
    """

    def __init__(self, out: TextIO | None = None, size: Size = shutil.get_terminal_size) -> None:
        self._out = out or sys.stdout
        self._size = size
        self._lines = 0

    def draw(self, lines: Sequence[str]) -> None:
        wide, high = self._size()
        kept = fitting(lines, high - 1)
        up = f"\x1b[{self._lines}A\r" if self._lines else _HIDE
        body = "".join(f"{shortened(line, wide - 1)}{_END_OF_LINE}\n" for line in kept)
        self._out.write(up + body + _BELOW)
        self._out.flush()
        self._lines = len(kept)

    def close(self) -> None:
        """Leave the last lines where they are."""
        self._out.write(_SHOW)
        self._out.flush()
        self._lines = 0


def fitting(lines: Sequence[str], most: int) -> list[str]:
    """The lines that there is room for; the last then says how many are missing.

    >>> fitting(["a", "b", "c"], 2)
    ['a', '… and 2 more']
    """
    if len(lines) <= max(most, 1):
        return list(lines)
    kept = list(lines[: max(most - 1, 0)])
    return [*kept, f"… and {len(lines) - len(kept)} more"]


def board_lines(
    states: Sequence[ViewStatus], *, head: int, epochs: int, seconds: float, stopping: bool, width: int
) -> list[str]:
    """A heading, a line for each view, and one more for each that is being built or has stopped."""
    end = "stopping after this epoch" if stopping else "Ctrl-C stops"
    starting = not epochs and any(one.lag_events for one in states)
    ran = "starting Spark" if starting else f"{epochs:,} epochs in {spoken_seconds(seconds)}"
    lines = [f"position {head:,}, {ran}; {end}"]
    if not states:
        return [*lines, "there are no views yet; define one with `evert sql`"]
    columns = columns_of(states)
    table = [[shown(one)[column] for column in columns] for one in states]
    lines.extend(Sheet(columns, width=width - 1, null="-").lines(table))
    lines.extend(filter(None, map(note, states)))
    return lines


def spoken_seconds(seconds: float) -> str:
    """
    >>> spoken_seconds(9.7), spoken_seconds(75), spoken_seconds(3_700)
    ('9 s', '1 min 15 s', '1 h 1 min')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
