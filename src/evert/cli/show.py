"""Rows of topics on the screen, as they come."""

from __future__ import annotations

import select
import sys
from collections.abc import Iterable, Mapping

import click
import pyarrow as pa

from evert.cli.base import session
from evert.cli.output import Sheet
from evert.log.topic import DELETED, INGESTED_AT, OFFSET, PARTITION, POSITION, Topic
from evert.values import dumps, rows_of

_SYSTEM = (POSITION, PARTITION, OFFSET, INGESTED_AT, DELETED)
_PIECE = 1_000


def show_rows(
    found: Iterable[tuple[str, pa.RecordBatch]],
    topics: Mapping[str, Topic],
    *,
    limit: int | None = None,
    bare: bool = False,
) -> None:
    """Print the rows, each batch as soon as it is there."""
    left = limit
    sheet: Sheet | None = None
    shown = ""
    for topic, rows in found:
        if left is not None:
            rows = rows.slice(0, left)
            left -= rows.num_rows
        for start in range(0, rows.num_rows, _PIECE):
            piece = _arranged(rows.slice(start, _PIECE), topics[topic], bare)
            values = rows_of(piece)
            if session().json:
                label = {} if bare else {"_topic": topic}
                click.echo("\n".join(dumps(label | row if label else row) for row in values))
                continue
            if sheet is None or shown != topic:
                if len(topics) > 1:
                    click.echo(f"{topic}:" if sheet is None else f"\n{topic}:")
                sheet, shown = Sheet(piece.schema.names), topic
            sheet.write([list(row.values()) for row in values])
        sys.stdout.flush()
        if left == 0:
            return


def _arranged(rows: pa.RecordBatch, topic: Topic, bare: bool) -> pa.RecordBatch:
    """The columns in the order in which they are shown: on a screen where and when comes first."""
    mine = [name for name in rows.schema.names if name not in _SYSTEM]
    if bare:
        return rows.select([*mine, DELETED] if topic.kind == "table" else mine)
    if session().json:
        return rows
    system = [name for name in _SYSTEM if name in rows.schema.names]
    if topic.partitions == 1:
        system.remove(PARTITION)
    return rows.select([*system, *mine])


def check_reader() -> None:
    """While nothing comes: stop if whoever read our output has gone."""
    try:
        handle = sys.stdout.fileno()
    except (OSError, ValueError):
        return
    poll = select.poll()
    poll.register(handle, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
        raise BrokenPipeError
