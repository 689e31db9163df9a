"""Answers on the screen: aligned tables for people, JSON lines for programs."""

from __future__ import annotations

import math
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from evert.cli.base import session
from evert.values import cell, dumps

_NARROWEST = 8
_GAP = "  "
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def answer(value: Mapping[str, Any], text: str) -> None:
    """One result: the object under `--json`, else the text."""
    click.echo(dumps(dict(value)) if session().json else text)


def listing(rows: Iterable[Mapping[str, Any]], shown: Sequence[str], *, empty: str) -> None:
    """Many results: all fields under `--json`, else a table of some of them."""
    found = list(rows)
    if session().json:
        for row in found:
            click.echo(dumps(dict(row)))
    elif not found:
        click.echo(empty, err=True)
    else:
        sheet = Sheet(shown, null="-")
        sheet.write([[row[name] for name in shown] for row in found])


def described(fields: Mapping[str, Any]) -> None:
    """One thing with many fields, a line each."""
    if session().json:
        click.echo(dumps(dict(fields)))
        return
    wide = max(map(len, fields))
    for name, value in fields.items():
        shown = "-" if value is None else grouped(value)
        click.echo(f"{name.replace('_', ' '):<{wide}}  {printable(shown)}")


class Sheet:
    """A table that is written piece by piece, for an answer whose end is not known.

    The first piece decides the widths; a later one may widen a column. On a terminal wide cells are cut to
    fit, elsewhere nothing is.
    """

    def __init__(self, headers: Sequence[str], *, width: int | None = None, null: str = "NULL") -> None:
        self._headers = [printable(header) for header in headers]
        self._width = width if width is not None else terminal_width()
        self._null = null
        self._widths: list[int] = []
        self._right = [False] * len(headers)

    def write(self, rows: Sequence[Sequence[Any]]) -> None:
        click.echo("\n".join(self.lines(rows)))

    def lines(self, rows: Sequence[Sequence[Any]]) -> list[str]:
        """The next piece, with the header if it is the first."""
        texts = [[self._null if value is None else printable(cell(value)) for value in row] for row in rows]
        first = not self._widths
        if first:
            self._right = [_numeric(row[i] for row in rows) for i in range(len(self._headers))]
        before = self._widths or [columns(header) for header in self._headers]
        wanted = [max([had, *(columns(text[i]) for text in texts)]) for i, had in enumerate(before)]
        self._widths = fitted(wanted, self._width, len(_GAP))
        lines = [self._line(self._headers)] if first else []
        lines.extend(self._line(text) for text in texts)
        return lines

    def _line(self, texts: Sequence[str]) -> str:
        padded = []
        for text, width, right in zip(texts, self._widths, self._right, strict=True):
            short = shortened(text, width)
            space = " " * (width - columns(short))
            padded.append(space + short if right else short + space)
        return _GAP.join(padded).rstrip()


def terminal_width() -> int | None:
    """How many columns the terminal has; None if we do not write to one."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def fitted(wanted: Sequence[int], width: int | None, gap: int) -> list[int]:
    """The widths, the widest cut first until the line fits.

    >>> fitted([4, 30, 20], 40, 2)
    [4, 16, 16]
    """
    widths = list(wanted)
    if width is None:
        return widths
    over = sum(widths) + gap * (len(widths) - 1) - width
    while over > 0 and (widest := max(widths)) > _NARROWEST:
        alike = [i for i, w in enumerate(widths) if w == widest]
        below = max([w for w in widths if w < widest], default=0)
        step = max(1, min(widest - max(below, _NARROWEST), over // len(alike)))
        for i in alike:
            if over > 0:
                widths[i] -= step
                over -= step
    return widths


def shortened(text: str, width: int) -> str:
    """
    >>> shortened("a long story", 7)
    'a long…'
    """
    if columns(text) <= width:
        return text
    kept, used = "", 0
    for letter in text:
        used += columns(letter)
        if used > width - 1:
            break
        kept += letter
    return kept + "…"


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def printable(text: str) -> str:
    """The text without anything that moves the cursor or changes the terminal.

    >>> printable("two\\nlines")
    'two\\\\nlines'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def grouped(value: Any) -> str:
    """Numbers with thousands apart, all else as `cell` has it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return cell(value)


def sized(count: int) -> str:
    """Bytes as people say them.

    >>> sized(900), sized(5_300_000)
    ('900 B', '5.3 MB')
    """
    if count < 1000:
        return f"{count} {_UNITS[0]}"
    power = min(int(math.log10(count)) // 3, len(_UNITS) - 1)
    return f"{count / 1000**power:.1f} {_UNITS[power]}"


def _numeric(values: Iterable[Any]) -> bool:
    found = [value for value in values if value is not None]
    return bool(found) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in found
    )
