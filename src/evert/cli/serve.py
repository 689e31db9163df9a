"""`evert serve`, `evert tokens` and `evert hooks`."""

from __future__ import annotations

from typing import Any

import click

from evert.cli.base import Command, Group, session
from evert.cli.output import answer, listing
from evert.cli.times import iso
from evert.errors import Unsupported
from evert.hooks import SCHEMES

_LIMITS = ("max_body", "max_waiting", "max_wait", "max_seconds", "max_rows")


@click.command(cls=Command)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; elsewhere needs tokens."
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65_535), help="0 takes a free one."
)
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="A name that requests may call the server by."
)
@click.option("--run/--no-run", "keep", default=True, help="Keep the views too, in a process beside.")
@click.option("--max-body", type=click.IntRange(1), metavar="BYTES", help="The largest body of a request.")
@click.option(
    "--max-waiting", type=click.IntRange(1), metavar="BYTES", help="Of all bodies that are worked on."
)
@click.option(
    "--max-wait", type=click.FloatRange(0), metavar="SECONDS", help="The longest wait for a position."
)
@click.option(
    "--max-seconds", type=click.FloatRange(0, min_open=True), help="The longest time of a question."
)
@click.option("--max-rows", type=click.IntRange(1), help="The most rows of a question's answer.")
def serve(host: str, port: int, allow_host: tuple[str, ...], keep: bool, **limits: Any) -> None:
    """Serve the database over HTTP, with a page that shows it live; and keep its views, in a process beside.

    \b
    Example: evert serve
             evert serve --port 9000 --no-run
             evert serve --host 0.0.0.0 --allow-host shop.example
    """
    try:
        from evert.serve.process import bound, check_place, hosts_of
        from evert.serve.process import serve as run_server
        from evert.serve.server import Limits
    except ImportError as error:
        raise Unsupported(f"serving needs {error.name}", hint="pip install 'evert[serve]'") from None
    given = {name: value for name, value in limits.items() if value is not None}
    with session().open() as db:
        check_place(db, host)
        with bound(host, port) as listener:
            shown = f"[{host}]" if ":" in host else host
            url = f"http://{shown}:{listener.getsockname()[1]}"
            run_server(
                db,
                listener,
                hosts_of(host, allow_host),
                Limits(**given),
                keep=keep,
                ready=lambda: answer({"url": url}, f"Evert serves {db.path} at {url}"),
            )


@click.group(cls=Group)
def tokens() -> None:
    """Tokens for programs and people that use the database over HTTP.

    \b
    Example: evert tokens create web --append clicks --read 'revenue*'
             evert tokens list
    """


@tokens.command("create")
@click.argument("name")
@click.option(
    "--append", multiple=True, metavar="TOPIC", help="It may append to this topic; wildcards are fine."
)
@click.option("--read", multiple=True, metavar="NAME", help="It may read this topic or view.")
@click.option("--admin", is_flag=True, help="It may do everything.")
def create_token(name: str, append: tuple[str, ...], read: tuple[str, ...], admin: bool) -> None:
    """Make a token and print it; it cannot be printed again.

    From the first token on, every request needs one.

    \b
    Example: evert tokens create web --append clicks --read 'revenue*'
             evert tokens create ops --admin
    """
    with session().open() as db:
        token = db.tokens.create(name, append=append, read=read, admin=admin)
    answer({"name": name, "token": token}, token)


@tokens.command("list")
def list_tokens() -> None:
    """List the tokens: their names and what they open.

    Example: evert tokens list
    """
    with session().open() as db:
        found = db.tokens.all()
    rows = [{"name": one.name, "scopes": " ".join(one.scopes), "created": iso(one.created)} for one in found]
    listing(
        rows,
        ("name", "scopes", "created"),
        empty="there are no tokens: on this machine anybody may do anything",
    )


@tokens.command("revoke")
@click.argument("name")
def revoke_token(name: str) -> None:
    """Let the token NAME open nothing any more.

    Example: evert tokens revoke web
    """
    with session().open() as db:
        db.tokens.revoke(name)
    answer({"revoked": name}, f"the token {name} opens nothing any more")


@click.group(cls=Group)
def hooks() -> None:
    """Webhooks: services that report events to `/hooks/NAME`, signed.

    \b
    Example: evert hooks create github --scheme github --secret-env GITHUB_SECRET
             evert hooks list
    """


@hooks.command("create")
@click.argument("name")
@click.option("--stream", help="The stream that it fills, made if it is not there [default: NAME].")
@click.option("--scheme", type=click.Choice(list(SCHEMES)), required=True, help="How the service signs.")
@click.option("--secret-env", required=True, metavar="VARIABLE", help="Where the server finds the secret.")
def create_hook(name: str, stream: str | None, scheme: str, secret_env: str) -> None:
    """Take what a service sends to /hooks/NAME into a stream.

    Example: evert hooks create github --scheme github --secret-env GITHUB_SECRET
    """
    with session().open() as db:
        hook = db.hooks.create(name, stream=stream, scheme=scheme, secret_env=secret_env)
    answer({"hook": name, "stream": hook.topic}, f"POST /hooks/{name} fills the stream {hook.topic}")


@hooks.command("list")
def list_hooks() -> None:
    """List the webhooks.

    Example: evert hooks list
    """
    with session().open() as db:
        found = db.hooks.all()
    rows = [
        {"hook": one.name, "stream": one.topic, "scheme": one.scheme, "secret": one.secret_env}
        for one in found
    ]
    listing(rows, ("hook", "stream", "scheme", "secret"), empty="there are no hooks")


@hooks.command("drop")
@click.argument("name")
def drop_hook(name: str) -> None:
    """Take nothing more at /hooks/NAME; its stream stays.

    Example: evert hooks drop github
    """
    with session().open() as db:
        db.hooks.drop(name)
    answer({"dropped": name}, f"the hook {name} is gone; its stream stays")
