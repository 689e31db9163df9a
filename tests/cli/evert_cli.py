"""What the tests of the command line share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from evert.cli.main import evert

PROGRAM = [sys.executable, "-c", "from evert.cli.main import main; main()"]


class Shell:
    """A user at one database."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.db = folder / "shop"

    def run(self, *words: object, given: str | bytes = "", code: int = 0) -> Result:
        """Run a command in this process; it must end with this exit code."""
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = CliRunner().invoke(evert, ["--db", str(self.db), *map(str, words)], input=given)
        finally:
            os.chdir(before)
        assert result.exit_code == code, result.output
        return result

    def lines(self, *words: object, given: str | bytes = "", code: int = 0) -> list[dict[str, Any]]:
        """The objects that a command prints under --json."""
        out = self.run(*words, "--json", given=given, code=code).stdout
        return [json.loads(line) for line in out.splitlines()]

    def error(self, *words: object, given: str | bytes = "", code: int) -> dict[str, Any]:
        """The object that a failing command prints under --json."""
        said: dict[str, Any] = json.loads(self.run(*words, "--json", given=given, code=code).stderr)
        return said

    def start(self, *words: str, **options: Any) -> subprocess.Popen[str]:
        """A process of its own."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        environment = {**os.environ, "EVERT_DB": str(self.db)}
        return subprocess.Popen([*PROGRAM, *words], text=True, env=environment, cwd=self.folder, **pipes)
