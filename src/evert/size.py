"""Sizes as people write them: `"5 MB"`, `"4 GiB"` or a number of bytes."""

from __future__ import annotations

import re

from evert.errors import BadOption

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMGT]?)(i?)[bB]?\Z")


def size_of(text: str) -> int:
    """The size in bytes.

    >>> size_of("500"), size_of("5 MB"), size_of("4 KiB")
    (500, 5000000, 4096)
    """
    found = _SIZE.match(text.strip())
    if found is None:
        raise BadOption(f"{text!r} is not a size", hint="write it like 500 MB")
    number, unit, binary = found.groups()
    scale = (1024 if binary else 1000) ** ("", "K", "M", "G", "T").index(unit.upper())
    return int(float(number) * scale)
