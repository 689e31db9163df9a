"""The shim makes the faults it is asked for, on plain files, SQLite and Parquet."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.faults import shim
from tests.missing import skip_unless


@pytest.fixture(autouse=True)
def _faults_can_be_made() -> None:
    skip_unless(shim.available())


FILES = """
import errno, os, sys
folder = sys.argv[1]
def attempt(name, call, *args):
    try:
        return call(*args)
    except OSError as error:
        print(name, errno.errorcode[error.errno])
a, b = os.path.join(folder, "a"), os.path.join(folder, "b")
file = attempt("create", os.open, a, os.O_WRONLY | os.O_CREAT, 0o600)  # 1
if file is not None:
    print("wrote", attempt("write", os.write, file, b"12345678"))  # 2
    print("wrote", attempt("write", os.pwrite, file, b"abcd", 8))  # 3
    print("wrote", attempt("writev", os.writev, file, [b"--", b"----", b"--"]))  # 4
    attempt("fsync", os.fsync, file)  # 5
    os.close(file)
attempt("rename", os.rename, a, b)  # 6
again = attempt("open", os.open, b, os.O_WRONLY | os.O_CREAT, 0o600)  # not counted: it exists
if again is not None:
    attempt("grow", os.ftruncate, again, 100)  # 7
    attempt("shrink", os.ftruncate, again, 2)  # 8
    attempt("fdatasync", os.fdatasync, again)  # 9
attempt("link", os.link, b, a)  # 10
attempt("unlink", os.unlink, a)  # 11
attempt("mkdir", os.mkdir, os.path.join(folder, "c"))  # 12
handle = os.open(folder, os.O_RDONLY)
attempt("sync folder", os.fsync, handle)  # 13
with open(os.path.join(os.path.dirname(folder), "elsewhere"), "w") as other:  # not counted: outside
    other.write("x")
print("end")
"""
CALLS = 13

COMMITS = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1] + "/x.db", isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA synchronous=FULL")
db.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER, blob BLOB)")
for n in range(20):
    try:
        db.execute("INSERT INTO t VALUES (?, ?)", (n, b"x" * 5000))
        print("ok", n, flush=True)
    except sqlite3.OperationalError as error:
        print("failed", n, error, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def run_files(folder: Path, **fault: object) -> list[str]:
    outcome = shim.run(FILES, [folder], folder, **fault)  # type: ignore[arg-type]
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout.splitlines()


def test_a_clean_run_counts_only_changes_below_the_folder(folder: Path) -> None:
    assert shim.count(FILES, [folder], folder) == CALLS


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
@pytest.mark.parametrize(
    ("at", "name"),
    [
        (1, "create"),
        (2, "write"),
        (3, "write"),
        (4, "writev"),
        (5, "fsync"),
        (6, "rename"),
        (7, "grow"),
        (8, "shrink"),
        (9, "fdatasync"),
        (10, "link"),
        (11, "unlink"),
        (12, "mkdir"),
        (13, "sync folder"),
    ],
)
def test_exactly_the_call_asked_for_fails(folder: Path, error: str, at: int, name: str) -> None:
    lines = run_files(folder, at=at, kind=error)
    injected = [line for line in lines if line.endswith(error)]
    assert injected == [f"{name} {error}"]


def test_a_full_disk_refuses_what_needs_room_and_nothing_else(folder: Path) -> None:
    lines = run_files(folder, at=3, kind="ENOSPC+")
    failed = [line.removesuffix(" ENOSPC") for line in lines if line.endswith("ENOSPC")]
    assert failed == ["write", "writev", "grow", "link", "mkdir"]


def test_a_short_write_takes_half_and_the_next_write_finds_no_room(folder: Path) -> None:
    lines = run_files(folder, at=1, kind="SHORT")
    assert [line for line in lines if "wr" in line] == ["wrote 4", "write ENOSPC", "wrote None", "wrote 8"]


def test_a_short_write_of_a_vector_takes_half_of_all_its_parts(folder: Path) -> None:
    assert [line for line in run_files(folder, at=4, kind="SHORT") if "wr" in line] == [
        "wrote 8",
        "wrote 4",
        "wrote 4",
    ]


def test_a_kill_comes_before_the_call_and_the_counter_survives_it(folder: Path) -> None:
    outcome = shim.run(FILES, [folder], folder, at=3, kind="KILL")
    assert outcome.killed
    assert outcome.calls == 3
    assert (folder / "a").read_bytes() == b"12345678"


def test_the_log_tells_what_was_durable_and_what_moved(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_files(folder, log=log)
    a, b = folder.resolve() / "a", folder.resolve() / "b"
    events = shim.read_log(log)
    assert [(event.what, event.path, event.to) for event in events] == [
        ("fsync", a, None),
        ("rename", a, b),
        ("fdatasync", b, None),
        ("link", b, a),
        ("unlink", a, None),
        ("fsync", folder.resolve(), None),
    ]
    assert events[0].size == 16
    assert {path: size for path, size in shim.durable_sizes(events).items() if path.is_file()} == {b: 2}


def test_an_fsync_that_failed_is_not_in_the_log(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    run_files(folder, log=log, at=5, kind="EIO")
    assert "fsync" not in [event.what for event in shim.read_log(log) if event.path.name == "a"]


def test_a_relative_path_and_a_link_to_the_folder_are_seen(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "alias").symlink_to(real)
    script = (
        "import os, sys; os.chdir(sys.argv[1]); open('x', 'w').close(); os.rename('x', 'y'); os.unlink('y')"
    )
    assert shim.count(script, [tmp_path / "alias"], tmp_path / "alias") == 3


def test_threads_and_child_processes_share_the_counter(folder: Path) -> None:
    script = """
import os, subprocess, sys, threading
def work(name):
    for _ in range(50):
        with open(name, "ab", buffering=0) as file:
            file.write(b"x")
threads = [threading.Thread(target=work, args=[f"{sys.argv[1]}/{n}"]) for n in range(4)]
[each.start() for each in threads]
[each.join() for each in threads]
child = f"open('{sys.argv[1]}/child', 'wb', buffering=0).write(b'x')"
subprocess.run([sys.executable, "-c", child], check=True)
"""
    assert shim.count(script, [folder], folder) == 4 * 51 + 2


def test_an_unknown_kind_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="EBADIDEA"):
        shim.run("pass", [], folder, at=1, kind="EBADIDEA")


def test_every_commit_of_sqlite_is_seen(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    outcome = shim.run(COMMITS, [folder], folder, log=log)
    assert outcome.stdout.count("ok") == 20
    syncs = [event for event in shim.read_log(log) if event.path.name == "x.db-wal"]
    assert len(syncs) >= 20
    assert outcome.calls > 60


@pytest.mark.parametrize("kind", ["EIO", "ENOSPC", "ENOSPC+", "SHORT", "KILL"])
def test_sqlite_keeps_what_it_acknowledged_whatever_fails(folder: Path, kind: str) -> None:
    total = shim.count(COMMITS, [folder], folder)
    reached = 0
    for at in range(total // 3, total, 7):
        for file in folder.iterdir():
            file.unlink()
        outcome = shim.run(COMMITS, [folder], folder, at=at, kind=kind)
        reached += outcome.calls >= at
        assert kind != "KILL" or outcome.killed
        acknowledged = {int(line.split()[1]) for line in outcome.stdout.splitlines() if line.startswith("ok")}
        stored = rows_of(folder / "x.db")
        assert acknowledged <= stored
    assert reached > 5


def rows_of(path: Path) -> set[int]:
    db = sqlite3.connect(path)
    try:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {n for (n,) in db.execute("SELECT n FROM t")}
    finally:
        db.close()


def test_writing_parquet_is_seen_and_can_fail(folder: Path) -> None:
    script = """
import sys, pyarrow as pa, pyarrow.parquet as pq
table = pa.table({"n": list(range(100_000))})
try:
    pq.write_table(table, sys.argv[1] + "/x.parquet")
    print("written")
except OSError as error:
    print("failed", error.errno)
"""
    total = shim.count(script, [folder], folder)
    assert total > 2
    (folder / "x.parquet").unlink()
    assert shim.run(script, [folder], folder, at=total, kind="ENOSPC").stdout == "failed 28\n"
