"""Is this machine fit for Evert, and is this database whole?"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from evert.catalog.sqlite import FILE, SqliteCatalog
from evert.catalog.steps import FORMAT
from evert.database import Database
from evert.database import open as open_database
from evert.epoch.java import find_java
from evert.errors import Corrupt, EvertError
from evert.log.verify import verify
from evert.version import __version__
from evert.views.verify import verify as verify_views

LITTLE_ROOM = 1_000_000_000
NO_ROOM = 50_000_000
NETWORK = {
    "afs", "beegfs", "ceph", "cifs", "davfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
    "ocfs2", "smb", "smb2", "smb3", "smbfs",
}  # fmt: skip
NETWORK_FUSE = {
    "fuse.ceph",
    "fuse.davfs2",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
}
SHARED = {"9p", "virtiofs", "drvfs"}

Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True)
class Check:
    """One line of the doctor's report. `corrupt` marks errors that mean damaged or lost data."""

    level: Level
    what: str
    hint: str | None = None
    corrupt: bool = False


def examine_machine() -> Iterator[Check]:
    """Python, Spark and Java."""
    found = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 11)
    yield Check(
        "ok" if fine else "error", f"Python {found}", None if fine else "Evert needs Python 3.11 or later"
    )
    try:
        yield Check("ok", f"Spark {version('pyspark')}")
    except PackageNotFoundError:
        yield Check(
            "warning", "Spark is not installed, so views cannot be kept", "pip install 'evert[spark]'"
        )
    try:
        yield Check("ok", f"Java in {find_java()}")
    except EvertError as error:
        yield Check("warning", error.message, error.hint)


def examine_disk(folder: Path, mounts: str | None = None) -> Iterator[Check]:
    """The file system that the folder is on, and the room that it has."""
    kind = file_system(folder, mounts)
    if kind in NETWORK | NETWORK_FUSE:
        yield Check(
            "error",
            f"{folder} is on {kind}, a network file system, whose locks and syncs cannot be trusted",
            "move the folder to a local disk",
        )
    elif kind in SHARED:
        yield Check(
            "warning",
            f"{folder} is on {kind}, which is shared with another system",
            "let only programs of this side open the database, or move it to a local disk",
        )
    elif kind is not None:
        yield Check("ok", f"file system {kind}")
    free = shutil.disk_usage(folder).free
    room = f"{free / 1e9:.1f} GB free"
    if free < NO_ROOM:
        yield Check("error", f"{room}: appends are about to fail", "free some space")
    elif free < LITTLE_ROOM:
        yield Check("warning", room, "free some space, or bound topics with retain or retain_bytes")
    else:
        yield Check("ok", room)


def file_system(folder: Path, mounts: str | None = None) -> str | None:
    """The type of the file system that a folder is on; None where that cannot be told."""
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(errors="replace")
        except OSError:
            return None
    place = folder.resolve()
    best: tuple[int, str] | None = None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        point = Path(fields[1].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\"))
        if place.is_relative_to(point) and (best is None or len(point.parts) >= best[0]):
            best = (len(point.parts), fields[2])
    return best[1] if best else None


def examine_database(folder: Path, *, deep: bool = False, accept_loss: bool = False) -> Iterator[Check]:
    """The catalog, the log and the consumers of a database. It is not opened on a network file system."""
    disk = list(examine_disk(folder))
    yield from disk
    if file_system(folder) in NETWORK | NETWORK_FUSE:
        return
    try:
        db = open_database(folder, create=False, background=False)
    except Corrupt as error:
        if not accept_loss:
            yield Check("error", error.message, error.hint, corrupt=True)
            return
        SqliteCatalog.accept_loss(folder)
        yield Check("warning", f"accepted: {error.message}")
        try:
            db = open_database(folder, create=False, background=False)
        except EvertError as again:
            yield _failed(again)
            return
    except EvertError as error:
        yield _failed(error)
        return
    with db:
        yield from _examine(db, deep)


def _examine(db: Database, deep: bool) -> Iterator[Check]:
    try:
        yield Check("ok", f"format {FORMAT}, position {db.position}")
        catalog = list(_catalog(db, deep))
        yield from catalog
        if any(check.corrupt for check in catalog):
            return
        problems = [*verify(db, deep), *verify_views(db.catalog, db.path, deep=deep)]
        for problem in problems:
            yield Check(problem.level, problem.what, problem.hint, corrupt=problem.level == "error")
        if not any(problem.level == "error" for problem in problems):
            yield Check("ok", "every offset is there" + (", and every checksum is right" if deep else ""))
        yield from _consumers(db)
        yield from _sparks(db)
    except EvertError as error:
        yield _failed(error)


def _catalog(db: Database, deep: bool) -> Iterator[Check]:
    how = "integrity_check" if deep else "quick_check"
    with db.catalog.read() as tx:
        said = [str(row[0]) for row in tx.all(f"PRAGMA {how}")]
    if said == ["ok"]:
        yield Check("ok", f"{FILE} is sound")
    for line in said if said != ["ok"] else []:
        yield Check("error", f"{FILE}: {line}", "restore a backup", corrupt=True)


def _consumers(db: Database) -> Iterator[Check]:
    for lag in db.lag():
        if lag.warning:
            yield Check(
                "warning", f"{lag.group} on {lag.topic}: {lag.warning}", f"see `evert lag {lag.topic}`"
            )


def _sparks(db: Database) -> Iterator[Check]:
    """Which versions of Spark have passed the test that is made before a database's views are planned."""
    with db.catalog.read() as tx:
        found = tx.all("SELECT name, value FROM engine WHERE name LIKE 'spark %' ORDER BY name")
    for name, tested_by in found:
        if tested_by == __version__:
            yield Check("ok", f"{name.capitalize()} plans views as expected")


def _failed(error: EvertError) -> Check:
    return Check("error", error.message, error.hint, corrupt=isinstance(error, Corrupt))
