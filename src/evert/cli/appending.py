"""The work of `evert append`: block after block into commits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from evert.cli.aside import Aside
from evert.cli.base import session
from evert.cli.sources import STDIN, Block, Reading, blocks
from evert.database import Database
from evert.errors import BadOption, Refused
from evert.log.topic import Topic
from evert.schema.rows import from_values
from evert.schema.schema import Schema


@dataclass
class Tally:
    """What has been done so far."""

    rows: int = 0
    repeated: int = 0
    dropped: int = 0
    set_aside: int = 0
    position: int | None = None


@dataclass(frozen=True)
class Asked:
    """What every commit of the command carries."""

    delete: bool
    request_id: str | None
    producer: str | None
    sequence: int | None
    unmoved_since: int | None
    unmoved_key: tuple[Any, ...] | None

    @property
    def one_commit(self) -> bool:
        """A request id names one commit, and a condition holds before the first one only."""
        return self.request_id is not None or self.unmoved_since is not None


def append_files(
    db: Database,
    topic: Topic,
    names: tuple[str, ...],
    reading: Reading,
    asked: Asked,
    tally: Tally,
    aside: Aside,
) -> None:
    total = sum(Path(name).stat().st_size for name in names if name != STDIN)
    together: list[Block] = []
    with _progress(total) as advance:
        for name in names:
            done = 0
            for block in blocks(name, reading):
                if asked.one_commit:
                    together.append(block)
                else:
                    aside.sync()
                    _commit(db, topic, [block], asked, tally)
                    if asked.sequence is not None:
                        asked = replace(asked, sequence=asked.sequence + 1)
                tally.set_aside = aside.count
                advance(block.done - done)
                done = block.done
        if together:
            aside.sync()
            _commit(db, topic, together, asked, tally)


def _commit(db: Database, topic: Topic, found: list[Block], asked: Asked, tally: Tally) -> None:
    tables = [table for block in found for table in block.tables if table.num_rows]
    if not tables:
        return
    retried = asked.producer is not None or asked.request_id is not None
    before = db.position if retried else 0
    tx = db.transaction(request_id=asked.request_id, producer=asked.producer, sequence=asked.sequence)
    for table in tables:
        if asked.delete:
            tx.delete(topic.name, table)
        elif topic.kind == "table":
            tx.upsert(topic.name, table)
        else:
            tx.append(topic.name, table)
    if asked.unmoved_since is not None:
        tx.require_unmoved(topic.name, asked.unmoved_since, key=asked.unmoved_key)
    position = tx.commit()
    rows = sum(table.num_rows for table in tables)
    if position is None:
        tally.dropped += rows
    elif position <= before:
        tally.repeated += rows
        tally.position = max(tally.position or 0, position)
    else:
        tally.rows += rows
        tally.position = position


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """Shows how much of the files is done, on a terminal only."""
    if not total or session().json or not sys.stderr.isatty():
        yield lambda count: None
        return
    with click.progressbar(length=total, file=sys.stderr, label="appending") as bar:
        yield bar.update


def taken(topic: Topic, delete: bool) -> Schema:
    """The columns that the input may have; those of the key are never NULL."""
    if delete and topic.kind != "table":
        raise Refused(f"{topic.name} is a stream: its rows are never deleted", topic=topic.name)
    columns = [replace(c, nullable=c.nullable and c.name not in topic.key) for c in topic.given.columns]
    return Schema(tuple(c for c in columns if not delete or c.name in topic.key))


def key_of(topic: Topic, texts: tuple[str, ...]) -> tuple[Any, ...] | None:
    """A key as its columns' texts, read as their types."""
    if not texts:
        return None
    if len(texts) != len(topic.key):
        wanted = ", ".join(topic.key) or "no column"
        raise BadOption(f"the key of {topic.name} is ({wanted}): give --unmoved-key {len(topic.key)} times")
    schema = Schema(tuple(topic.schema.column(name) for name in topic.key))
    row = dict(zip(topic.key, texts, strict=True))
    return tuple(from_values(schema, schema.text_plan, [row], topic=topic.name).to_pylist()[0].values())
