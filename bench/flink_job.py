"""Runs inside Flink's own environment: queries over Parquet files, a JSON line in and one out for each.

python flink_job.py '{"folder": ..., "state": "hashmap", "written": ["q0"], "patience": 60}'
{"name": "q4", "query": "SELECT ...", "runs": 3}
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "pipeline.object-reuse": "true",
    "execution.checkpointing.interval": "5 s",
    "restart-strategy.type": "none",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.managed.size": "1gb",
    "taskmanager.memory.network.fraction": "0.2",
}
COLUMNS = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,"
    " expires TIMESTAMP(3), seller BIGINT, category BIGINT",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING",
    "search": "id BIGINT, visit BIGINT",
    "click": "id BIGINT, visit BIGINT",
}


def session(folder: Path, state: str, checkpoints: str) -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = SETTINGS | {
        "state.backend.type": state,
        "execution.checkpointing.dir": f"file://{checkpoints}",
    }
    for name, value in settings.items():
        tables.get_config().set(name, value)
    for name, columns in COLUMNS.items():
        tables.execute_sql(
            f"CREATE TABLE `{name}` ({columns}, `dateTime` TIMESTAMP(3), extra STRING,"
            " WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND)"
            f" WITH ('connector'='filesystem', 'path'='file://{folder / name}', 'format'='parquet',"
            " 'parquet.utc-timezone'='true')"
        )
    tables.execute_sql("CREATE TEMPORARY VIEW bid_now AS SELECT *, PROCTIME() AS seen FROM bid")
    return tables


def run(tables: TableEnvironment, name: str, query: str, out: Path | None, patience: float) -> float:
    """Seconds that the job alone takes, as Flink counts them; `patience` if it is stopped after that."""
    sink = f"out_{name}_{time.monotonic_ns()}"
    where = (
        "'connector'='blackhole'"
        if out is None
        else f"'connector'='filesystem', 'path'='file://{out / sink}', 'format'='parquet'"
    )
    job = tables.execute_sql(f"CREATE TABLE {sink} WITH ({where}) AS {query}").get_job_client()
    stopped = threading.Event()

    def stop() -> None:
        stopped.set()
        job.cancel()

    timer = threading.Timer(patience, stop)
    timer.start()
    try:
        return job.get_job_execution_result().result().get_net_runtime() / 1e3
    except Exception:
        if stopped.is_set():
            return patience
        raise
    finally:
        timer.cancel()


def times(tables: TableEnvironment, asked: dict, name: str, query: str, runs: int, out: Path) -> list[float]:
    """The seconds of each run after the first, which warms up; none after one that was stopped."""
    found: list[float] = []
    written = out if name in asked["written"] else None
    for turn in range(runs + 1):
        taken = run(tables, name, query, written, asked["patience"])
        if turn:
            found.append(taken)
            if taken == asked["patience"]:
                break
    return found


def main() -> None:
    asked = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as checkpoints, tempfile.TemporaryDirectory() as out:
        tables = session(Path(asked["folder"]), asked["state"], checkpoints)
        for line in sys.stdin:
            said = json.loads(line)
            try:
                found = times(tables, asked, said["name"], said["query"], said["runs"], Path(out))
                print(json.dumps({"times": found}), flush=True)
            except Exception as error:
                causes = [line for line in str(error).splitlines() if line.startswith("Caused by")]
                print(json.dumps({"error": (causes or [str(error)])[-1][:500]}), flush=True)


if __name__ == "__main__":
    main()
