"""`evert log`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import pyarrow as pa
import pyarrow.compute as pc

from evert.cli.base import Command, complete_topics, session
from evert.cli.show import check_reader, show_rows
from evert.cli.times import moment
from evert.database import Database
from evert.errors import BadOption, Expired
from evert.log.protocol import Batch
from evert.log.topic import INGESTED_AT, OFFSET, PARTITION, Topic


@dataclass(frozen=True)
class Wanted:
    """Which rows of the topics to show."""

    after: int = 0
    upto: int | None = None
    columns: tuple[str, ...] | None = None
    at: int | None = None
    partition: int | None = None
    offset: int | None = None


@click.command(cls=Command)
@click.argument("topics", nargs=-1, required=True, shell_complete=complete_topics)
@click.option("--follow", "-f", is_flag=True, help="Wait for more rows, until interrupted.")
@click.option("--after", type=int, default=0, metavar="POSITION", help="Rows after this position.")
@click.option("--upto", type=int, metavar="POSITION", help="Rows up to this position.")
@click.option("--from-offset", metavar="[P:]N", help="Rows from offset N on, of partition P or of each.")
@click.option("--since", metavar="TIME", help="Rows that came since then: '10 minutes ago', or ISO 8601.")
@click.option("--columns", help="Only these columns, as in 'url,at'.")
@click.option("--limit", type=click.IntRange(0), metavar="N", help="Stop after N rows.")
@click.option("--last", type=click.IntRange(0), metavar="N", help="Begin with the last N rows.")
@click.option(
    "--bare", is_flag=True, help="Without the columns that the log adds, as `evert append` takes it."
)
def log(
    topics: tuple[str, ...],
    follow: bool,
    after: int,
    upto: int | None,
    from_offset: str | None,
    since: str | None,
    columns: str | None,
    limit: int | None,
    last: int | None,
    bare: bool,
) -> None:
    """Print the rows of TOPICS in the order in which they were committed.

    \b
    Example: evert log clicks --last 10 --follow
             evert log clicks --since "1 hour ago" --json
             evert log clicks --json --bare | evert append copy
    """
    if sum([bool(after), from_offset is not None, since is not None, last is not None]) > 1:
        raise click.UsageError("--after, --from-offset, --since and --last exclude each other")
    names = tuple(part.strip() for part in columns.split(",")) if columns else None
    with session().open() as db:
        definitions = [db.definition(name) for name in topics]
        wanted = _begin(db, definitions, Wanted(after, upto, names), from_offset, since, last)
        found = _read(db, [topic.name for topic in definitions], wanted, follow, last)
        show_rows(found, {topic.name: topic for topic in definitions}, limit=limit, bare=bare)


def _begin(
    db: Database,
    topics: Sequence[Topic],
    wanted: Wanted,
    from_offset: str | None,
    since: str | None,
    last: int | None,
) -> Wanted:
    """Where to begin to read, so that what is not wanted need not be read."""
    handles = [db.topic(topic.name) for topic in topics]
    if since is not None:
        at = moment(since, db.clock.now())
        start = min(handle.position_before(at=at) for handle in handles)
        return Wanted(start, wanted.upto, wanted.columns, at=at)
    if last is not None:
        start = min(handle.position_before(last=last) for handle in handles)
        return Wanted(start, wanted.upto, wanted.columns)
    if from_offset is None:
        return wanted
    partition, offset = _offset(from_offset)
    starts: list[int] = []
    for topic, handle in zip(topics, handles, strict=True):
        kept = {number: first for number, first, _ in handle.offsets()}
        if partition is not None and partition not in kept:
            raise BadOption(f"{topic.name} has the partitions 0 to {topic.partitions - 1}, not {partition}")
        for number in kept if partition is None else [partition]:
            if offset < kept[number]:
                raise _expired(topic, number, offset, kept[number])
            starts.append(handle.position_of(number, offset))
    return Wanted(min(starts), wanted.upto, wanted.columns, partition=partition, offset=offset)


def _offset(text: str) -> tuple[int | None, int]:
    partition, colon, number = text.rpartition(":")
    try:
        return (int(partition) if colon else None), int(number)
    except ValueError:
        raise BadOption(
            f"cannot read the offset {text!r}", hint="write 1500, or 2:1500 for partition 2"
        ) from None


def _expired(topic: Topic, partition: int, offset: int, kept: int) -> Expired:
    return Expired(
        f"offset {offset} of partition {partition} of {topic.name} has passed retention",
        hint=f"the first that is kept is {partition}:{kept}",
        topic=topic.name,
        partition=partition,
        offset=kept,
    )


def _read(
    db: Database, topics: list[str], wanted: Wanted, follow: bool, last: int | None
) -> Iterator[tuple[str, pa.RecordBatch]]:
    after = wanted.after
    if last is not None:
        head = db.position if wanted.upto is None else min(wanted.upto, db.position)
        yield from _ending(db.read(topics, after=after, upto=head, columns=wanted.columns), last)
        if not follow:
            return
        after = head
    while True:
        batches = db.read(
            topics, after=after, upto=wanted.upto, columns=wanted.columns, follow=follow, timeout=1.0
        )
        for batch in batches:
            rows = _chosen(batch.rows, wanted)
            if rows.num_rows:
                yield batch.topic, rows
            after = max(after, batch.last)
        if not follow or (wanted.upto is not None and db.position >= wanted.upto):
            return
        check_reader()


def _ending(batches: Iterator[Batch], count: int) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The last rows of what there is."""
    held: deque[tuple[str, pa.RecordBatch]] = deque()
    total = 0
    for batch in batches:
        held.append((batch.topic, batch.rows))
        total += batch.rows.num_rows
        while held and total - held[0][1].num_rows >= count:
            total -= held.popleft()[1].num_rows
    for topic, rows in held:
        extra = max(0, min(total - count, rows.num_rows))
        total -= extra
        yield topic, rows.slice(extra)


def _chosen(rows: pa.RecordBatch, wanted: Wanted) -> pa.RecordBatch:
    if wanted.at is not None:
        came = rows.column(INGESTED_AT).cast(pa.int64())
        rows = rows.filter(pc.greater_equal(came, wanted.at))
    if wanted.offset is not None:
        mask = pc.greater_equal(rows.column(OFFSET), wanted.offset)
        if wanted.partition is not None:
            mask = pc.and_(mask, pc.equal(rows.column(PARTITION), wanted.partition))
        rows = rows.filter(mask)
    return rows
