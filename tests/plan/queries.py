"""Queries by name, from the `.sql` files beside."""

from __future__ import annotations

import re
from pathlib import Path

_ONE = re.compile(r"^-- (.+)\n((?:(?!--).*\n)+?)(?=\n|\Z)", re.MULTILINE)


def read(file: str) -> dict[str, str]:
    """The queries of a file by the comment above each."""
    text = (Path(__file__).parent / file).read_text()
    return {found[1]: found[2].strip().removesuffix(";") for found in _ONE.finditer(text)}


INCREMENTAL = read("incremental.sql")
RECOMPUTED = read("recomputed.sql")
