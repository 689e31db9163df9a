"""The relations that a query names, found without understanding the rest of it."""

from __future__ import annotations

from sqlglot import exp


def named(tree: exp.Expression) -> list[str]:
    """Every name in a FROM clause, those of WITH among them."""
    found: dict[str, None] = {}
    for node in tree.find_all(exp.Table):
        if isinstance(node.this, exp.Identifier):
            found[".".join(part.name for part in node.parts)] = None
    return list(found)
