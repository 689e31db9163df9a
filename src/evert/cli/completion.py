"""`evert completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from evert.cli.base import Command


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a SHELL complete commands, options and names of topics.

    \b
    Example: eval "$(evert completion bash)"       in ~/.bashrc
             eval "$(evert completion zsh)"        in ~/.zshrc
             evert completion fish > ~/.config/fish/completions/evert.fish
    """
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "evert", "_EVERT_COMPLETE").source())
