"""A real Kafka broker: one node, KRaft, on free ports of the loopback address, in a folder of its own.

reason = kafka.available()
if reason is None:
    with kafka.Broker(folder, properties={"log.flush.interval.messages": "1"}) as broker:
        Producer({"bootstrap.servers": broker.address})
"""

from __future__ import annotations

import base64
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType

from tests.servers import maven
from tests.servers.maven import FetchError

VERSION = "4.3.1"
ARTIFACTS = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")
LEAST_JAVA = 17
SMALL_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"


@cache
def available() -> str | None:
    """Why no broker can be had here, or None if it can; fetches it when it is not there yet."""
    try:
        java = maven.java()
        found = maven.java_version(java)
        if found < LEAST_JAVA:
            return f"Kafka {VERSION} needs Java {LEAST_JAVA} or later, {java} is {found}"
        _jars()
    except FetchError as reason:
        return str(reason)
    return None


class StartError(Exception):
    """The broker ended, or did not listen in time; the message ends with what it said last."""


class Broker:
    """One broker process; when it is stopped, `start` takes up its folder and its ports again."""

    def __init__(
        self,
        folder: Path,
        *,
        properties: Mapping[str, str] | None = None,
        jvm: Sequence[str] = SMALL_JVM,
        patience: float = 60,
    ) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._properties = dict(properties or {})
        self._jvm = tuple(jvm)
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: list[int] = []

    @property
    def address(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def start(self) -> Broker:
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempts_left in (2, 1, 0):
            self._ports = self._ports or _free_ports(2)
            config = self.folder / "server.properties"
            config.write_text(self._config())
            if not self.data.is_dir():
                self._format(config)
            self._process = self._launch("kafka.Kafka", str(config))
            try:
                self._wait()
                break
            except StartError as failure:
                self.stop()
                # Another process may have taken a port between our asking and the broker's binding.
                if not attempts_left or "in use" not in str(failure):
                    raise
                self._ports = []
        return self

    def stop(self) -> None:
        """SIGTERM to the broker's own pid, and SIGKILL if that does not end it."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """SIGKILL, as a crash would."""
        assert self._process is not None, "the broker is not running"
        self._process.kill()
        self._process.wait()
        self._process = None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _config(self) -> str:
        one = "1"
        controller = f"127.0.0.1:{self._ports[1]}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": one,
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{controller}",
            "log.dirs": str(self.data.resolve()),
            "offsets.topic.replication.factor": one,
            "offsets.topic.num.partitions": one,
            "transaction.state.log.replication.factor": one,
            "transaction.state.log.min.isr": one,
            "transaction.state.log.num.partitions": one,
            "share.coordinator.state.topic.replication.factor": one,
            "share.coordinator.state.topic.min.isr": one,
            "group.initial.rebalance.delay.ms": "0",
        }
        return "".join(f"{name}={value}\n" for name, value in (properties | self._properties).items())

    def _format(self, config: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        tool = self._launch("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config))
        if tool.wait(timeout=self._patience):
            raise StartError(f"the broker's folder could not be formatted: {self._last_words()}")

    def _launch(self, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / "broker.log").open("ab") as log:
            return subprocess.Popen(
                [maven.java(), *self._jvm, QUIET, "-cp", f"{_jars()}/*", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self) -> None:
        assert self._process is not None
        give_up = time.monotonic() + self._patience
        while time.monotonic() < give_up:
            if self._process.poll() is not None:
                code = self._process.returncode
                raise StartError(f"the broker ended with exit code {code}: {self._last_words()}")
            try:
                socket.create_connection(("127.0.0.1", self._ports[0]), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise StartError(f"the broker did not listen within {self._patience:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        return (self.folder / "broker.log").read_text(errors="replace")[-1500:]


def _jars() -> Path:
    return maven.fetch(f"kafka-{VERSION}", ARTIFACTS)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()
