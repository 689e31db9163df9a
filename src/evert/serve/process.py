"""The processes of `evert serve`: Uvicorn in this one, and another that keeps the views."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn
import uvloop
from starlette.types import ASGIApp

from evert.database import Database
from evert.errors import BadOption, Refused
from evert.serve.guard import LOOPBACK, is_loopback
from evert.serve.protocol import Protocol
from evert.serve.server import Limits, app

_GRACE = 3
_AGAIN = 2.0
_LONGEST = 60.0
_END = 30.0


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens, or why it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio turns off the waiting for more to send, which costs 40 ms an answer.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        raise BadOption(
            f"cannot listen on {host}:{port}: {error}", hint="give another --port, or --port 0"
        ) from None
    return listener


def check_place(db: Database, host: str) -> None:
    """Another machine may only be let in with a token."""
    if not is_loopback(host) and not db.tokens.needed:
        raise Refused(
            f"listening on {host} would let other machines do everything",
            hint="make a token first, as in `evert tokens create web --read '*'`",
        )


def hosts_of(host: str, allowed: Iterable[str]) -> set[str]:
    """The names that requests may call the server by."""
    return {*allowed, host, *(LOOPBACK if is_loopback(host) or host in ("0.0.0.0", "::") else ())}


def serve(
    db: Database,
    listener: socket.socket,
    hosts: Iterable[str],
    limits: Limits,
    *,
    keep: bool,
    ready: Callable[[], None],
) -> None:
    """Answer requests until interrupted; with `keep`, have a process beside that keeps the views."""
    server = server_of(app(db, limits, hosts))

    async def run() -> None:
        keeper = asyncio.create_task(_keep(db.path)) if keep else None
        ready()
        try:
            await server.serve([listener])
        finally:
            if keeper is not None:
                keeper.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await keeper

    gc.freeze()  # what has been imported stays: looking through it again would hold up answers
    with loop() as runner:
        runner.run(run())


def server_of(application: ASGIApp) -> uvicorn.Server:
    """The server that answers for an application, as everybody gets it."""
    settings = uvicorn.Config(
        application,
        http=Protocol,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        lifespan="on",
    )
    return uvicorn.Server(settings)


def loop() -> asyncio.Runner:
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


async def _keep(folder: Path) -> None:
    """`evert run` in a process of its own; it is started again if it ends, and ended with us."""
    command = [sys.executable, "-m", "evert.serve.beside", str(folder)]
    again = _AGAIN
    while True:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            while process.poll() is None:
                await asyncio.sleep(0.2)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_END)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        await asyncio.sleep(again)
        again = min(2 * again, _LONGEST)
