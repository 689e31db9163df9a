"""`evert append --replay`: lines that were set aside are tried again.

What fits now is appended in one commit; what still does not stays in the file, with its present reason. The
commit carries the file's content as its request id: a command that is repeated after a crash in between
appends nothing twice.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from evert.cli.appending import taken
from evert.cli.aside import Entry, locked, text_of
from evert.database import Database
from evert.errors import BadRow, Full, Refused
from evert.log.files import sync, sync_folder
from evert.log.names import folded
from evert.log.topic import Topic
from evert.schema import decode

LOSSY = "not valid UTF-8"
"""Part of the reason of lines whose text has lost bytes on its way into the file."""


@dataclass(frozen=True)
class Replayed:
    """What became of a file: rows appended, rows that had been appended already, lines that remain."""

    rows: int
    repeated: int
    remaining: int
    position: int | None


def replay(db: Database, topic: Topic, path: str) -> Replayed:
    """Append what fits now of the lines that were set aside for a topic."""
    with locked(path, "r") as file:
        text = file.read()
        rows: list[tuple[bool, pa.Table]] = []
        remaining = []
        for entry in _entries(path, text):
            found = _tried(topic, entry)
            if isinstance(found, pa.Table):
                rows.append((bool(entry.get("delete")), found))
            else:
                remaining.append(found)
        before = db.position
        position = _commit(db, topic, rows, text)
        _leave(Path(path), remaining)
    count = sum(table.num_rows for _, table in rows)
    repeated = position is not None and position <= before
    return Replayed(0 if repeated else count, count if repeated else 0, len(remaining), position)


def _entries(path: str, text: str) -> list[Entry]:
    entries = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                entry = json.loads(line)
                fine = isinstance(entry, dict) and isinstance(entry.get("text"), str)
            except ValueError:
                fine = False
            if not fine:
                raise Refused(
                    f"{path}, line {number}: this is no line that was set aside; nothing was appended",
                    hint="give a file that `evert append --set-aside` wrote",
                    file=path,
                    line=number,
                )
            entries.append(entry)
    return entries


def _tried(topic: Topic, entry: Entry) -> pa.Table | Entry:
    """The rows of a line, or the line with the reason why it has none."""
    if folded(entry.get("topic", topic.name)) != folded(topic.name) or LOSSY in entry.get("reason", ""):
        return entry
    reasons: list[str] = []
    schema = taken(topic, bool(entry.get("delete")))
    found: list[pa.Table] = [schema.arrow.empty_table()]

    def rejected(number: int, raw: str, reason: str) -> None:
        reasons.append(reason)

    try:
        if entry.get("format") == "csv":
            found += decode.csv(
                io.StringIO(_with_header(entry, schema.names), newline=""),
                schema,
                topic=topic.name,
                delimiter=entry.get("delimiter", ","),
                null=entry.get("null", ""),
                rejected=rejected,
            )
        else:
            found += decode.json_lines([entry["text"]], schema, topic=topic.name, rejected=rejected)
    except BadRow as error:
        reasons.append(str(error.details.get("reason", error.message)))
    return entry | {"reason": reasons[0]} if reasons else pa.concat_tables(found)


def _with_header(entry: Entry, names: tuple[str, ...] | list[str]) -> str:
    """The record below the names of its columns: those of its file, or of the topic where it had none."""
    text = io.StringIO()
    csv.writer(text, delimiter=entry.get("delimiter", ",")).writerow(entry.get("columns") or names)
    return text.getvalue() + entry["text"] + "\n"


def _commit(db: Database, topic: Topic, rows: list[tuple[bool, pa.Table]], text: str) -> int | None:
    if not any(table.num_rows for _, table in rows):
        return None
    digest = hashlib.sha256(text.encode()).hexdigest()
    tx = db.transaction(request_id=f"replay {topic.name} {digest}")
    for delete, table in rows:
        if delete:
            tx.delete(topic.name, table)
        elif topic.kind == "table":
            tx.upsert(topic.name, table)
        else:
            tx.append(topic.name, table)
    position = tx.commit()
    if position is None:
        raise Full(
            f"{topic.name} is full and drops rows; nothing was replayed",
            hint="let its consumers catch up, and try again",
            topic=topic.name,
        )
    return position


def _leave(path: Path, remaining: list[Entry]) -> None:
    """Let the file hold what remains; without any it is gone."""
    if not remaining:
        path.unlink()
        sync_folder(path.parent)
        return
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text_of(remaining), encoding="utf-8")
    sync(fresh)
    fresh.rename(path)
    sync_folder(path.parent)
