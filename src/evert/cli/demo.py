"""`evert demo`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import click

from evert.cli.base import Command
from evert.errors import Unsupported


@click.command(cls=Command)
@click.option("--live", is_flag=True, help="Keep it running, behind its page.")
@click.option("--crash", is_flag=True, help="Kill the process that keeps the views on the way (kill -9).")
@click.option(
    "--seconds", type=click.FloatRange(10), default=30, show_default=True, help="How long it lives."
)
@click.option("--port", type=click.IntRange(0, 65_535), default=8000, show_default=True, help="With --live.")
def demo(live: bool, crash: bool, seconds: float, port: int) -> None:
    """Let a small shop live: events come in, tables change, views follow, and all of it is proved in the end.

    \b
    Example: evert demo
             evert demo --crash
             evert demo --live
    """
    if live and crash:
        raise click.UsageError("--live and --crash exclude each other")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shop.evert"
        if live:
            _live(folder, port)
            return
        from evert.demo.story import Story

        Story(folder, seconds=seconds, crash=crash, say=click.echo).tell()
        click.echo(f"\nTo watch it live:  {_command()} demo --live")


def _live(folder: Path, port: int) -> None:
    try:
        from evert.demo.live import live as run
    except ImportError as error:
        raise Unsupported(f"the page needs {error.name}", hint="pip install 'evert[serve]'") from None
    run(folder, port, click.echo)


def _command() -> str:
    """This program as it can be typed here, also where it is not on the path, as after `make demo`."""
    if shutil.which("evert"):
        return "evert"
    place = Path(sys.argv[0])
    return str(place.relative_to(Path.cwd())) if place.is_relative_to(Path.cwd()) else str(place)
