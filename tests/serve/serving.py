"""A server in a thread of its own, on a port of its own, and a client for it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

import evert
from evert.serve import Limits, app
from evert.serve.process import bound, loop, server_of

LINES = {"Content-Type": "application/x-ndjson"}


@contextmanager
def serving(db: evert.Database, limits: Limits | None = None, port: int = 0) -> Iterator[httpx.Client]:
    server = server_of(app(db, limits))
    listener = bound("127.0.0.1", port)

    def run() -> None:
        with loop() as runner:
            runner.run(server.serve([listener]))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    found = listener.getsockname()[1]
    with httpx.Client(base_url=f"http://127.0.0.1:{found}", timeout=60) as client:
        yield client
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@dataclass(frozen=True)
class Event:
    kind: str
    id: str | None
    data: dict[str, Any]


def events(response: httpx.Response) -> Iterator[Event]:
    """Server-sent events as they come; comments are passed over."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], fields.get("id"), json.loads(fields["data"]))
            fields = {}
