"""Run a script on a file system that fails where a test says.

`count` runs a script and tells how many calls it makes that change files at or below a folder. `run` runs it
again and lets call number `at` go wrong:

| kind | what happens at call `at` |
| --- | --- |
| `EIO`, `ENOSPC` | this call fails with that error, whatever it is; later ones succeed |
| `ENOSPC+` | this call and all later ones that need room (bytes, names, growth) fail |
| `SHORT` | the next write from here takes half its bytes, the one after it fails with ENOSPC |
| `KILL` | the process gets SIGKILL before the call is made |

Counted are writes in all their forms, fsync, fdatasync, ftruncate, allocation, rename, link, unlink, mkdir
and an open that makes a file. Not seen: writes through a memory mapping (SQLite's `-shm`), and C's `FILE *`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
KINDS = ("EIO", "ENOSPC", "ENOSPC+", "SHORT", "KILL")
COUNTERS = struct.Struct("QQ")


@dataclass(frozen=True)
class Event:
    """One line of the log: a call that succeeded and that matters for what survives a power cut."""

    what: str  # fsync, fdatasync, rename, link or unlink
    path: Path
    size: int  # of the file at that moment, for fsync and fdatasync
    to: Path | None = None  # for rename and link


@dataclass(frozen=True)
class Outcome:
    """How the script ended, and how many calls it had made by then."""

    returncode: int
    stdout: str
    stderr: str
    calls: int

    @property
    def killed(self) -> bool:
        return self.returncode == -signal.SIGKILL


@cache
def available() -> str | None:
    """Why faults cannot be made here, or None if they can."""
    if sys.platform != "linux":
        return f"LD_PRELOAD and /proc are needed, this is {sys.platform}"
    if shutil.which("cc") is None:
        return "no C compiler (cc) on the path"
    try:
        library()
    except subprocess.CalledProcessError as failure:
        return f"cc could not compile {SOURCE.name}: {failure.stderr[-400:]}"
    return None


@cache
def library() -> Path:
    """The compiled shim, in a folder that goes away with this process."""
    folder = Path(tempfile.mkdtemp(prefix="evert-shim-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "shim.so"
    command = ["cc", "-std=gnu11", "-O2", "-Wall", "-shared", "-fPIC", "-o", str(target), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target


def run(
    script: str | Path,
    args: Iterable[object],
    folder: Path,
    *,
    at: int = 0,
    kind: str = "",
    log: Path | None = None,
    timeout: float = 60,
    environment: dict[str, str] | None = None,
) -> Outcome:
    """Run Python source (a `str`) or a Python file (a `Path`) with `args`; with `at=0` nothing fails.

    `folder` is made if it is missing, because the shim must know its real path. To `log` goes a line for each
    fsync, rename, link and unlink that succeeded; `read_log` reads it.
    """
    if (at or kind) and (kind not in KINDS or at < 1):
        raise ValueError(f"at={at}, kind={kind!r}: `at` starts at 1 and `kind` is one of {', '.join(KINDS)}")
    folder.mkdir(parents=True, exist_ok=True)
    source: Sequence[str] = [str(script)] if isinstance(script, Path) else ["-c", script]
    with tempfile.NamedTemporaryFile(prefix="evert-calls-") as counter:
        counter.write(bytes(COUNTERS.size))
        counter.flush()
        settings = {
            "LD_PRELOAD": " ".join(filter(None, [str(library()), os.environ.get("LD_PRELOAD")])),
            "EVERT_FAULT_DIR": str(folder.resolve()),
            "EVERT_FAULT_COUNTER": counter.name,
            "EVERT_FAULT_AT": str(at),
            "EVERT_FAULT_KIND": kind,
            "EVERT_FAULT_LOG": str(log.resolve()) if log else "",
        }
        done = subprocess.run(
            [sys.executable, *source, *map(str, args)],
            env={**os.environ, **(environment or {}), **settings},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        calls, _ = COUNTERS.unpack(Path(counter.name).read_bytes())
    return Outcome(done.returncode, done.stdout, done.stderr, calls)


def count(script: str | Path, args: Iterable[object], folder: Path, *, timeout: float = 60) -> int:
    """How many calls a clean run makes; the script must succeed."""
    outcome = run(script, args, folder, timeout=timeout)
    if outcome.returncode:
        raise RuntimeError(f"the script failed without any fault: {outcome.stderr[-2000:]}")
    return outcome.calls


def read_log(log: Path) -> list[Event]:
    """What the shim wrote, in order; a path with a tab or a newline in it cannot be read back."""
    events = []
    for line in log.read_text().splitlines() if log.exists() else ():
        what, size, path, *to = line.split("\t")
        events.append(Event(what, Path(path), int(size), Path(to[0]) if to else None))
    return events


def durable_sizes(events: Iterable[Event]) -> dict[Path, int]:
    """The size each file had when it was last made durable, under the name it has at the end.

    A file that is missing here was never synced: after a power cut it may be empty or absent. Names are taken
    as durable at once, which is kinder than a real disk; whether its folder was synced too is in the events.
    """
    sizes: dict[Path, int] = {}
    for event in events:
        if event.what in ("fsync", "fdatasync"):
            sizes[event.path] = event.size
        elif event.what == "unlink":
            sizes.pop(event.path, None)
        elif event.to is not None:
            known = sizes.pop(event.path, None) if event.what == "rename" else sizes.get(event.path)
            sizes.pop(event.to, None)
            if known is not None:
                sizes[event.to] = known
    return sizes
