"""`evert doctor`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict

import click

from evert.cli.base import Command, session
from evert.cli.failure import OTHER
from evert.doctor import Check, examine_database, examine_machine
from evert.errors import Corrupt, NotADatabase
from evert.values import dumps

_COLOURS = {"ok": "green", "warning": "yellow", "error": "red"}


@click.command(cls=Command)
@click.option("--deep", is_flag=True, help="Read every file and compare its checksum.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Go on although commits that were acknowledged are missing from the catalog.",
)
@click.pass_context
def doctor(ctx: click.Context, deep: bool, accept_loss: bool) -> None:
    """Check this machine and the database, and say what to do. Exit code 9 means damaged data.

    Example: evert doctor --deep
    """
    levels = set()
    corrupt = False
    for check in _checks(deep, accept_loss):
        levels.add(check.level)
        corrupt |= check.corrupt
        _show(check)
    if corrupt:
        ctx.exit(Corrupt.exit_code)
    if "error" in levels:
        ctx.exit(OTHER)


def _checks(deep: bool, accept_loss: bool) -> Iterator[Check]:
    yield from examine_machine()
    try:
        folder = session().folder()
    except NotADatabase as error:
        if accept_loss:
            raise
        yield Check("warning", error.message, error.hint)
        return
    if not os.path.isdir(folder):
        raise NotADatabase(f"{folder} holds no Evert database", hint=f"evert init {folder}")
    yield from examine_database(folder, deep=deep, accept_loss=accept_loss)


def _show(check: Check) -> None:
    if session().json:
        click.echo(dumps(asdict(check)))
        return
    click.echo(click.style(f"{check.level:<8}", fg=_COLOURS[check.level]) + check.what)
    if check.hint:
        click.echo(f"{'':<8}hint: {check.hint}")
