"""One Spark job for a flow: expressions in Spark, nodes in kernels, one exchange a level.

The job is planned once for a flow and run again for every epoch: the plan does not change, what it reads is
named by local properties. A large range of the log comes as a DataFrame instead, and is planned anew.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.epoch import spark as on_spark
from evert.epoch import worker
from evert.epoch.cells import CELL
from evert.epoch.flow import Flow, Step
from evert.epoch.receipt import Receipt
from evert.epoch.worker import Edge, Member

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evert.plan.catalyst import Catalyst


class Job:
    """A flow as a Spark plan that can be run for any number of epochs."""

    def __init__(
        self, catalyst: Catalyst, flow: Flow, *, shards: int, bits: int, frame: DataFrame | None = None
    ) -> None:
        self._catalyst = catalyst
        self._flow = flow
        self._shards = shards
        self._bits = bits
        self.schema = input_schema(flow)
        with catalyst.active():  # any thread may ask for a job
            start = self._scanned() if frame is None else frame
            with catalyst.setting("spark.sql.exchange.reuse", "false"):
                self._plan = catalyst.physical(self._levels(start))
        branched = any(step.chain.over for node in flow.nodes for step in node.steps)
        self._sharing = catalyst.sharing() if branched else _as_it_is

    def run(self, folder: str, epoch: str) -> list[Receipt]:
        """Run the job for an epoch whose files are at hand; its receipts."""
        properties = {worker.FOLDER: folder, worker.EPOCH: epoch}
        column = CELL.names.index("blob")
        with self._catalyst.active():
            blobs = on_spark.execute(
                self._catalyst.session, self._plan, self._sharing, properties, column=column
            )
        return [receipt for blob in blobs for receipt in pickle.loads(blob)]

    def _scanned(self) -> DataFrame:
        one = self._catalyst.session.range(0, 1, 1, 1)
        schema = on_spark.struct_type(self.schema)
        return one.mapInArrow(partial(worker.scan, schema=self.schema), schema)

    def _levels(self, frame: DataFrame) -> DataFrame:
        flow = self._flow
        levels = dict.fromkeys(flow.leaves, 0) | {node.source: node.level for node in flow.nodes}
        for level in range(1, flow.depth + 1):
            steps = [
                (node, step) for node in flow.nodes for step in node.steps if levels[step.source] == level - 1
            ]
            edges = [
                Edge(f"e{i}", node.id, step.port, node.operator, step.chain.many)
                for i, (node, step) in enumerate(steps)
            ]
            if level > 1 and any(step.chain.over for _, step in steps):
                frame = self._catalyst.stage(frame.repartitionById(self._shards, "shard"))
            frame = self._expressions(frame, [step for _, step in steps], edges)
            frame = self._exchanged(frame, edges)
            frame = self._kernel(frame, level)
        return frame

    def _expressions(self, frame: DataFrame, steps: Sequence[Step], edges: Sequence[Edge]) -> DataFrame:
        """Every chain of the level, in one projection; what only passes through comes with it.

        Chains with operators of Spark's own in them are branches beside it, which read the same rows.
        """
        catalyst = self._catalyst
        columns: dict[str, Any] = {}
        branches = {}
        for step, edge in zip(steps, edges, strict=True):
            row = catalyst.attribute(frame, step.source)
            if step.chain.over is None:
                columns[edge.column] = catalyst.guarded(row, step.chain.build(row))
            else:
                branch = catalyst.frame(step.chain.over(catalyst.analysed(frame), row))
                branches[edge.column] = branch
                columns[edge.column] = catalyst.null(catalyst.attribute(branch, "row").dataType())
        columns |= {name: catalyst.attribute(frame, name) for name in CELL.names}
        every = catalyst.project(frame, list(columns.items()))
        nothing = {name: catalyst.null(term.dataType()) for name, term in columns.items()}
        for name, branch in branches.items():
            only = nothing | {name: catalyst.attribute(branch, "row")}
            every = every.unionAll(catalyst.project(branch, list(only.items())))
        return every

    def _exchanged(self, frame: DataFrame, edges: Sequence[Edge]) -> DataFrame:
        pack = partial(worker.pack, edges=tuple(edges), shards=self._shards, bits=self._bits)
        cells = frame.mapInArrow(pack, on_spark.struct_type(CELL))
        return cells.repartitionById(self._shards, "shard")

    def _kernel(self, frame: DataFrame, level: int) -> DataFrame:
        flow = self._flow
        consumed = flow.consumed
        members = tuple(
            Member(
                node.id,
                node.view,
                node.operator,
                node.source if node.source in consumed else None,
                node.names,
            )
            for node in flow.at(level)
        )
        sources = {m.source: on_spark.carried(m.operator.output) for m in members if m.source is not None}
        schema = None if level == flow.depth else worker.wide_schema(sources)
        kernel = partial(worker.kernel, members=members, level=level, schema=schema)
        return frame.mapInArrow(kernel, on_spark.struct_type(CELL if schema is None else schema))


def _as_it_is(plan: Any) -> Any:
    return plan


def input_schema(flow: Flow) -> pa.Schema:
    """The wide rows that enter a flow."""
    return worker.wide_schema({name: flow.columns(name) for name in flow.leaves})
