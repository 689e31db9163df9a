"""What holds of the project as a whole: public names, who imports whom, and that everything is documented."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import evert
import evert.testing
from evert import errors
from evert.catalog import Catalog
from evert.config import Config
from evert.log.protocol import Log
from evert.log.topic import Options

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "evert"
PUBLIC = [
    "Consumer",
    "Database",
    "EvertError",
    "Queue",
    "Stream",
    "Table",
    "Transaction",
    "View",
    "__version__",
    "open",
]
ANYWHERE = {"catalog", "clock", "config", "disk", "duration", "errors", "version"}
MAY_IMPORT = {
    "catalog": set(),
    "schema": set(),
    "trace": {"schema"},
    "log": {"schema", "trace"},
    "delta": {"schema", "trace"},
    "plan": {"delta", "schema", "trace"},
    "views": {"log", "schema", "trace"},
    "ask": {"epoch", "log", "plan", "schema", "views"},
    "epoch": {"ask", "delta", "log", "plan", "schema", "trace", "views", "database"},
    "testing": {"log", "schema"},
    "serve": {
        *("access", "ask", "cli", "database", "log", "schema", "topics", "trace", "values", "views"),
    },
}
NO_SPARK = {"ask", "serve", "catalog", "schema", "log", "trace", "delta", "views"}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def imported(path):
    """The modules of Evert that a file imports when it runs, not only for its types."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_the_public_names_are_these():
    assert sorted(evert.__all__) == PUBLIC
    assert all(hasattr(evert, name) for name in evert.__all__)
    assert sorted(evert.testing.__all__) == ["ManualClock", "MemoryCatalog", "MemoryLog"]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_package_imports_only_what_lies_to_its_left(path):
    package = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if package not in MAY_IMPORT:
        return
    allowed = ANYWHERE | MAY_IMPORT[package] | {package}
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "evert" and len(parts) > 1:
            assert parts[1] in allowed, f"{path.name} imports {name}"
        if package in NO_SPARK:
            assert parts[0] not in ("pyspark", "py4j"), f"{path.name} imports {name}"


def test_only_planning_and_the_epoch_know_spark():
    for path in modules():
        if path.relative_to(SOURCE).parts[0] not in ("plan", "epoch", "sketches.py"):
            assert not any(name.split(".")[0] == "pyspark" for name in imported(path)), path


def test_appending_and_reading_import_no_spark():
    code = (
        "import sys, tempfile, evert\n"
        "with evert.open(tempfile.mkdtemp() + '/db') as db:\n"
        "    t = db.stream('t', 'n INT'); t.append([{'n': 1}]); list(t.read()); db.views\n"
        "assert not {'pyspark', 'py4j'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("protocol", [Catalog, Log])
def test_a_protocol_has_at_most_eight_methods(protocol):
    methods = [name for name in vars(protocol) if not name.startswith("_")]
    assert 0 < len(methods) <= 8


def test_every_setting_and_topic_option_is_documented():
    text = (ROOT / "docs" / "settings.md").read_text()
    for kind in (Config, Options):
        for field in fields(kind):
            assert f"`{field.name}`" in text, field.name


def test_every_error_is_documented_and_has_its_own_code():
    text = (ROOT / "docs" / "errors.md").read_text()
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.EvertError)]
    codes = [c.code for c in classes]
    assert len(codes) == len(set(codes))
    for code, kind in zip(codes, classes, strict=True):
        assert f"| `{code}` | {kind.exit_code} |" in text, code


def test_no_file_is_long():
    for path in [*modules(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]:
        assert len(path.read_text().splitlines()) <= 600, path


def test_packages_hold_no_code_beside_their_exports():
    for path in SOURCE.rglob("__init__.py"):
        for node in ast.parse(path.read_text()).body:
            assert isinstance(node, ast.Import | ast.ImportFrom | ast.Assign | ast.Expr), path
