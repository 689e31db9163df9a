"""Files that exist before they are committed, and files that are to go.

A file is announced, written and synced, and then claimed by the commit that refers to it. The sweep first
revokes announcements whose lease is over, and only then removes their files: a writer whose announcement was
revoked finds out when it claims, and its commit fails. So no file that a commit refers to is ever removed.

A name that ends in `-` stands for every file whose name begins with it: what many tasks write for one commit is
announced, claimed and swept together, and the sweep leaves those of the files that a commit refers to.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from evert.catalog import Catalog, Transaction
from evert.disk import disk_errors
from evert.errors import Fenced

LEASE = 10 * 60 * 1_000_000
MANY = "-"
REFERRING = ("segments", "tail", "runs", "changes", "bases")


class Revoked(Fenced):
    """A file's announcement was revoked: its writer was thought dead."""


class Files:
    """The files of one database folder, known to its catalog by their path below it."""

    def __init__(self, catalog: Catalog, folder: Path) -> None:
        self._catalog = catalog
        self.folder = folder
        self.new_owner()

    def new_owner(self) -> None:
        """A name of our own in announcements; a forked child needs another."""
        self.owner = uuid.uuid4().hex

    def path(self, file: str) -> Path:
        return self.folder / file

    def announce(self, room: str, ending: str = "parquet") -> str:
        """A new name in a room (a folder below the database's), held for us for a while."""
        return self._announce(room, f"{uuid.uuid4().hex}.{ending}")

    def announce_prefix(self, room: str) -> str:
        """A new prefix in a room: every file whose name begins with it is held for us for a while."""
        return self._announce(room, f"{uuid.uuid4().hex}{MANY}")

    def _announce(self, room: str, name: str) -> str:
        file = f"{room}/{name}"
        with disk_errors(self.folder / room):
            make_folder(self.folder, room)
        self._catalog.write(
            lambda tx: tx.run("INSERT INTO announcements VALUES (?, ?, ?)", file, self.owner, tx.now + LEASE)
        )
        return file

    def renew(self, tx: Transaction, file: str) -> None:
        """Hold the name for longer, in a transaction that goes on to refer to the file."""
        sql = "UPDATE announcements SET until = ? WHERE file = ? AND owner = ?"
        if not tx.run(sql, tx.now + LEASE, file, self.owner):
            raise _revoked(file)

    def claim(self, tx: Transaction, file: str) -> None:
        """In the commit that refers to the file: it is committed now, no longer announced."""
        if not tx.run("DELETE FROM announcements WHERE file = ? AND owner = ?", file, self.owner):
            raise _revoked(file)

    def discard(self, files: Iterable[str]) -> None:
        """Give up files that were announced and will not be committed.

        A commit that failed may yet turn out to have happened: a file that it refers to stays.
        """
        names = list(files)
        if names:
            self.sweep(names)

    def sweep(self, unwanted: Iterable[str] = ()) -> int:
        """Revoke announcements that are over and remove what no commit refers to; how many files went."""

        def revoke(tx: Transaction) -> list[str]:
            for file in unwanted:
                if is_many(file) or not in_use(tx, file):
                    to_garbage(tx, file)
            for (file,) in tx.all("SELECT file FROM announcements WHERE until < ?", tx.now):
                release(tx, file)
            return [file for (file,) in tx.all("SELECT file FROM garbage")]

        names = self._catalog.write(revoke)
        if not names:
            return 0
        removed, trouble = [], None
        for name in names:
            try:
                for file in self._members(name) if is_many(name) else [name]:
                    self.path(file).unlink(missing_ok=True)
                removed.append(name)
            except OSError as error:
                trouble = error
        with disk_errors(self.folder):
            for room in {self.path(file).parent for file in removed}:
                sync_folder(room)

        def forget(tx: Transaction) -> None:
            for file in removed:
                tx.run("DELETE FROM garbage WHERE file = ?", file)

        self._catalog.write(forget)
        if trouble is not None:
            with disk_errors(self.folder):
                raise trouble
        return len(removed)

    def _members(self, prefix: str) -> list[str]:
        """The files of a prefix that no commit refers to, and none will: it is not announced any more."""
        room = self.path(prefix).parent
        beginning = self.path(prefix).name
        if not room.is_dir():
            return []
        found = [
            f"{prefix}{name.removeprefix(beginning)}"
            for name in os.listdir(room)
            if name.startswith(beginning)
        ]
        with self._catalog.read() as tx:
            return [file for file in found if not in_use(tx, file)]


def is_many(file: str) -> bool:
    return file.endswith(MANY)


def in_use(tx: Transaction, file: str) -> bool:
    """Whether something that is committed refers to the file."""
    return any(tx.one(f"SELECT 1 FROM {table} WHERE file = ? LIMIT 1", file) for table in REFERRING)


def to_garbage(tx: Transaction, file: str) -> None:
    """No commit refers to the file from now on; the next sweep removes it."""
    tx.run("DELETE FROM announcements WHERE file = ?", file)
    tx.run("INSERT INTO garbage VALUES (?, ?) ON CONFLICT DO NOTHING", file, tx.now)


def release(tx: Transaction, file: str) -> None:
    """Announced no longer: the file goes, now or when nothing refers to it any more."""
    tx.run("DELETE FROM announcements WHERE file = ?", file)
    let_go(tx, [file])


def let_go(tx: Transaction, files: Iterable[str]) -> None:
    """Less refers to these files than before: those that nobody needs any more go."""
    for file in files:
        announced = tx.one("SELECT 1 FROM announcements WHERE file = ?", file)
        if announced is None and not in_use(tx, file):
            to_garbage(tx, file)


def make_folder(root: Path, room: str) -> None:
    """Make a folder below the root, durably."""
    target = root / room
    if target.is_dir():
        return
    target.mkdir(parents=True, exist_ok=True)
    while target != root:
        target = target.parent
        sync_folder(target)


def sync(path: Path) -> None:
    """Bring a written file and its name to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    if not path.is_dir():
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _revoked(file: str) -> Revoked:
    return Revoked(
        f"the announcement of {file} was revoked before its commit", hint="append again: nothing was written"
    )
