"""The keeper's process, as whoever started it sees it."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from evert.errors import EvertError, TimedOut

Said = dict[str, Any]


class Keeper:
    """Keeps the views of the shop, in another process: `build`, `go`, `pause`, `prove`, `end`, or kill it."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "evert.demo.keeper", str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        self._said: queue.Queue[Said | None] = queue.Queue()
        self.epochs: list[Said] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if line.startswith("{"):
                    said = json.loads(line)
                    if "epoch" in said:
                        self.epochs.append(said)
                    self._said.put(said)
        self._said.put(None)

    def order(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()

    def wait(self, name: str, timeout: float = 300.0) -> list[Said]:
        """All that it says, up to what has this name."""
        found: list[Said] = []
        end = time.monotonic() + timeout
        while True:
            try:
                said = self._said.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimedOut(f"the process that keeps the views has not said {name!r}") from None
            if said is None:
                raise EvertError(
                    "the process that keeps the views has ended", hint="see what it printed above"
                )
            found.append(said)
            if name in said:
                return found

    def kill(self) -> None:
        """What a power cut does."""
        self._process.kill()
        self._gone()

    def end(self) -> None:
        if self._process.poll() is None:
            self.order("end")
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._gone()

    def _gone(self) -> None:
        """Nothing is left of a process that has ended."""
        self._process.wait()
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._listener.join()
