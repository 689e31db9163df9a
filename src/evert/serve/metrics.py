"""What Prometheus scrapes: the log, the topics, the views, and the requests of this server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from starlette.responses import Response

from evert.serve.board import board
from evert.serve.http import Call, Endpoint

TEXT = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)
Labels = dict[str, Any]
Sample = tuple[Labels, float]


class Requests:
    """How many requests there were of each endpoint, and how long they took."""

    def __init__(self) -> None:
        self._answered: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[tuple[str, str], list[int]] = {}
        self._seconds: Counter[tuple[str, str]] = Counter()

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        self._answered[method, path, status] += 1
        buckets = self._buckets.setdefault((method, path), [0] * (len(BOUNDS) + 1))
        buckets[next((i for i, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))] += 1
        self._seconds[method, path] += seconds  # type: ignore[assignment]

    def lines(self) -> Iterator[str]:
        answered = [({"method": m, "path": p, "status": s}, n) for (m, p, s), n in self._answered.items()]
        yield from lines("evert_http_requests_total", "counter", "requests answered", answered)
        name = "evert_http_request_seconds"
        yield f"# HELP {name} how long requests took"
        yield f"# TYPE {name} histogram"
        for (method, path), buckets in self._buckets.items():
            labels, total = {"method": method, "path": path}, 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), buckets, strict=True):
                total += count
                yield _line(f"{name}_bucket", labels | {"le": bound}, total)
            yield _line(f"{name}_count", labels, total)
            yield _line(f"{name}_sum", labels, self._seconds[method, path])


async def metrics(call: Call) -> Response:
    told = await call.run(board, call.db)
    found = [*_board(told), *call.server.requests.lines()]
    return Response("\n".join(found) + "\n", media_type=TEXT)


_OF_TOPICS = (
    ("appended", "evert_topic_appended_total", "counter", "rows that ever came in"),
    ("rows", "evert_topic_rows", "gauge", "rows that are kept"),
    ("bytes", "evert_topic_bytes", "gauge", "bytes on the disk"),
    ("late", "evert_topic_late_total", "counter", "events older than the mark of their source"),
    ("dropped", "evert_topic_dropped_total", "counter", "events that were set aside"),
)
_OF_VIEWS = (
    ("position", "evert_view_position", "gauge", "the position up to which the rows are right"),
    ("lag_events", "evert_view_lag_events", "gauge", "rows of topics that it has not seen"),
    ("lag_seconds", "evert_view_lag_seconds", "gauge", "the age of the oldest of them"),
    ("rows", "evert_view_rows", "gauge", "rows of the view"),
    ("bytes", "evert_view_state_bytes", "gauge", "the size of its state"),
    ("corrections", "evert_view_corrections_total", "counter", "stragglers that it has taken in"),
)


def _board(told: dict[str, Any]) -> Iterator[str]:
    yield from lines("evert_log_position", "gauge", "the last position of the log", [({}, told["position"])])
    yield from lines(
        "evert_running", "gauge", "whether some process keeps the views", [({}, told["running"])]
    )
    shown = [view for view in told["views"] if not view["replacing"]]
    for label, of, things in (("topic", _OF_TOPICS, told["topics"]), ("view", _OF_VIEWS, shown)):
        for field, name, kind, about in of:
            samples = [({label: one["name"]}, one[field]) for one in things if one.get(field) is not None]
            yield from lines(name, kind, about, samples)
    epochs = {view["group"]: view["epoch_ms"] for view in shown if view["epoch_ms"] is not None}
    spent = [({"group": group}, milliseconds / 1e3) for group, milliseconds in epochs.items()]
    yield from lines("evert_epoch_seconds", "gauge", "how long the last epoch took", spent)
    states = [({"view": view["name"], "state": view["state"]}, 1) for view in shown]
    yield from lines("evert_view_state", "gauge", "the state of a view", states)


def lines(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """A metric in the text format; nothing if there is no sample."""
    found = list(samples)
    if found:
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} {kind}"
        yield from (_line(name, labels, value) for labels, value in found)


def _line(name: str, labels: Labels, value: float) -> str:
    """
    >>> _line("rows", {"topic": 'a"b'}, 3)
    'rows{topic="a\\\\"b"} 3'
    """
    inner = ",".join(f'{key}="{_escaped(str(text))}"' for key, text in labels.items())
    return f"{name}{{{inner}}} {value + 0}" if inner else f"{name} {value + 0}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


ENDPOINTS = (
    Endpoint(
        "GET",
        "/metrics",
        "For Prometheus.",
        metrics,
        ("admin", ""),
        gives=("text/plain",),
        answer={"type": "string"},
    ),
)
