from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.evert_cli import Shell


@pytest.fixture(autouse=True)
def _no_database_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVERT_DB", raising=False)
    monkeypatch.delenv("EVERT_TRACEBACK", raising=False)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.run("init", shell.db)
    return shell
