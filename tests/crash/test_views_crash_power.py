"""The power fails: of every file only what was synced is left, and of every folder only the names that were.

Driver, JVM and Python workers run on a file system that writes down every sync. At some moment the driver dies; a
copy of the folder without all that was not synced by then is what a power cut leaves. It has every epoch that a
reader has seen, and it goes on.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest
from tests.crash.views_faulty import Crowd, ViewServer, check_end
from tests.crash.views_workload import SETTINGS
from tests.faults import shim
from tests.missing import skip_unless

import evert

ROOMS = ("state", "views")
"""The folders in which every file is synced before its folder is."""


@pytest.fixture
def log(tmp_path):
    skip_unless(shim.available())
    return tmp_path / "synced"


def shimmed(tmp_path, folder, log):
    counter = tmp_path / "calls"
    counter.write_bytes(bytes(shim.COUNTERS.size))
    return {
        "LD_PRELOAD": str(shim.library()),
        "EVERT_FAULT_DIR": str(folder.resolve()),
        "EVERT_FAULT_COUNTER": str(counter),
        "EVERT_FAULT_AT": "0",
        "EVERT_FAULT_KIND": "",
        "EVERT_FAULT_LOG": str(log.resolve()),
    }


def names_synced(events):
    """The files whose names have reached the disk: their folder was synced after them."""
    waiting, there = {}, set()
    for event in events:
        if event.what in ("fsync", "fdatasync"):
            there |= waiting.pop(event.path, set())
            waiting.setdefault(event.path.parent, set()).add(event.path)
    return there


def cut(folder, copy, log, known):
    """Copy the folder as a power cut would leave it. `known` are sizes of files that are durable anyway."""
    events = shim.read_log(log)
    sizes, names = {**known, **shim.durable_sizes(events)}, names_synced(events) | known.keys()
    shutil.copytree(folder, copy)
    for file in files(copy):
        original = folder.resolve() / file.relative_to(copy)
        size = sizes.get(original, 0)
        if file.name != "head" and not file.name.endswith("-shm"):
            if file.parent.name in ROOMS and original not in names:
                file.unlink()
                continue
            if size < file.stat().st_size:
                os.truncate(file, size)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def until_more(seen, count):
    deadline = time.monotonic() + 150
    while len(seen) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def power_cuts(tmp_path, log, seed, times):
    chance = random.Random(seed)
    disk = tmp_path / "disk"
    disk.mkdir()
    folder = disk / "0"
    server = ViewServer(tmp_path, shimmed(tmp_path, disk, log))
    crowd = Crowd(folder, seed, writes=False)
    known: dict[Path, int] = {}
    try:
        server.run(folder, make=True, writes=1, seconds=0.1)
        for number in range(1, times + 1):
            with crowd:
                pid = server.start(folder, writes=number + 1, seconds=120)
                until_more(crowd.seen, len(crowd.seen) + 2)
                time.sleep(chance.uniform(0, 1))
                os.kill(pid, signal.SIGKILL)
                server.end()
                # before the reader closes the catalog: the last one to do so writes to it, unseen by the log
                cut(folder, disk / str(number), log, known)
            folder = crowd.folder = disk / str(number)
            with evert.open(folder, **SETTINGS) as db:
                assert db.view("grand").position >= max(crowd.seen), "an epoch that was seen is lost"
                crowd.look(db)
            known = {file.resolve(): file.stat().st_size for file in files(folder)}
        assert server.run(folder, finish=True) == 0
        check_end(folder, crowd)
    finally:
        server.close()


@pytest.mark.timeout(400)
def test_a_power_cut_loses_no_epoch_that_was_seen(tmp_path, log):
    power_cuts(tmp_path, log, seed=1, times=2)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_power_cuts_lose_no_epoch_that_was_seen(tmp_path, log):
    power_cuts(tmp_path, log, seed=2, times=20)
