from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evert.cli import failure
from evert.cli.main import evert
from evert.errors import EvertError

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
SHARED = {"--db", "--json", "--traceback", "--help", "--version"}


def commands(command: click.Command, path: str = "evert") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        with click.Context(command) as ctx:
            for name in command.list_commands(ctx):
                child = command.get_command(ctx, name)
                assert child is not None
                yield from commands(child, f"{path} {name}")


def errors(kind: type[EvertError]) -> Iterator[type[EvertError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from errors(child)


def section(path: str) -> str:
    found = re.search(rf"^## `{path}`\n(.*?)(?=^## |\Z)", DOCS, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section `{path}`"
    return found.group(1)


@pytest.mark.parametrize(("path", "command"), list(commands(evert))[1:])
def test_every_command_and_option_is_documented_and_explained(path: str, command: click.Command) -> None:
    text = section(path)
    for param in command.params:
        if isinstance(param, click.Option):
            for name in (*param.opts, *param.secondary_opts):
                if name.startswith("--") and name not in SHARED:
                    assert name in text, f"{path} {name} is not documented"
            assert param.help, f"{path} {param.name} has no help"
    assert "Example: evert" in (command.help or "") or 'Example: eval "$(evert' in (command.help or "")


def test_shared_options_are_documented() -> None:
    for name in SHARED:
        assert f"`{name}" in DOCS


def test_every_exit_code_and_error_code_is_in_the_table() -> None:
    table = dict(re.findall(r"^\| (\d+) \|(.*)$", DOCS, re.MULTILINE))
    mine = [kind for kind in errors(EvertError) if kind.__module__.startswith("evert.")]
    for kind in mine:
        assert f"`{kind.code}`" in table[str(kind.exit_code)], kind
    codes = {kind.exit_code for kind in mine}
    codes |= {0, failure.OTHER, failure.USAGE, failure.INTERRUPTED, failure.BROKEN_PIPE}
    assert codes == set(map(int, table))
