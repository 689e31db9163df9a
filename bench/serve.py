"""The server under load, on loopback: events taken in as JSON lines, and rows looked up by key while epochs run.

`evert serve` keeps two views in its process beside. Clients in processes of their own, with a few connections
each, send batches of lines as fast as they are answered, then look up random keys, first of views at rest, then
while others append and epochs run. Beside it the same rows, and the same keys, through the Python API in one
process, without HTTP. In the end every view is proved.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures import Figures

import evert

KEYS = 10_000
VIEWS = {
    "spent": "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer",
    "by_minute": "SELECT window(at, '1 minute') AS window, count(*) AS orders FROM orders GROUP BY 1",
}
Step = Callable[["Connection"], int]
context = multiprocessing.get_context("spawn")


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--seconds", type=float, default=10.0, help="of each case")
    options.add_argument("--batch", type=int, default=10_000, help="events in a request")
    options.add_argument("--senders", type=int, default=2, help="connections that append")
    options.add_argument("--readers", type=int, default=4, help="connections that look up")
    options.add_argument(
        "--beside", type=int, default=2_000, help="events/s that come in while keys are looked up"
    )
    options.add_argument("--pace", type=int, default=500, help="look-ups/s at which their time is taken")
    chosen = options.parse_args()
    with Figures("serve", chosen) as figures, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "serve.evert"
        with evert.open(path) as db:
            define(db)
            figures.add("append", "Python, in one process", [directly(db, chosen)], "events/s")
        with subprocess.Popen(
            [Path(sys.executable).with_name("evert"), "--db", path, "--json", "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
        ) as server:
            assert server.stdout is not None
            port = int(json.loads(server.stdout.readline())["url"].rpartition(":")[2])
            try:
                measure(figures, port, chosen)
            finally:
                server.terminate()
        with evert.open(path) as db:
            db.refresh()
            right = all(proof.holds for proof in db.prove())
            figures.add("look up", "Python, in one process", [looked_up(db)], "look-ups/s", right)
            events = sum(batch.num_rows for batch in db.topic("orders").read(columns=["id"]))
            figures.say(f"{events:,} events, every view {'proved' if right else 'WRONG'}")


def define(db: evert.Database) -> None:
    db.stream(
        "orders",
        "id BIGINT, customer BIGINT, product STRING, amount DECIMAL(9,2), at TIMESTAMP",
        event_time="at",
    )
    db.topic("orders").append([event(number) for number in range(KEYS)])
    db.view("spent", VIEWS["spent"], key="customer")
    db.view("by_minute", VIEWS["by_minute"])
    db.refresh()


def event(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "customer": number % KEYS,
        "product": f"product {number % 97}",
        "amount": f"{number % 10_000 / 100:.2f}",
        "at": f"2026-06-01T09:{number // 60_000 % 60:02}:{number // 1000 % 60:02}.{number % 1000:03}Z",
    }


def body(batch: int, first: int) -> bytes:
    return "".join(json.dumps(event(first + one)) + "\n" for one in range(batch)).encode()


def directly(db: evert.Database, chosen: Any) -> float:
    """Events a second that are appended as rows of Python."""
    rows = [event(number) for number in range(chosen.batch)]
    begun, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - begun) < chosen.seconds:
        db.topic("orders").append(rows)
        count += chosen.batch
    return count / spent


def looked_up(db: evert.Database) -> float:
    view, chance = db.views["spent"], random.Random(1)
    begun = time.perf_counter()
    for _ in range(3_000):
        assert view.get(chance.randrange(KEYS)) is not None
    return 3_000 / (time.perf_counter() - begun)


def measure(figures: Figures, port: int, chosen: Any) -> None:
    sent = clients(chosen.senders, port, chosen.seconds, send, chosen.batch)
    rate = sum(rows for rows, _ in sent) / chosen.seconds
    note = f"{chosen.batch:,} a request"
    figures.add("append", "HTTP, JSON lines", [rate], "events/s", note=note)
    caught_up(port)
    report(figures, "look up", port, chosen)
    pace = context.Process(target=trickle, args=(port, 2 * chosen.seconds + 9, chosen.beside))
    pace.start()
    time.sleep(3)
    report(figures, "look up while epochs run", port, chosen)
    report(figures, f"{chosen.pace:,} look-ups/s while epochs run", port, chosen, chosen.pace)
    pace.join()


def report(figures: Figures, case: str, port: int, chosen: Any, pace: int = 0) -> None:
    """Look-ups as fast as they are answered, or so many a second at regular times."""
    read = clients(chosen.readers, port, chosen.seconds, look, pace=pace / chosen.readers)
    note = f"at {len({position for position, _ in read})} positions"
    figures.add(case, "HTTP", [len(read) / chosen.seconds], "look-ups/s", note=note)
    times = sorted(spent for _, spent in read)
    for share in (50, 99):
        figures.add(f"{case}, p{share}", "HTTP", [times[len(times) * share // 100] * 1e3], "ms")


def clients(
    number: int, port: int, seconds: float, work: Any, *more: Any, pace: float = 0
) -> list[tuple[int, float]]:
    """What so many processes were answered in so many seconds, and how long each answer took."""
    with context.Pool(number) as pool:
        asked = [(port, seconds, pace, work, one, more) for one in range(number)]
        return [answer for found in pool.starmap(client, asked, chunksize=1) for answer in found]


def client(
    port: int, seconds: float, pace: float, work: Any, number: int, more: tuple[Any, ...]
) -> list[tuple[int, float]]:
    """With a pace, an answer's time counts from when its question was due, however late it was asked."""
    step: Step = work(number, *more)
    with Connection(port) as connection:
        step(connection)
        found, begun = [], time.perf_counter()
        end = begun + seconds
        while begun < end:
            answer = step(connection)
            found.append((answer, time.perf_counter() - begun))
            begun = begun + 1 / pace if pace else time.perf_counter()
            time.sleep(max(0.0, begun - time.perf_counter()))
    return found


def send(number: int, batch: int) -> Step:
    """Appends a batch; answered with how many rows it has."""
    data = body(batch, number * batch)

    def step(connection: Connection) -> int:
        rows: int = connection.ask("POST /topics/orders", data)["rows"]
        return rows

    return step


def look(number: int) -> Step:
    """Looks up a key; answered with the position of the view."""
    chance = random.Random(number)

    def step(connection: Connection) -> int:
        key = chance.randrange(KEYS)
        found = connection.ask(f"GET /views/spent/row?key={key}")
        assert found["row"]["customer"] == key
        position: int = found["position"]
        return position

    return step


class Connection:
    """As little of an HTTP client as this needs: what it costs is taken from the server's two cores."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: str, data: bytes = b"") -> Any:
        head = f"{request} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        answer, whole = b"", 1
        while len(answer) < whole:
            if not (piece := self._socket.recv(1 << 20)):
                raise ConnectionError("the server has gone")
            answer += piece
            told, found, _ = answer.partition(b"\r\n\r\n")
            if found:
                size = re.search(rb"content-length: (\d+)", told, re.IGNORECASE)
                whole = len(told) + 4 + int(size[1] if size else 0)
        if not told.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(answer.decode())
        return json.loads(answer[len(told) + 4 :])


def ask(port: int, path: str) -> Any:
    with Connection(port) as connection:
        return connection.ask(f"GET {path}")


def caught_up(port: int) -> None:
    """Wait until the views show everything."""
    end = ask(port, "/status")["position"]
    while min(view["position"] for view in ask(port, "/status")["views"]) < end:
        time.sleep(0.2)


def trickle(port: int, seconds: float, pace: int) -> None:
    """Events that come in steadily, twenty times a second, so that epochs run without end."""
    step = send(0, pace // 20)
    due = time.perf_counter()
    end = due + seconds
    with Connection(port) as connection:
        while due < end:
            step(connection)
            due += 0.05
            time.sleep(max(0.0, due - time.perf_counter()))


if __name__ == "__main__":
    main()
