"""Names for state: equal for equal meaning, whatever session or process planned it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from itertools import pairwise
from typing import Any

from evert.plan.functions import function_digest

FORMAT = 2
"""Raised when equal plans begin to keep another state."""

_DROPPED = {"jvmId", "metadata", "qualifier", "explicitMetadata", "nonInheritableMetadataKeys", "origin"}
_NAMELESS = {"AttributeReference", "NamedLambdaVariable", "Alias"}
_KNOWN_NULLS = {"Literal", "NamedLambdaVariable"}
_FUNCTIONS = {"PythonUDF", "PythonUDAF"}
_NUMBERED = re.compile(r"[\w$.]*#(\d+)L?")
_IDENTITY = re.compile(r"(?<=\w)#\d+L?\b")


def digest(parts: Any) -> str:
    """The SHA-256 of what can be written as JSON."""
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def term_text(term: Any) -> str:
    """A Catalyst expression with its parameters, the identities in it renumbered by their first appearance."""
    nodes = json.loads(term.toJSON())
    hidden = [_hidden(term, place, node) for place, node in enumerate(nodes)]
    return json.dumps([plain_sql(term), _renumbered(nodes, {}), hidden], sort_keys=True)


def fields_read(text: str) -> frozenset[int] | None:
    """Which fields of a row a term reads, from its text; None if it takes a row as a whole."""
    _, nodes, _ = json.loads(text)
    found = set()
    for above, node in pairwise([{"class": ""}, *nodes]):
        if node["class"].endswith(".AttributeReference"):
            if not above["class"].endswith(".GetStructField"):
                return None
            found.add(above["ordinal"])
    return frozenset(found)


def plain_sql(term: Any) -> str:
    """A Catalyst expression as SQL; what some functions in Python show of identities is left out."""
    return _IDENTITY.sub("", term.sql())


def plan_text(plan: Any) -> str:
    """A Catalyst plan as text, renumbered in the same way."""
    seen: dict[str, str] = {}
    return _NUMBERED.sub(lambda found: "#" + seen.setdefault(found[1], str(len(seen))), plan.toString())


def _hidden(term: Any, place: int, node: Mapping[str, Any]) -> list[str]:
    """Parameters that JSON shows as null since it does not know them, such as what happens on overflow."""
    unknown = [name for name, value in node.items() if value is None]
    kind = node["class"].rpartition(".")[2]
    if not unknown or kind in _KNOWN_NULLS:
        return []
    itself = term.apply(place)
    if kind in _FUNCTIONS:
        return [function_digest(itself.func().command())]
    values = [getattr(itself, name)() for name in unknown]
    return [value.toString() if hasattr(value, "toString") else str(value) for value in values]


def _renumbered(value: Any, seen: dict[int, int]) -> Any:
    if isinstance(value, list):
        return [_renumbered(one, seen) for one in value]
    if not isinstance(value, Mapping):
        return value
    if str(value.get("product-class", "")).endswith(".ExprId"):
        return seen.setdefault(value["id"], len(seen))
    dropped = _DROPPED
    if str(value.get("class", "")).rpartition(".")[2] in _NAMELESS:
        dropped = dropped | {"name"}
    return {name: _renumbered(one, seen) for name, one in value.items() if name not in dropped}
