"""State: a day of searches and clicks through joins within an interval, sessions and windows.

Two databases get the same events, ten minutes of them at a time: one forgets what is older than ten minutes, the
other one forgets nothing. What nodes keep is measured after each epoch; what views show is not part of it. At the
end every view is proved against Spark.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.figures import Figures

import evert

DAY = datetime(2026, 3, 2, tzinfo=UTC)
STEP, HOURS = 600, 24
WITHIN = "s.session = c.session AND c.at BETWEEN s.at AND s.at + INTERVAL 1 HOUR"
VIEWS = {
    "clicked": f"SELECT s.id, c.id AS click FROM searches s JOIN clicks c ON {WITHIN}",
    "rate": "SELECT window(at, '10 minutes') AS w, count(*) AS searches, count(click) AS clicks FROM"
    f" (SELECT s.at, c.id AS click FROM searches s LEFT JOIN clicks c ON {WITHIN}) GROUP BY 1",
    "busy": "SELECT a.w, a.n AS searches, b.n AS clicks FROM"
    " (SELECT window(at, '1 hour', '10 minutes') AS w, count(*) AS n FROM searches GROUP BY 1) a LEFT JOIN"
    " (SELECT window(at, '1 hour', '10 minutes') AS w, count(*) AS n FROM clicks GROUP BY 1) b ON a.w = b.w",
    "visits": "SELECT session, session_window(at, '15 minutes') AS w, count(*) AS n FROM searches GROUP BY 1, 2",
    "rolling": "SELECT id, count(*) OVER (PARTITION BY session ORDER BY at"
    " RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND CURRENT ROW) AS n FROM searches",
}
SYSTEMS = {"forgets after 10 minutes": "10 minutes", "forgets nothing": None}


def main() -> None:
    options = Figures.options(__doc__)
    options.add_argument("--events", type=int, default=1_000_000, help="searches and clicks of the day")
    chosen = options.parse_args()
    with Figures("state", chosen) as figures:
        for system, length in SYSTEMS.items():
            live(figures, system, length, chosen.events)


def live(figures: Figures, system: str, length: str | None, events: int) -> None:
    """The whole day in one database."""
    sizes: list[float] = []
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder, evert.open(Path(folder) / "state.evert") as db:
        for topic in ("searches", "clicks"):
            options = {"event_time": "at", "lateness": "1 minute", "forget_after": length}
            db.stream(topic, "id BIGINT, session BIGINT, at TIMESTAMP", **options)
        for name, query in VIEWS.items():
            db.view(name, query)
        steps = HOURS * 3600 // STEP
        for searches, clicks in day(events, steps):
            db.topic("searches").append(searches)
            db.topic("clicks").append(clicks)
            db.refresh(timeout=600, on_epoch=lambda done: times.append(done.milliseconds))
            sizes.append(kept(db) / 1e6)
        right = all(proof.holds for proof in db.prove())
    per_hour = steps // HOURS
    for hour in (1, 3, 6, 12, 24):
        upto = slice(max(0, (hour - 6) * per_hour), hour * per_hour)
        figures.add(
            f"state, hours up to {hour}", system, [max(sizes[upto])], "MB", right if hour == HOURS else None
        )
    half = len(times) // 2
    figures.add("epochs of the morning", system, times[10:half], "ms")
    figures.add("epochs of the evening", system, times[half:], "ms")


def day(events: int, steps: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Searches and clicks, ten minutes at a time; half of the searches are clicked on within the next half hour."""
    chance = np.random.default_rng(1)
    count = events * 2 // 3 // steps
    waiting = np.zeros((0, 2), np.int64)
    for step in range(steps):
        begin = step * STEP * 1_000_000
        ats = np.sort(chance.integers(begin, begin + STEP * 1_000_000, count))
        sessions = step // 3 * 2000 + chance.integers(0, 3000, count)
        clicked = chance.random(count) < 0.5
        delays = chance.integers(1_000_000, 1_800_000_000, count)
        waiting = np.concatenate([waiting, np.stack([sessions, ats + delays], 1)[clicked]])
        due = waiting[:, 1] < begin + STEP * 1_000_000
        clicks, waiting = waiting[due], waiting[~due]
        clicks = clicks[np.argsort(clicks[:, 1])]
        yield table(step * count, sessions, ats), table(step * count, clicks[:, 0], clicks[:, 1])


def table(first: int, sessions: np.ndarray, ats: np.ndarray) -> pa.Table:
    start = int(DAY.timestamp() * 1e6)
    times = pa.array(ats + start).cast(pa.timestamp("us", "UTC"))
    return pa.table({"id": np.arange(first, first + len(ats)), "session": sessions, "at": times})


def kept(db: evert.Database) -> int:
    """The bytes of what nodes keep, but for the rows that views show."""
    sql = (
        "SELECT coalesce(sum(r.bytes), 0) FROM runs r JOIN nodes n ON n.id = r.node WHERE n.name <> 'output'"
    )
    with db.catalog.read() as tx:
        return int(tx.all(sql)[0][0])


if __name__ == "__main__":
    main()
