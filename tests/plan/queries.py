"""Queries by name, from the `.sql` files beside."""

from __future__ import annotations

import re
from pathlib import Path

_ONE = re.compile(r"^-- (.+)\n((?:(?!--).*\n)+?)(?=\n|\Z)", re.MULTILINE)


def read(file: str) -> dict[str, str]:
    """The queries of a file by the comment above each."""
    text = (Path(__file__).parent / file).read_text()
    return {found[1]: found[2].strip().removesuffix(";") for found in _ONE.finditer(text)}


_KEPT = read("incremental.sql")
INCREMENTAL = {title.partition(":")[0]: query for title, query in _KEPT.items()}
NODES = {title.partition(":")[0]: title.partition(": ")[2] for title in _KEPT if ": " in title}
"""The kinds of the nodes of a query, and how they are kept, where the file says so."""
RECOMPUTED = read("recomputed.sql")
