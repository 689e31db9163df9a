"""Views on a standalone cluster: a master and two workers on this machine, and an executor that dies.

The state lies in the database folder, which every machine of a cluster sees.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from evert.epoch.java import find_java

READY = "Registering worker"
DRIVER = """
import sys, evert
folder, master, kept = sys.argv[1:]
with evert.open(folder, spark_master=master, background=False, shards=2) as db:
    orders = db.stream("orders", "id BIGINT, customer BIGINT")
    db.table("customers", "id BIGINT, country STRING", key="id")
    db.topic("customers").upsert([{"id": n, "country": f"C{n % 3}"} for n in range(30)])
    db.view("joined", "SELECT o.id, country FROM orders o JOIN customers c ON customer = c.id")
    db.view("counted", "SELECT country, count(*) AS n FROM joined GROUP BY country")
    for number in range(12):
        orders.append([{"id": number * 100 + n, "customer": n % 30} for n in range(100)])
        db.refresh(timeout=120)
        print("epoch", number, flush=True)
        assert sum(row["n"] for row in db.view("counted").rows()) == (number + 1) * 100
        if number == int(kept):
            sys.stdin.readline()
    assert all(proof.holds for proof in db.prove())
    from evert.epoch.spark import session
    assert session().sparkContext.master == master
    session().stop()
print("right", flush=True)
"""


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


class Cluster:
    """A master and two workers, each a process that we started."""

    def __init__(self, folder: Path) -> None:
        import pyspark

        home = Path(pyspark.__file__).parent
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_CONF_DIR": str(folder / "conf"),
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_HOME": str(find_java()),
        }
        (folder / "conf").mkdir(parents=True)
        (folder / "conf" / "spark-defaults.conf").write_text(
            "spark.executor.memory 512m\nspark.executor.cores 1\nspark.cores.max 2\n"
        )
        self._folder = folder
        self._started: list[subprocess.Popen] = []
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._log = folder / "master.log"
        self._start("master.Master", "--port", port, "--webui-port", free_port(), log=self._log)
        for number in (1, 2):
            work = ["--cores", 1, "--memory", "1g", "--work-dir", folder / f"work{number}"]
            log = folder / f"worker{number}.log"
            self._start("worker.Worker", *work, "--webui-port", free_port(), self.master, log=log)
        deadline = time.monotonic() + 120
        while self._log.read_text().count(READY) < 2:
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.1)

    def _start(self, kind, *arguments, log):
        command = [self.environment["SPARK_HOME"] + "/bin/spark-class", f"org.apache.spark.deploy.{kind}"]
        with open(log, "wb") as said:
            self._started.append(
                subprocess.Popen(
                    [*command, "--host", "127.0.0.1", *map(str, arguments)],
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            )

    def executors(self) -> list[int]:
        """The executors of our workers."""
        ours = {str(process.pid) for process in self._started}
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if (
                    entry.name.isdigit()
                    and b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes()
                ):
                    parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                    if parent in ours:
                        found.append(int(entry.name))
        return found

    def close(self) -> None:
        for process in reversed(self._started):
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path / "cluster")
    yield made
    made.close()


@pytest.mark.timeout(400)
def test_views_on_a_cluster_are_right_though_an_executor_dies(cluster, tmp_path):
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path / "db"), cluster.master, "3"],
        env=cluster.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        while driver.stdout.readline().strip() != "epoch 3":
            assert driver.poll() is None
        executors = cluster.executors()
        assert len(executors) == 2
        driver.stdin.write("\n")
        driver.stdin.flush()
        time.sleep(0.2)
        os.kill(executors[0], signal.SIGKILL)
        said = driver.stdout.read()
        assert driver.wait(60) == 0
        assert said.endswith("right\n")
    finally:
        driver.kill()
        driver.wait()
        driver.stdin.close()
        driver.stdout.close()
