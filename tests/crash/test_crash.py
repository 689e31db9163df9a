"""The disk fails, or the process dies, at every call: nothing acknowledged is lost, nothing is torn."""

from __future__ import annotations

import os
import random
import shutil

import pytest
from tests.crash.faulty import Faulty, check
from tests.faults import shim
from tests.missing import skip_unless

KINDS = ("EIO", "ENOSPC", "ENOSPC+", "SHORT", "KILL")
STRIDE = 47


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    skip_unless(shim.available())
    server = Faulty(tmp_path_factory.mktemp("crash"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def calls(faulty):
    clean = faulty.run()
    assert clean.status == 0
    assert clean.acknowledged == clean.tried
    check(clean)
    return clean.calls


def fail_at(faulty, at, kind):
    run = faulty.run(at=at, kind=kind)
    if kind == "KILL":
        assert run.status == -9
    else:
        assert run.status == 0 or "evert.errors." in run.raised, f"not an error of Evert: {run.raised}"
    try:
        check(run)
    except BaseException as error:
        error.add_note(f"{kind} at call {at}: {run}")
        raise
    shutil.rmtree(run.folder)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_a_call_loses_and_tears_nothing(faulty, calls, kind):
    first = 1 + KINDS.index(kind) * STRIDE // len(KINDS)
    for at in range(first, calls + 1, STRIDE):
        fail_at(faulty, at, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_call_loses_and_tears_nothing(faulty, calls, kind):
    for at in range(1, calls + 1):
        fail_at(faulty, at, kind)


def cut(faulty, tmp_path, at, chance, most):
    """Kill at a call, then cut every file at places behind what was last synced."""
    log = tmp_path / f"synced-{at}"
    run = faulty.run(at=at, kind="KILL", log=log)
    durable = shim.durable_sizes(shim.read_log(log)) if log.exists() else {}
    for file in sorted(run.folder.rglob("*")):
        if not file.is_file() or file.name == "head" or file.name.endswith("-shm"):
            continue
        size, kept = file.stat().st_size, durable.get(file.resolve(), 0)
        places = range(min(kept, size), size)
        for place in sorted(chance.sample(places, min(most, len(places)))):
            copy = tmp_path / "cut"
            shutil.copytree(run.folder, copy)
            os.truncate(copy / file.relative_to(run.folder), place)
            try:
                check(run, copy)
            except BaseException as error:
                error.add_note(
                    f"killed at call {at}, {file.name} of {size} bytes ({kept} synced) cut at {place}: {run}"
                )
                raise
            shutil.rmtree(copy)
    shutil.rmtree(run.folder)


@pytest.mark.timeout(1200)
def test_files_cut_behind_the_last_sync_lose_and_tear_nothing(faulty, calls, tmp_path):
    chance = random.Random(11)
    for at in range(9, calls + 1, 2 * STRIDE):
        cut(faulty, tmp_path, at, chance, most=6)


@pytest.mark.slow
def test_files_cut_at_every_byte_behind_the_last_sync_lose_and_tear_nothing(faulty, calls, tmp_path):
    chance = random.Random(12)
    for at in chance.sample(range(1, calls + 1), 40):
        cut(faulty, tmp_path, at, chance, most=100_000)
