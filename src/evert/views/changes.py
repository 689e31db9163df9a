"""The changelog of a view: what each epoch changed, and now and then the whole content.

    delta 10 ─ delta 20 ─ delta 30 ┬ delta 40 ─ delta 50
                        snapshot 30┘

The content at a position is the last snapshot at or before it plus the deltas from there on. A feed begins with
its first delta, on an empty view, or, when older history has been removed, with a snapshot. An entry is an Arrow
IPC stream, the view's columns and the weight `__w` last, in the catalog or in a file. Several entries of one
position are the pieces of one epoch.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from evert.catalog import Catalog, Transaction
from evert.disk import disk_errors
from evert.errors import Corrupt, Expired
from evert.log.files import Files, in_use, let_go, sync
from evert.trace.consolidate import consolidated_parts

Kind = Literal["delta", "snapshot"]
T = TypeVar("T")
Bytes = bytes

WEIGHT = "__w"
ROOM = "views"
INLINE_BYTES = 64 << 10
"""A piece of more bytes than this lies in a file."""
SNAPSHOT_BYTES = 128 << 20
"""A snapshot is made and written in parts of so many bytes."""
SNAPSHOT_ROWS = 10_000
"""As long as fewer rows than this have changed since the last snapshot, there is no other."""

_META = "id, kind, position, at, rows, bytes, checksum, file"


@dataclass(frozen=True)
class Piece:
    """Rows to publish: an Arrow IPC stream in memory, or in a file that is written and synced."""

    rows: int
    bytes: int
    checksum: int
    data: Bytes | None = None
    file: str | None = None


@dataclass(frozen=True)
class Entry:
    """A committed piece; its content is opened, and so it can be read when its file is gone."""

    kind: Kind
    position: int
    at: int
    rows: int
    checksum: int
    content: pa.Buffer
    file: str | None

    def table(self, feed: int) -> pa.Table:
        """The rows, verified."""
        if zlib.crc32(self.content) != self.checksum:
            raise _damaged(feed, self.position, self.file, "it does not match its checksum")
        try:
            with pa.ipc.open_stream(self.content) as stream:
                table = stream.read_all()
        except (pa.ArrowException, OSError) as error:
            raise _damaged(feed, self.position, self.file, str(error)) from error
        if table.num_rows != self.rows:
            raise _damaged(feed, self.position, self.file, f"it has {table.num_rows} rows, not {self.rows}")
        return table


def piece(table: pa.Table) -> Piece:
    """Rows with their weight as the last column, as a piece in memory."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data = sink.getvalue().to_pybytes()
    return Piece(table.num_rows, len(data), zlib.crc32(data), data)


def write_piece(path: Path, file: str, table: pa.Table) -> Piece:
    """Write rows to a file that has been announced, and sync it."""
    with disk_errors(path):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        sync(path)
        with pa.memory_map(str(path)) as source:
            content = source.read_buffer()
            return Piece(table.num_rows, content.size, zlib.crc32(content), file=file)


def publish(
    tx: Transaction, feed: int, position: int, at: int, pieces: Iterable[Piece], *, kind: Kind = "delta"
) -> int:
    """Add what one epoch changed; how many rows. Positions of a feed only grow: an epoch is published once.

    The deltas of a feed add up to the view's rows, so they are published from the first epoch on, also while
    the view is being built. The first entry is there even if it has no rows: it says where the feed begins.
    """
    (last,) = tx.one("SELECT max(position) FROM changes WHERE feed = ?", feed) or (None,)
    if kind == "delta" and last is not None and last >= position:
        raise ValueError(
            f"the feed {feed} has reached position {last} and cannot get another delta at {position}"
        )
    total = 0
    for part in pieces:
        if part.rows:
            _insert(tx, feed, kind, position, at, part)
            total += part.rows
    if last is None and not total:
        _insert(tx, feed, kind, position, at, Piece(0, 0, 0, b""))
    return total


def begin(tx: Transaction, feed: int, position: int) -> None:
    """Let the feed begin at a position: all that was published before it, while the view was built, is the
    snapshot there, and no reader can ask for less.
    """
    sql = "SELECT max(position) FROM changes WHERE feed = ? AND kind = 'snapshot' AND position <= ?"
    (start,) = tx.one(sql, feed, position) or (None,)
    if start is not None:
        _remove_before(tx, feed, start)
    tx.run(
        "UPDATE changes SET kind = 'snapshot', position = ?, at = ? WHERE feed = ? AND position <= ?",
        position,
        tx.now,
        feed,
        position,
    )


def first(tx: Transaction, feed: int) -> int | None:
    """The position where the feed begins: changes after it are all there."""
    (position,) = tx.one("SELECT min(position) FROM changes WHERE feed = ?", feed) or (None,)
    return None if position is None else int(position)


def last_change(tx: Transaction, feed: int, upto: int) -> int | None:
    """The last position at or before the given one at which the feed has an entry."""
    sql = "SELECT max(position) FROM changes WHERE feed = ? AND position <= ?"
    (position,) = tx.one(sql, feed, upto) or (None,)
    return None if position is None else int(position)


def deltas(
    tx: Transaction, folder: Path, feed: int, after: int, upto: int, *, most_rows: int | None = None
) -> list[Entry]:
    """The deltas in `(after, upto]` in order; from the first on until the bound is passed, whole epochs.

    `FileNotFoundError` if a file is gone: `look_again` tells whether it is damage.
    """
    found: list[Entry] = []
    rows = 0
    sql = (
        f"SELECT {_META}, data FROM changes WHERE feed = ? AND kind = 'delta' AND position > ? AND position <= ?"
        " ORDER BY position, id"
    )
    for row in tx.each(sql, feed, after, upto):
        if most_rows is not None and rows >= most_rows and found and found[-1].position != row[2]:
            break
        if row[4]:
            found.append(_entry(folder, feed, row))
            rows += row[4]
    return found


def entries_at(tx: Transaction, folder: Path, feed: int, upto: int) -> list[Entry]:
    """What the content at a position consists of: a snapshot, if there is one, and the deltas after it."""
    if last_change(tx, feed, upto) is None:
        begin = first(tx, feed)
        raise Expired(
            f"the rows at position {upto} are not kept"
            + ("" if begin is None else f": the history begins at position {begin}"),
            hint="keep more with history=",
            position=begin,
        )
    sql = "SELECT max(position) FROM changes WHERE feed = ? AND kind = 'snapshot' AND position <= ?"
    (start,) = tx.one(sql, feed, upto) or (None,)
    found: list[Entry] = []
    if start is not None:
        sql = f"SELECT {_META}, data FROM changes WHERE feed = ? AND kind = 'snapshot' AND position = ? ORDER BY id"
        found = [_entry(folder, feed, row) for row in tx.all(sql, feed, start) if row[4]]
    return found + deltas(tx, folder, feed, -1 if start is None else start, upto)


def consolidated(feed: int, entries: Sequence[Entry], columns: pa.Schema) -> pa.Table:
    """The sum of entries: the view's columns and `__w`, every row once, none with weight zero."""
    return added_up([entry.table(feed) for entry in entries], columns)


def added_up(given: Sequence[pa.Table], columns: pa.Schema) -> pa.Table:
    """The sum of tables with the view's columns and a weight as their last one, whatever they are called."""
    return pa.concat_tables(added_up_in_parts(given, columns))


def added_up_in_parts(
    given: Sequence[pa.Table], columns: pa.Schema, most: int | None = None
) -> Iterator[pa.Table]:
    """The same in parts that are made of about so many bytes each."""
    schema = pa.schema([*columns, pa.field(WEIGHT, pa.int64())])
    plain = pa.schema(
        [pa.field(f"c{i}", field.type) for i, field in enumerate(columns)] + [pa.field(WEIGHT, pa.int64())]
    )
    tables = [_renamed(table, plain) for table in given]
    if not tables:
        yield schema.empty_table()
        return
    for summed in consolidated_parts(pa.concat_tables(tables), most):
        yield pa.Table.from_arrays(summed.select(plain.names).columns, schema=schema)


def snapshot_due(tx: Transaction, feed: int) -> int | None:
    """The position at which a snapshot should be taken, if enough has changed since the last one."""
    (start, size) = tx.one(
        "SELECT position, sum(rows) FROM changes WHERE feed = ? AND kind = 'snapshot'"
        " GROUP BY position ORDER BY position DESC LIMIT 1",
        feed,
    ) or (-1, 0)
    (changed, last) = tx.one(
        "SELECT coalesce(sum(rows), 0), max(position) FROM changes"
        " WHERE feed = ? AND kind = 'delta' AND position > ?",
        feed,
        start,
    ) or (0, None)
    return int(last) if changed > max(SNAPSHOT_ROWS, size) else None


def snapshot(catalog: Catalog, files: Files, feed: int, columns: pa.Schema) -> int | None:
    """Write a snapshot if one is due; its position."""

    def look(tx: Transaction) -> tuple[int, list[Entry]] | None:
        position = snapshot_due(tx, feed)
        return None if position is None else (position, entries_at(tx, files.folder, feed, position))

    found = look_again(catalog, look)
    if found is None:
        return None
    position, entries = found
    parts: list[Piece] = []
    try:
        for rows in added_up_in_parts([entry.table(feed) for entry in entries], columns, SNAPSHOT_BYTES):
            parts.append(stored(files, rows))
        if catalog.write(lambda tx: _take_snapshot(tx, files, feed, position, parts)):
            return position
    except BaseException:
        files.discard(_files(parts))
        raise
    files.discard(_files(parts))
    return None


def _take_snapshot(tx: Transaction, files: Files, feed: int, position: int, parts: Sequence[Piece]) -> bool:
    """Make pieces the snapshot at a position, unless there is a newer one."""
    there = tx.one(
        "SELECT max(position), max(CASE WHEN kind = 'snapshot' THEN position END) FROM changes WHERE feed = ?",
        feed,
    )
    if there is None or there[0] is None or (there[1] is not None and there[1] >= position):
        return False
    for file in _files(parts):
        files.claim(tx, file)
    (at,) = tx.one("SELECT max(at) FROM changes WHERE feed = ? AND position = ?", feed, position) or (tx.now,)
    for part in parts:
        _insert(tx, feed, "snapshot", position, at or tx.now, part)
    return True


def _files(parts: Iterable[Piece]) -> list[str]:
    return [part.file for part in parts if part.file is not None]


def stored(files: Files, table: pa.Table) -> Piece:
    """Rows as a piece: in memory if they are few, else in a file that is announced; claim it in the commit."""
    if table.nbytes <= INLINE_BYTES:
        return piece(table)
    file = files.announce(ROOM, "arrow")
    return write_piece(files.path(file), file, table)


def expire(tx: Transaction, feed: int, horizon: int) -> int:
    """Remove what is older than the newest snapshot from before the horizon, a time; how many entries went."""
    (start,) = tx.one(
        "SELECT max(position) FROM changes WHERE feed = ? AND kind = 'snapshot' AND at <= ?", feed, horizon
    ) or (None,)
    return 0 if start is None else _remove_before(tx, feed, start)


def _remove_before(tx: Transaction, feed: int, start: int) -> int:
    """Remove what the snapshot at `start` makes superfluous."""
    old = "feed = ? AND (position < ? OR (position = ? AND kind = 'delta'))"
    files = tx.all(f"SELECT DISTINCT file FROM changes WHERE {old} AND file IS NOT NULL", feed, start, start)
    gone = tx.run(f"DELETE FROM changes WHERE {old}", feed, start, start)
    let_go(tx, [file for (file,) in files])
    return gone


def check(catalog: Catalog, folder: Path, number: int, *, deep: bool) -> None:
    """`Corrupt` if an entry is not what was written, unless it is gone; `deep` looks at its content too."""
    sql = f"SELECT feed, {_META}, data FROM changes WHERE id = ?"

    def look(tx: Transaction) -> tuple[int, Entry] | None:
        row = tx.one(sql, number)
        return None if row is None or not row[5] else (row[0], _entry(folder, row[0], row[1:]))

    found = look_again(catalog, look)
    if found is not None and deep:
        found[1].table(found[0])


def look_again(catalog: Catalog, look: Callable[[Transaction], T]) -> T:
    """Run `look` in a read transaction, anew if a file that it wanted was removed by a later commit."""
    gone: str | None = None
    while True:
        with catalog.read() as tx:
            if gone is not None and in_use(tx, gone):
                raise Corrupt(f"the file {gone} is missing", hint="restore a backup", file=gone)
            try:
                return look(tx)
            except FileNotFoundError as error:
                gone = str(error.filename)


def _insert(tx: Transaction, feed: int, kind: Kind, position: int, at: int, part: Piece) -> None:
    tx.run(
        "INSERT INTO changes (feed, kind, position, at, rows, bytes, checksum, file, data)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        feed,
        kind,
        position,
        at,
        part.rows,
        part.bytes,
        part.checksum,
        part.file,
        part.data,
    )


def _entry(folder: Path, feed: int, row: tuple[Any, ...]) -> Entry:
    _, kind, position, at, rows, size, checksum, file, data = row
    if file is None:
        content = pa.py_buffer(data)
    else:
        try:
            with pa.memory_map(str(folder / file)) as source:
                content = source.read_buffer()
        except FileNotFoundError as error:
            raise FileNotFoundError(error.errno, "missing", file) from error
        except (OSError, pa.ArrowException) as error:
            raise _damaged(feed, position, file, str(error)) from error
    if content.size != size:
        raise _damaged(feed, position, file, f"it has {content.size} bytes, not {size}")
    return Entry(kind, position, at, rows, checksum, content, file)


def _renamed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(table.columns, schema, strict=True)], schema=schema
    )


def _damaged(feed: int, position: int, file: str | None, why: str) -> Corrupt:
    return Corrupt(
        f"the changelog {feed} is damaged at position {position}: {why}",
        hint="restore a backup, or build the view anew by defining it with replace=True",
        file=file,
        position=position,
    )
