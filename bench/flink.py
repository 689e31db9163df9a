"""Flink SQL as a peer: its own environment from PyPI and Maven, its Nexmark queries, a process that runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.servers.maven import SERVERS, FetchError, fetch

from bench import clicks
from evert.testing import nexmark

VERSION = "2.3.0"
HOME = SERVERS / f"flink-{VERSION}"
JARS = (
    f"org.apache.flink:flink-sql-parquet:{VERSION}",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "org.apache.hadoop:hadoop-client-runtime:3.3.6",
    "commons-logging:commons-logging:1.2",
    "com.github.luben:zstd-jni:1.5.7-7",
)
HEAP = "-Xmx3g"
"""With a gigabyte of managed memory beside it: as much as everybody has."""

STATES = {"heap": "hashmap", "rocksdb": "rocksdb"}
"""Where Flink's state can be, with Flink's word for it."""

_COUNTED = """SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end"""
_OWN = {
    "q5": f"""SELECT a.auction, a.num FROM ({_COUNTED}) AS a
        JOIN (SELECT max(num) AS maxn, starttime, endtime FROM ({_COUNTED}) GROUP BY starttime, endtime) AS m
        ON a.starttime = m.starttime AND a.endtime = m.endtime AND a.num >= m.maxn""",
    "q7": """SELECT b.auction, b.price, b.bidder, b.`dateTime`, b.extra FROM bid AS b
        JOIN (SELECT max(price) AS maxprice, window_end AS until
              FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
              GROUP BY window_start, window_end) AS m ON b.price = m.maxprice
        WHERE b.`dateTime` BETWEEN m.until - INTERVAL '10' SECOND AND m.until""",
    "q8": """SELECT p.id, p.name, p.starttime
        FROM (SELECT id, name, window_start AS starttime, window_end AS endtime
              FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
              GROUP BY id, name, window_start, window_end) AS p
        JOIN (SELECT seller, window_start AS starttime, window_end AS endtime
              FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
              GROUP BY seller, window_start, window_end) AS a
        ON p.id = a.seller AND p.starttime = a.starttime AND p.endtime = a.endtime""",
    "q11": """SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q12": """SELECT bidder, count(*) AS bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE bid_now, DESCRIPTOR(seen), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q22": """SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1,
        SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid""",
}
"""What Flink says in another way; the rest is the same text."""
_UNABLE = {"q6"}
"""A window over rows that change, which Flink does not keep."""


def query(name: str) -> str | None:
    """A query in Flink's SQL, if it can run it."""
    if name in _UNABLE:
        return None
    if name in _OWN:
        return _OWN[name]
    known = {**nexmark.QUERIES, clicks.QUERY.name: clicks.QUERY}
    text = known[name].sql.replace("LENGTH(", "CHAR_LENGTH(")
    return re.sub(r"\b(dateTime|day|minute|search)\b", r"`\1`", text)


def available() -> str | None:
    """Sees to it that Flink can run; why it cannot, if so."""
    try:
        _install()
    except (FetchError, subprocess.CalledProcessError) as error:
        return str(error)
    return None


def _install() -> None:
    if HOME.is_dir():
        return
    jars = fetch(f"flink-parquet-{VERSION}", JARS)
    part = HOME.with_name(f"{HOME.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    venv.create(part, with_pip=True)
    pip = [part / "bin" / "python", "-m", "pip", "install", "-q", f"apache-flink=={VERSION}"]
    subprocess.run(pip, check=True, capture_output=True)
    (lib,) = part.glob("lib/python*/site-packages/pyflink/lib")
    for jar in jars.glob("*.jar"):
        if not jar.name.startswith("slf4j"):  # Flink brings its own
            shutil.copy(jar, lib)
    part.rename(HOME)


class Flink:
    """A Flink session in a process of its own, to be used within `with`; it waits between queries.

    `folder` has a folder of Parquet files for each topic; the rows of `written` queries go to files, the others'
    changes nowhere. A run that takes more than `patience` seconds is stopped.
    """

    def __init__(self, folder: Path, *, state: str, written: Sequence[str], patience: float) -> None:
        self.state = state
        asked = {
            "folder": str(folder),
            "state": STATES[state],
            "written": list(written),
            "patience": patience,
        }
        self._command = [
            HOME / "bin" / "python",
            Path(__file__).with_name("flink_job.py"),
            json.dumps(asked),
        ]

    def __enter__(self) -> Flink:
        environment = os.environ | {"JVM_ARGS": HEAP, "PYTHONPATH": ""}
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()

    @property
    def process(self) -> int:
        return self._process.pid

    def seconds(self, name: str, runs: int) -> list[float] | str:
        """The seconds of a query's runs, warmed up by one before them; or why there are none.

        A run that was stopped counts as the seconds it was given, and is the last one.
        """
        text = query(name)
        if text is None:
            return "Flink does not keep a window over rows that change"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"name": name, "query": text, "runs": runs}) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("{"):
                said = json.loads(line)
                return said.get("times") or said["error"]
            sys.stderr.write(line)
        return "Flink's process has ended"
