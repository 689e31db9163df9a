"""How a command that fails says so: one sentence, one hint, and an exit code that means something."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from evert.errors import EvertError

OTHER, USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

_HELP_ONLY = getattr(click.exceptions, "NoArgsIsHelpError", ())


def report(error: BaseException, args: Sequence[str]) -> int:
    """Tell the user on stderr; the exit code."""
    if isinstance(error, BrokenPipeError):
        _let_go_of_stdout()
        return BROKEN_PIPE
    if _wants(args, "--traceback", "EVERT_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED
    if isinstance(error, _HELP_ONLY):
        click.echo(error.format_message(), err=True)
        return USAGE
    said, code = _explained(error)
    if _wants(args, "--json"):
        click.echo(json.dumps(said, default=str), err=True)
        return code
    click.echo(f"evert: {said['message']}", err=True)
    if said.get("appended") is not None:
        where = f", up to position {said['appended_upto']}" if said.get("appended_upto") else ""
        click.echo(f"  appended before it: {said['appended']:,} rows{where}", err=True)
    if said["hint"]:
        click.echo(f"  hint: {said['hint']}", err=True)
    return code


def _explained(error: BaseException) -> tuple[dict[str, Any], int]:
    if isinstance(error, EvertError):
        return error.as_dict(), error.exit_code
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "evert"
        return _said("usage", error.format_message(), f"see `{path} --help`"), USAGE
    if isinstance(error, click.ClickException):
        return _said("error", error.format_message(), None), OTHER
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return _said("error", f"{where}{error.strerror or error}", None), OTHER
    hint = "this should not happen: run it again with --traceback and report what you see"
    return _said("error", f"{type(error).__name__}: {error}", hint), OTHER


def _said(code: str, message: str, hint: str | None) -> dict[str, Any]:
    return {"error": code, "message": message, "hint": hint}


def _wants(args: Sequence[str], option: str, variable: str | None = None) -> bool:
    """Whether an option is given; looked up in the raw words, since parsing them may be what failed."""
    return option in args or bool(variable and os.environ.get(variable, "0") not in ("", "0"))


def _let_go_of_stdout() -> None:
    """Whoever read our output is gone; keep Python from complaining about it once more on its way out."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
