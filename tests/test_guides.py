"""The examples of the guides run in their order, and give what stands behind them."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```\n(.*?)```)?", re.S)


def run(code: str, names: dict[str, Any]) -> str:
    """Run statements one by one; a value in a comment behind an expression must be the expression's."""
    lines = code.splitlines()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for node in ast.parse(code).body:
            source = ast.unparse(node)
            if not isinstance(node, ast.Expr):
                exec(compile(ast.Module([node], []), "guide", "exec"), names)
                continue
            found = eval(compile(ast.Expression(node.value), "guide", "eval"), names)
            _, _, said = lines[node.end_lineno - 1][node.end_col_offset :].partition("# ")
            with contextlib.suppress(SyntaxError):  # a remark and not a value
                if said:
                    assert found == eval(said, {"Decimal": Decimal}), source
    return printed.getvalue()


@pytest.mark.parametrize(
    ("guide", "least"), [("tutorial.md", 10), ("views.md", 13), ("time.md", 5), ("sketches.md", 3)]
)
def test_a_guide_is_true(spark, tmp_path, monkeypatch, guide, least):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall((DOCS / guide).read_text())
    names: dict[str, Any] = {}
    try:
        for code, printed in blocks:
            assert run(code, names).strip() == printed.strip()
        assert all(proof.holds for proof in names["db"].prove())
    finally:
        names["db"].close()
    assert len(blocks) >= least
