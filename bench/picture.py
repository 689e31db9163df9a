"""Figures as bars: an SVG that any browser shows, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Protocol

COLOURS = ("#c2410c", "#0f766e", "#4f46e5", "#a16207", "#be185d", "#475569")
WIDTH, LABEL, VALUE = 900, 250, 120
BAR, GAP, TOP = 16, 12, 64
STYLE = "text{font:13px sans-serif;fill:#1f2937}@media(prefers-color-scheme:dark){text{fill:#e5e7eb}}"


class Figure(Protocol):
    """A value of one system in one case."""

    @property
    def case(self) -> str: ...
    @property
    def system(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def unit(self) -> str: ...


def draw(title: str, figures: Sequence[Figure]) -> str:
    """A group of bars for each case, a colour for each system; lengths compare within one unit."""
    systems = list(dict.fromkeys(figure.system for figure in figures))
    longest = {figure.unit: 0.0 for figure in figures}
    for figure in figures:
        longest[figure.unit] = max(longest[figure.unit], figure.value)
    parts, y = _legend(title, systems), TOP
    for case in dict.fromkeys(figure.case for figure in figures):
        parts.append(f'<text x="0" y="{y + BAR - 3}">{escape(case)}</text>')
        for figure in (one for one in figures if one.case == case):
            length = (WIDTH - LABEL - VALUE) * figure.value / (longest[figure.unit] or 1)
            colour = COLOURS[systems.index(figure.system) % len(COLOURS)]
            parts.append(
                f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR - 2}" fill="{colour}"/>'
                f'<text x="{LABEL + length + 6:.1f}" y="{y + BAR - 3}">{shown(figure.value)} {figure.unit}</text>'
            )
            y += BAR
        y += GAP
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}">'
    return "\n".join([frame, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


def _legend(title: str, systems: Sequence[str]) -> list[str]:
    parts, x = [f'<text x="0" y="18" style="font-weight:bold">{escape(title)}</text>'], 0
    for number, system in enumerate(systems):
        colour = COLOURS[number % len(COLOURS)]
        parts.append(
            f'<rect x="{x}" y="32" width="12" height="12" fill="{colour}"/>'
            f'<text x="{x + 18}" y="43">{escape(system)}</text>'
        )
        x += 40 + 8 * len(system)
    return parts


def shown(value: float) -> str:
    """
    >>> shown(1234567.8), shown(12.345)
    ('1,234,568', '12.3')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
