"""`evert queue`."""

from __future__ import annotations

import click

from evert.cli.base import Group


@click.group(cls=Group)
def queue() -> None:
    """Take messages."""
