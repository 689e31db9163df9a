"""Looking for damage: is everything that was committed there, in its place, as it was written?

offsets.first ─┬─ segment ─┬─ segment ─┬─ tail ─┬─ tail ─┬─ offsets.next      no gap, no overlap
               └ file: there, its size, and (deep) its checksum and its count of rows
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from evert.catalog import Catalog, Transaction
from evert.errors import Corrupt, EvertError
from evert.log import segments, tail
from evert.log.embedded import EmbeddedLog
from evert.log.files import REFERRING, is_many
from evert.log.segments import Segment
from evert.log.tail import Spans
from evert.log.topic import Topic

_RESTORE = "restore a backup"
ROOMS = ("log", "tail", "state", "views", "bases")


@dataclass(frozen=True)
class Problem:
    """What is wrong and what to do. An error is damage; a warning is something left over."""

    level: Literal["warning", "error"]
    what: str
    hint: str
    topic: str | None = None
    file: str | None = None
    position: int | None = None


class Database(Protocol):
    """What is verified: `evert.Database`, or anything that has its parts."""

    @property
    def path(self) -> Path: ...

    @property
    def catalog(self) -> Catalog: ...

    @property
    def log(self) -> EmbeddedLog: ...


def verify(db: Database, deep: bool = False) -> list[Problem]:
    """Everything that is wrong with the log of a database. Others may go on writing meanwhile."""
    present = {
        path.relative_to(db.path).as_posix()
        for room in ROOMS
        for path in (db.path / room).rglob("*")
        if path.is_file()
    }
    found: list[Problem] = []
    for topic in db.log.topics().values():
        with db.catalog.read() as tx:
            if tx.one("SELECT 1 FROM topics WHERE id = ? AND created = ?", topic.id, topic.created):
                checked, problems = _chain(tx, db.path, topic)
                found.extend(problems)
            else:
                checked = []
        for segment in checked:
            found.extend(_file(db, topic, segment, deep))
    with db.catalog.read() as tx:
        found.extend(_strays(tx))
        found.extend(_left_over(tx))
        known = {
            file
            for table in (*REFERRING, "announcements", "garbage")
            for (file,) in tx.all(f"SELECT DISTINCT file FROM {table} WHERE file IS NOT NULL")
        }
    prefixes = tuple(filter(is_many, known))
    for file in sorted(present - known):
        if not file.startswith(prefixes) and (db.path / file).exists():
            hint = "nothing refers to it: move it away once you know what it is"
            found.append(Problem("warning", f"{file} is unknown to the catalog", hint, file=file))
    return found


def _chain(tx: Transaction, folder: Path, topic: Topic) -> tuple[list[Segment], list[Problem]]:
    """Link the pieces of a topic by their offsets; its segments, and what does not fit."""
    found: list[Problem] = []
    healthy: list[Segment] = []
    pieces: list[tuple[int, Spans]] = []
    (head,) = tx.one("SELECT head FROM state") or (0,)
    for (last,) in tx.all("SELECT last FROM segments WHERE topic = ? ORDER BY last", topic.id):
        try:
            (segment,) = segments.segments(tx, topic, after=last - 1, most=1)
        except Corrupt as error:
            found.append(_damage(error, topic))
            continue
        healthy.append(segment)
        pieces.append((segment.first, segment.spans))
    for (position,) in tx.all("SELECT position FROM tail WHERE topic = ? ORDER BY position", topic.id):
        try:
            (entry,) = tail.entries(tx, folder, topic, position - 1, position, most_bytes=1, most_rows=1)
            entry.verify(topic)
        except Corrupt as error:
            found.append(_damage(error, topic))
            continue
        except FileNotFoundError as error:
            what = (
                f"{Path(str(error.filename)).name} is missing: position {position} of {topic.name} is in it"
            )
            found.append(Problem("error", what, _RESTORE, topic.name, position=position))
            continue
        pieces.append((position, entry.spans))
    for position, _ in pieces:
        if position > head:
            what = f"{topic.name} has a row at position {position}, and the log ends at {head}"
            found.append(Problem("error", what, _RESTORE, topic.name, position=position))
    found.extend(_gaps(tx, topic, sorted(pieces)))
    return healthy, found


def _gaps(tx: Transaction, topic: Topic, pieces: list[tuple[int, Spans]]) -> Iterator[Problem]:
    sql = 'SELECT "partition", first, next FROM offsets WHERE topic = ?'
    ends = {partition: (first, after) for partition, first, after in tx.all(sql, topic.id)}
    reached = {partition: first for partition, (first, _) in ends.items()}
    for position, spans in pieces:
        for partition, first, end in spans:
            expected = reached.get(partition)
            if expected is None:
                what = f"{topic.name} has rows in partition {partition}, which it does not have"
                yield Problem("error", what, _RESTORE, topic.name, position=position)
            elif first != expected:
                yield _gap(topic, partition, expected, first, position)
            reached[partition] = end
    for partition, (_, after) in sorted(ends.items()):
        if reached[partition] != after:
            yield _gap(topic, partition, reached[partition], after, None)


def _gap(topic: Topic, partition: int, expected: int, first: int, position: int | None) -> Problem:
    if first > expected:
        what = f"offsets {expected} to {first - 1} of partition {partition} of {topic.name} are missing"
    else:
        what = f"offsets {first} to {expected - 1} of partition {partition} of {topic.name} are there twice"
    return Problem("error", what, _RESTORE, topic.name, position=position)


def _file(db: Database, topic: Topic, segment: Segment, deep: bool) -> Iterator[Problem]:
    """Whether a segment's file is what the catalog says, unless the segment has just been replaced."""
    why = _wrong(db, segment, deep)
    if why is None:
        return
    with db.catalog.read() as tx:
        if tx.one("SELECT 1 FROM segments WHERE id = ? AND file = ?", segment.id, segment.file):
            what = f"the segment {segment.file} of {topic.name} {why}"
            hint = f"restore the file from a backup; it has positions {segment.first} to {segment.last}"
            yield Problem("error", what, hint, topic.name, segment.file, segment.first)


def _wrong(db: Database, segment: Segment, deep: bool) -> str | None:
    path = db.log.files.path(segment.file)
    try:
        size = path.stat().st_size
        if size != segment.bytes:
            return f"has {size} bytes, not {segment.bytes}"
        if not deep:
            return None
        if segments.checksum_of(path) != segment.file_checksum:
            return "does not match its checksum"
        rows = pq.read_metadata(path).num_rows
    except FileNotFoundError:
        return "is missing"
    except (OSError, pa.ArrowException) as error:
        return f"cannot be read: {error}"
    return None if rows == segment.rows else f"has {rows} rows, not {segment.rows}"


def _strays(tx: Transaction) -> Iterator[Problem]:
    for table in ("tail", "segments", "offsets"):
        sql = f"SELECT count(*) FROM {table} WHERE topic NOT IN (SELECT id FROM topics)"
        (count,) = tx.one(sql) or (0,)
        if count:
            yield Problem("error", f"{count} entries of {table} belong to no topic", _RESTORE)


def _left_over(tx: Transaction) -> Iterator[Problem]:
    for file, until in tx.all("SELECT file, until FROM announcements ORDER BY file"):
        if until < tx.now:
            what = f"{file} was announced by a writer that is gone"
            yield Problem("warning", what, "`evert maintain` removes it", file=file)
    for (file,) in tx.all("SELECT file FROM garbage WHERE file NOT LIKE '%-' ORDER BY file"):
        yield Problem("warning", f"{file} is no longer used", "`evert maintain` removes it", file=file)


def _damage(error: EvertError, topic: Topic) -> Problem:
    details = error.details
    return Problem(
        "error",
        error.message,
        error.hint or _RESTORE,
        topic.name,
        details.get("file"),
        details.get("position"),
    )
