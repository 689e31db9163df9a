"""What runs inside Spark's Python workers: scan, pack and kernel; leave and take up, where a job is cut.

    scan ──> [Spark: expressions] ──> pack ══ exchange ══> kernel ──> [Spark: expressions] ──> pack ══ ...

A scan and a kernel give *wide* rows: one nullable struct column for each source, one of which is set, and
the columns of a cell for what only passes through. A pack takes the structs that Spark made of them, one
column for each edge, and gives cells.
"""

from __future__ import annotations

import gc
import json
import pickle
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, groupby
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from zlib import crc32

import pyarrow as pa

from evert.delta import DataError, Operator
from evert.delta.inline import Work
from evert.delta.panes import applied
from evert.epoch import slices
from evert.epoch.cells import CELL, MOST_ROWS, RECEIPT, Cell, read_cells, split, to_batch
from evert.epoch.receipt import PACK, SCAN, Manifest, Published, Receipt, Spent, tell
from evert.epoch.spill import Cellar, Spill, to_blob
from evert.log.files import sync
from evert.trace import NodeState, RunCache, RunWriter
from evert.trace.arrays import decoded
from evert.trace.horizon import Forgets, limits
from evert.trace.sink import Sink

FOLDER, EPOCH, LEFT = "evert.folder", "evert.epoch", "evert.left"
INLINE = 256 << 10
"""A published delta of more bytes than this is written to a file by the task itself."""

SETTLING = 8
"""In how many of its first tasks a worker process sets aside what it has loaded."""

_runs = RunCache()
_tasks = count()
T = TypeVar("T")
Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class Edge:
    """The way from a source to a port of a node: what Spark makes of its rows comes as a column of structs, or the
    worker does the work itself."""

    column: str
    node: int
    port: int
    operator: Operator
    many: bool
    source: str
    work: Work | None = None
    stays: bool = False
    """Its rows need no exchange: they are in the right shard."""


@dataclass(frozen=True)
class Then:
    """What becomes of the rows that a stage makes: cells on edges whose work it does itself, and, for Spark to
    evaluate the others, wide rows of a schema. Without a schema there are cells only."""

    edges: tuple[Edge, ...]
    shards: int
    bits: int
    schema: pa.Schema | None

    @property
    def output(self) -> pa.Schema:
        return CELL if self.schema is None else self.schema

    def batches(self, source: str, rows: pa.Table, spill: Spill, shard: int = 0) -> Iterator[pa.RecordBatch]:
        """All that becomes of rows of a source."""
        cells: list[Cell] = []
        for edge, made in _evaluated(self.edges, source, rows):
            cells += _packed(edge, made, self.shards, self.bits, spill, shard)
        if cells:
            yield self.of(cells)
        if self.schema is not None and source in self.schema.names:
            yield from _wide(rows, source, self.schema, shard)

    def of(self, cells: list[Cell]) -> pa.RecordBatch:
        """Cells as rows of the stage."""
        batch = to_batch(cells)
        return batch if self.schema is None else _widened(batch, self.schema)


def _evaluated(edges: Sequence[Edge], source: str, rows: pa.Table) -> Iterator[tuple[Edge, pa.Table]]:
    """What the edges that workers do themselves make of rows of a source."""
    here = [edge for edge in edges if edge.source == source and edge.work is not None]
    for _, alike in groupby(here, key=lambda edge: (edge.node, edge.port, edge.stays)):
        edge, *others = alike
        works = [one.work for one in (edge, *others) if one.work is not None]
        for made in _below_each_other(list(applied(works, rows))):
            yield edge, made


def _below_each_other(tables: list[pa.Table]) -> list[pa.Table]:
    """Tables of one port as one table, if they have the same types."""
    if len(tables) > 1:
        tables = [decoded(table) for table in tables]
        if all(table.schema.equals(tables[0].schema) for table in tables):
            return [pa.concat_tables(tables)]
    return tables


@dataclass(frozen=True)
class Member:
    """A node of a level; `source` names the struct column of its delta if anything consumes it.

    `beside` are the edges to nodes of the same level, which come after it.
    """

    node: int
    view: str
    operator: Operator
    source: str | None
    names: tuple[str, ...]
    beside: tuple[Edge, ...] = ()
    forgets: tuple[Forgets, ...] = ()
    reads: int | None = None
    wanted: frozenset[int] | None = None
    """The columns of its delta that somebody reads; None is all of them."""


def scan(shares: Iterable[pa.RecordBatch], then: Then) -> Iterator[pa.RecordBatch]:
    """What becomes of the rows that enter: those that the driver left in a file, and those of segments.

    What comes in are numbers of shares; the number of the task may be another one, in a union of several scans.
    """
    _settle()
    numbers = [number for batch in shares for number in batch.column(0).to_pylist()]
    folder, epoch = _place()
    watch = _Watch(SCAN)
    with _spill("scan") as spill:
        for source, rows in watch.taking(_entering(Path(folder), epoch, numbers)):
            watch.rows_in += rows.num_rows
            watch.bytes_in += rows.nbytes
            yield from watch.taking(then.batches(source, rows, spill))
    yield then.of([_receipt(0, [watch.spent()])])


def straight(
    shares: Iterable[pa.RecordBatch], edges: Sequence[Edge], members: Sequence[Member], bits: int
) -> Iterator[pa.RecordBatch]:
    """A scan and the only kernel in one task: where rows may be anywhere, a share is a shard."""
    from pyspark import TaskContext

    _settle()
    (number,) = (number for batch in shares for number in batch.column(0).to_pylist())
    folder, epoch = _place()
    ports: dict[int, dict[int, list[pa.Table]]] = defaultdict(lambda: defaultdict(list))
    watch = _Watch(SCAN)
    for source, rows in watch.taking(_entering(Path(folder), epoch, [number])):
        watch.rows_in += rows.num_rows
        watch.bytes_in += rows.nbytes
        with watch:
            for edge, made in _evaluated(edges, source, rows):
                ports[edge.node][edge.port].append(decoded(edge.operator.prepare(edge.port, made, bits)))
    name = f"{epoch}1-{number}-{TaskContext.get().taskAttemptId()}"
    with _Task(Manifest.load(folder, epoch, number), number, name) as task:
        for member in members:
            for _ in task.apply(member, ports.pop(member.node, {})):
                pass  # nobody wants their deltas
    yield to_batch([_for_driver(number, [*task.receipts, *task.spent, watch.spent()])])


def _entering(folder: Path, epoch: str, numbers: Sequence[int]) -> Iterator[tuple[str, pa.Table]]:
    for number in numbers:
        share = slices.share_of(str(folder), epoch, number)
        for source, pieces in groupby(share, key=lambda one: one.source):
            for rows in slices.gathered(one.read(folder) for one in pieces):
                yield source, rows
    if 0 not in numbers:
        return
    with pa.memory_map(str(folder / f"{epoch}input.arrow")) as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            for name in batch.schema.names[: -len(CELL)]:
                rows = _unwrapped(batch.column(name), False)
                if rows is not None:
                    yield name, rows


def pack(
    rows: Iterable[pa.RecordBatch], edges: Sequence[Edge], shards: int, bits: int
) -> Iterator[pa.RecordBatch]:
    """Structs to cells: each edge's rows prepared by their node's operator and split by shard."""
    _settle()
    watch = _Watch(PACK)
    with _spill("pack") as spill:
        for batch in rows:
            watch.rows_in += batch.num_rows
            watch.bytes_in += batch.nbytes
            with watch:
                cells = list(read_cells([batch])) if "blob" in batch.schema.names else []
                for edge in edges:
                    given = _unwrapped(batch.column(edge.column), edge.many)
                    if given is not None:
                        here = _shard_of_rows(batch) if edge.stays else 0
                        cells += _packed(edge, given, shards, bits, spill, here)
            if cells:
                yield to_batch(cells)
    yield to_batch([_receipt(0, [watch.spent()])])


def _shard_of_rows(batch: pa.RecordBatch) -> int:
    """Where the wide rows of a batch come from; cells among them say where they go."""
    rows = batch.column("shard").filter(batch.column("node").is_null())
    return int(rows.drop_null()[0].as_py())


def _packed(edge: Edge, rows: pa.Table, shards: int, bits: int, spill: Spill, here: int) -> Iterator[Cell]:
    prepared = decoded(edge.operator.prepare(edge.port, rows, bits))
    if prepared.num_rows:
        for shard, piece in [(here, prepared)] if edge.stays else split(prepared, shards, bits):
            yield Cell(shard, edge.node, edge.port, spill.blob(piece))


def kernel(
    rows: Iterable[pa.RecordBatch], members: Sequence[Member], level: int, then: Then | None
) -> Iterator[pa.RecordBatch]:
    """All nodes of a level, for one shard; at the last level nobody wants their deltas."""
    from pyspark import TaskContext

    _settle()
    context = TaskContext.get()
    shard, attempt = context.partitionId(), context.taskAttemptId()
    here = {member.node for member in members}
    cells: dict[int, dict[int, list[pa.Table]]] = defaultdict(lambda: defaultdict(list))
    passing: list[Cell] = []
    folder, epoch = _place()
    cellar = Cellar(folder)
    for cell in read_cells(rows):
        if cell.node in here:
            cells[cell.node][cell.port].append(cellar.table(cell.blob))
        else:
            passing.append(cell)
    manifest = Manifest.load(folder, epoch, shard)
    task = _Task(manifest, shard, f"{epoch}{level}-{shard}-{attempt}")
    with task, _spill("kernel") as spill:
        for member in members:
            for piece in task.apply(member, cells.pop(member.node, {})):
                for edge in member.beside:
                    assert edge.work is not None
                    prepared = edge.operator.prepare(edge.port, edge.work.apply(piece), manifest.bits)
                    cells[edge.node][edge.port].append(decoded(prepared))
                if then is not None and member.source is not None:
                    yield from then.batches(member.source, piece, spill, shard)
    said: list[Receipt | Spent] = [*task.receipts, *task.spent]
    if then is None:
        for cell in passing:
            said += pickle.loads(cell.blob)
        yield to_batch([_for_driver(shard, said)])
    else:
        yield then.of([*passing, _receipt(shard, said)])


def leave(rows: Iterable[pa.RecordBatch], stage: Stage) -> Iterator[pa.RecordBatch]:
    """What a stage makes of the rows, left in a file from which another job takes it up; says where it is."""
    from pyspark import TaskContext

    folder, epoch = _place()
    task = TaskContext.get()
    name = f"{epoch}{task.taskAttemptId()}.rows"
    made = stage(rows)
    first = next(made)
    with pa.OSFile(str(Path(folder, name)), "wb") as file, pa.ipc.new_stream(file, first.schema) as stream:
        for batch in chain([first], made):
            stream.write_batch(batch)
    yield to_batch([_for_driver(task.partitionId(), [(task.partitionId(), name)])])


def take_up(shares: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What tasks of the job before have left for these shares."""
    from pyspark import TaskContext

    _settle()
    numbers = {number for batch in shares for number in batch.column(0).to_pylist()}
    folder, _ = _place()
    for number, name in json.loads(TaskContext.get().getLocalProperty(LEFT)):
        if number in numbers:
            with pa.memory_map(str(Path(folder, name))) as file, pa.ipc.open_stream(file) as stream:
                yield from stream


def _receipt(shard: int, said: Sequence[Receipt | Spent]) -> Cell:
    return Cell(shard, RECEIPT, 0, pickle.dumps(said))


def _for_driver(shard: int, said: Sequence[Any]) -> Cell:
    """What the driver is told."""
    from pyspark import TaskContext

    folder, epoch = _place()
    return Cell(
        shard, RECEIPT, 0, tell(Path(folder), f"{epoch}{TaskContext.get().taskAttemptId()}.said", said)
    )


class _Watch:
    """Adds up the time of one node's work, and none of the time that others take in between."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.rows_in = self.rows_out = self.bytes_in = 0
        self._seconds = self._begun = 0.0

    def __enter__(self) -> None:
        self._begun = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds += time.perf_counter() - self._begun

    def taking(self, items: Iterable[T]) -> Iterator[T]:
        """The items, while only the time counts that it takes to get each."""
        waiting = iter(items)
        while True:
            with self:
                item = next(waiting, None)
            if item is None:
                return
            yield item

    def spent(self) -> Spent:
        return Spent(self.node, self.rows_in, self.rows_out, self.bytes_in, int(self._seconds * 1e6))


class _Task:
    """One task's work: its nodes' states, one file for all the runs they write, and their receipts."""

    def __init__(self, manifest: Manifest, shard: int, name: str) -> None:
        self._manifest = manifest
        self._shard = shard
        self._name = name
        self._folder = Path(manifest.folder)
        self._writer = RunWriter(self._folder, f"{name}.arrow")
        self.receipts: list[Receipt] = []
        self.spent: list[Spent] = []

    def apply(self, member: Member, ports: Mapping[int, list[pa.Table]]) -> Iterator[pa.Table]:
        runs = self._manifest.nodes[member.node]
        if not ports and not runs.first and not getattr(member.operator, "replace", False):
            return
        deltas = [
            pa.concat_tables(ports[port]).combine_chunks() if port in ports else None
            for port in range(len(member.operator.inputs))
        ]
        state = NodeState(
            shard=self._shard,
            first=runs.first,
            runs=runs.runs if member.reads is None else self._manifest.nodes[member.reads].runs,
            writer=self._writer,
            cache=_runs,
            folder=self._folder,
            bits=self._manifest.bits,
            limits=limits(member.forgets, self._manifest.moments),
            wanted=member.wanted,
        )
        watch = _Watch(member.node)
        given = [delta for delta in deltas if delta is not None]
        watch.rows_in, watch.bytes_in = sum(d.num_rows for d in given), sum(d.nbytes for d in given)
        try:
            for piece in watch.taking(member.operator.apply(deltas, state)):
                watch.rows_out += piece.num_rows
                yield piece
        except DataError as error:
            raise DataError(f"[view {member.view}] {error}") from error
        self.spent.append(watch.spent())
        if not (state.added or state.removed or state.published):
            return
        self.receipts.append(
            Receipt(
                node=member.node,
                shard=self._shard,
                added=tuple(state.added),
                removed=tuple(state.removed),
                published=tuple(self._publish(member, table) for table in state.published if table.num_rows),
            )
        )

    def _publish(self, member: Member, delta: pa.Table) -> Published:
        columns = [f"c{i}" for i in range(len(member.names))]
        rows = delta.select([*columns, "__w"]).rename_columns([*member.names, "__w"])
        if rows.nbytes <= INLINE:
            blob = to_blob(rows)
            return Published(delta.num_rows, blob.size, crc32(blob), blob.to_pybytes(), None)
        file = f"{self._name}-{member.node}.changes"
        with (self._folder / file).open("wb") as raw:
            sink = Sink(raw)
            with pa.ipc.new_stream(sink, rows.schema) as stream:
                stream.write_table(rows)
        sync(self._folder / file)
        return Published(delta.num_rows, sink.at, sink.checksum, None, file)

    def __enter__(self) -> _Task:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Everything that the receipts name is on the disk now, or nothing stays of it."""
        self._writer.__exit__(kind, error, trace)
        _runs.forget_removed()


def _settle() -> None:
    """Take what is loaded out of the garbage collector's sight.

    Spark's daemon collects garbage after every task, and walks through all modules to do it: 30 ms a task.
    """
    if next(_tasks) < SETTLING:
        gc.freeze()


def _spill(role: str) -> Spill:
    """A file for large cells; a kernel and the packing behind it are two processes of one task."""
    from pyspark import TaskContext

    folder, epoch = _place()
    return Spill(folder, f"{epoch}{TaskContext.get().taskAttemptId()}-{role}.cells")


def _place() -> tuple[str, str]:
    from pyspark import TaskContext

    task = TaskContext.get()
    return task.getLocalProperty(FOLDER), task.getLocalProperty(EPOCH)


def _unwrapped(column: pa.Array, many: bool) -> pa.Table | None:
    """The rows of an edge's column: its structs that are not NULL, or those in its lists."""
    if many:
        column = column.flatten()
    if column.null_count == len(column):
        return None
    if column.null_count:
        column = column.drop_null()
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(column)])


def _wide(delta: pa.Table, source: str, schema: pa.Schema, shard: int = 0) -> Iterator[pa.RecordBatch]:
    """A delta as rows of the wide schema, in batches that are not too large."""
    kind = schema.field(source).type
    for batch in decoded(delta).combine_chunks().to_batches(max_chunksize=MOST_ROWS):
        columns = [batch.column(field.name).cast(field.type) for field in kind]
        struct = pa.StructArray.from_arrays(columns, fields=list(kind))
        here = pa.repeat(pa.scalar(shard, pa.int32()), batch.num_rows)
        yield _widened(pa.RecordBatch.from_arrays([struct, here], names=[source, "shard"]), schema)


def _widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    there = set(batch.schema.names)
    columns = [
        batch.column(field.name) if field.name in there else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def wide_schema(sources: Mapping[str, pa.Schema]) -> pa.Schema:
    """One nullable struct for each source, with its weight, and the columns of a cell."""
    weighted = {
        name: pa.struct([*(field.with_nullable(True) for field in columns), pa.field("__w", pa.int64())])
        for name, columns in sources.items()
    }
    return pa.schema([*(pa.field(name, kind) for name, kind in weighted.items()), *CELL])


def wide_table(rows: Mapping[str, pa.Table], schema: pa.Schema) -> pa.Table:
    """Deltas of several sources as wide rows."""
    batches = [b for name, delta in rows.items() for b in _wide(delta, name, schema)]
    return pa.Table.from_batches(batches, schema)
