"""Views come, change and go by the hundred, and their keeper is killed now and then: what is left is right."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.crash.views_churn import SETTINGS, make
from tests.crash.views_faulty import check_files

import evert
from evert.clock import SystemClock
from evert.doctor import examine_database
from evert.testing import ManualClock

ROOT = Path(__file__).parents[2]
COUNT = int(os.environ.get("EVERT_CHURN", "500"))


def kill(child):
    os.killpg(child.pid, signal.SIGKILL)
    child.wait(30)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_five_hundred_definitions_leave_nothing_wrong_and_nothing_behind(spark, tmp_path):
    chance = random.Random(7)
    folder, log = tmp_path / "db", tmp_path / "defined"
    make(folder)
    log.touch()
    seed = 0
    while len(log.read_text().splitlines()) < COUNT:
        seed += 1
        command = [sys.executable, "-m", "tests.crash.views_churn", str(folder), str(seed), str(log)]
        child = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True
        )
        end = time.monotonic() + chance.uniform(20, 120)
        while time.monotonic() < end and child.poll() is None:
            time.sleep(0.2)
        assert child.poll() is None, "the process must not end by itself"
        kill(child)
        with evert.open(folder, **SETTINGS) as db:
            db.refresh(timeout=600)
            for proof in db.prove():
                assert proof.holds, (proof.view, proof.missing, proof.unexpected)
    later = ManualClock(SystemClock().now() + 3_600_000_000)
    with evert.open(folder, clock=later, **SETTINGS) as db:
        check_files(db)
        for name in db.views:
            db.drop(name)
        check_files(db)
    assert not [check for check in examine_database(folder, deep=True) if check.level == "error"]
