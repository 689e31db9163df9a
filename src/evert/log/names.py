"""Which names topics, views and groups may have.

A name is one or more parts joined by dots; a part is letters of any script, digits, `_` and `-`, and does not
begin with a digit or `-`. Names never become file names, so nothing in them can reach outside the folder.
Two names that differ in case only are one name, as in Spark SQL.
"""

from __future__ import annotations

import unicodedata

from evert.errors import BadName

LONGEST = 128


def check_name(name: object, what: str = "topic") -> str:
    """The name in its normal form, or `BadName`.

    >>> check_name("clicks.late")
    'clicks.late'
    """
    if not isinstance(name, str):
        raise BadName(f"the name of a {what} must be text, not {type(name).__name__}")
    normal = unicodedata.normalize("NFC", name)
    if not normal or len(normal) > LONGEST:
        raise BadName(f"the name of a {what} has 1 to {LONGEST} characters, this one has {len(normal)}")
    parts = normal.split(".")
    if not all(part[:1] != "-" and part.replace("-", "_").isidentifier() for part in parts):
        raise BadName(
            f"{name!r} cannot name a {what}",
            hint="use letters, digits, _ and -, begin with a letter or _, and join parts with dots",
        )
    return normal


def folded(name: str) -> str:
    """The form in which two names are compared.

    >>> folded("Clicks") == folded("CLICKS")
    True
    """
    return unicodedata.normalize("NFC", name).casefold()
