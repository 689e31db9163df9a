"""Looking for damage in what views are made of: runs and changelogs, which the log can be asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from evert.catalog import Catalog
from evert.errors import Corrupt
from evert.log.verify import Problem
from evert.trace.runs import RunCache, Stored
from evert.views import changes

_REBUILD = "build the view anew: define it with replace=True, or drop it and define it again"


def verify(catalog: Catalog, folder: Path, *, deep: bool = False) -> list[Problem]:
    """What is wrong with the state and the history of views. Others may go on writing meanwhile."""
    return [*_runs(catalog, folder, deep), *_changes(catalog, folder, deep)]


def _runs(catalog: Catalog, folder: Path, deep: bool) -> Iterator[Problem]:
    sql = (
        "SELECT v.name, r.id, r.file, r.start, r.bytes, r.rows, r.checksum"
        " FROM views v JOIN nodes n ON n.view = v.id JOIN runs r ON r.node = n.state ORDER BY r.id"
    )
    with catalog.read() as tx:
        found = [(name, Stored(*run)) for name, *run in tx.all(sql)]
    cache = RunCache()
    for name, stored in found:
        try:
            if not deep:
                _check_size(folder, stored)
            else:
                cache.open(folder, stored, verify=True)
        except Corrupt as error:
            with catalog.read() as tx:
                if tx.one("SELECT 1 FROM runs WHERE id = ?", stored.id):
                    yield Problem(
                        "error", f"the state of {name}: {error.message}", _REBUILD, file=stored.file
                    )


def _check_size(folder: Path, stored: Stored) -> None:
    path = folder / stored.file
    size = path.stat().st_size if path.exists() else None
    if size is None or size < stored.start + stored.bytes:
        why = "it is missing" if size is None else f"its file has only {size} bytes"
        raise Corrupt(f"the run at {stored.start} in {stored.file} is damaged: {why}", file=stored.file)


def _changes(catalog: Catalog, folder: Path, deep: bool) -> Iterator[Problem]:
    which = "" if deep else " AND c.file IS NOT NULL"
    sql = f"SELECT v.name, c.id FROM views v JOIN changes c ON c.feed = v.feed{which} ORDER BY c.id"
    with catalog.read() as tx:
        found = tx.all(sql)
    for name, number in found:
        try:
            changes.check(catalog, folder, number, deep=deep)
        except Corrupt as error:
            what = f"the history of {name}: {error.message}"
            yield Problem("error", what, _REBUILD, file=error.details.get("file"))
