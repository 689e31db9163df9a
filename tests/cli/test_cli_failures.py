from __future__ import annotations

import pytest
from click.testing import CliRunner
from tests.cli.evert_cli import Shell

from evert.cli.main import evert
from evert.version import __version__


def test_an_error_is_a_sentence_and_a_hint(shell: Shell) -> None:
    shell.run("topics", "create", "clicks", "id INT")
    said = shell.run("log", "click", code=3).stderr
    assert said == "evert: there is no topic 'click'\n  hint: did you mean clicks?\n"


def test_under_json_an_error_is_one_object(shell: Shell) -> None:
    assert shell.error("log", "nope", code=3)["error"] == "unknown_topic"
    assert shell.error("log", code=2)["error"] == "usage"
    assert shell.error("nope", code=2)["error"] == "usage"


def test_a_traceback_is_shown_only_when_asked_for(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in shell.run("log", "nope", code=3).stderr
    assert "Traceback" in shell.run("log", "nope", "--traceback", code=3).stderr
    monkeypatch.setenv("EVERT_TRACEBACK", "1")
    assert "Traceback" in shell.run("log", "nope", code=3).stderr


def test_the_database_is_named_before_or_after_or_by_a_variable(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = CliRunner().invoke
    assert run(evert, ["topics", "--db", str(shell.db)]).exit_code == 0
    assert run(evert, ["topics", "create", "t", "a INT", "--db", str(shell.db)]).exit_code == 0
    assert run(evert, ["topics", "--db", str(shell.db), "show", "t"]).exit_code == 0
    missing = run(evert, ["topics"])
    assert missing.exit_code == 3
    assert "EVERT_DB" in missing.stderr
    monkeypatch.setenv("EVERT_DB", str(shell.db))
    assert run(evert, ["topics"]).exit_code == 0
    assert run(evert, ["topics", "--db", str(shell.folder / "other")]).exit_code == 3
    assert not (shell.folder / "other").exists()
    monkeypatch.delenv("EVERT_DB")
    monkeypatch.chdir(shell.db)
    assert run(evert, ["topics"]).exit_code == 0


def test_what_should_not_happen_asks_for_a_report(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("evert.cli.base.Session.open", broken)
    said = shell.run("topics", code=1).stderr
    assert "ZeroDivisionError: oops" in said
    assert "--traceback" in said


def test_an_interrupt_has_its_own_exit_code(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evert.cli.base.Session.open", interrupted)
    shell.run("topics", code=130)


def test_version_and_help() -> None:
    assert CliRunner().invoke(evert, ["--version"]).stdout == f"evert {__version__}\n"
    helped = CliRunner().invoke(evert, ["--help"])
    assert helped.exit_code == 0
    assert "maintain" in helped.stdout
    assert CliRunner().invoke(evert, []).exit_code == 2
