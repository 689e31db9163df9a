"""One Spark job for a flow: expressions in Spark, nodes in kernels, one exchange a level.

The job is planned once for a flow and run again for every epoch: the plan does not change, what it reads is
named by local properties. A large range of the log comes as a DataFrame instead, and is planned anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.delta.output import Output
from evert.epoch import spark as on_spark
from evert.epoch import worker
from evert.epoch.cells import CELL
from evert.epoch.flow import Flow, FlowNode, Step
from evert.epoch.receipt import Receipt, Spent, told
from evert.epoch.worker import Edge, Member, Then

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from evert.plan.catalyst import Catalyst

MOST_COPIES = 16
"""How often a plan may have what is below its branches."""


class Job:
    """A flow as a Spark plan that can be run for any number of epochs."""

    def __init__(
        self,
        catalyst: Catalyst,
        flow: Flow,
        *,
        shards: int,
        bits: int,
        frame: DataFrame | None = None,
        inline: bool = True,
        tasks: int = 1,
    ) -> None:
        """`frame` has what enters, if it is not in files that so many `tasks` read; `inline` lets workers evaluate
        what they can."""
        self._tasks = tasks
        self._straight = inline and frame is None and straight(flow)
        self._catalyst = catalyst
        self._flow = flow = flow if inline else flow.levelled(inline=False)
        self._shards = shards
        self._bits = bits
        self._edges = _edges(flow, 1 if inline and frame is None else 2 if inline else flow.depth + 1)
        # Any thread may ask for a job, and what is active is a thread's own.
        with catalyst.active(), catalyst.setting("spark.sql.exchange.reuse", "false"):
            self._plans = [catalyst.physical(piece) for piece in self._pieces(frame)]
        branched = any(step.chain.over for node in flow.nodes for step in node.steps)
        self._sharing = catalyst.sharing() if branched else _as_it_is

    @property
    def pieces(self) -> int:
        """How many plans it is; they run one after the other."""
        return len(self._plans)

    @property
    def inline(self) -> bool:
        """Whether workers evaluate something themselves."""
        crossing = [edge for edges in self._edges.values() for _, edge in edges]
        beside = [edge for level in self._edges for edge in _beside(self._flow, level)]
        return any(edge.work is not None for edge in (*crossing, *beside))

    def run(self, folder: str, epoch: str) -> list[Receipt | Spent]:
        """Run the job for an epoch whose files are at hand; what its tasks say."""
        said: list[Any] = []
        for plan in self._plans:
            properties = {worker.FOLDER: folder, worker.EPOCH: epoch, worker.LEFT: json.dumps(said)}
            with self._catalyst.active():
                texts = on_spark.execute(
                    self._catalyst.session, plan, self._sharing, properties, column=CELL.names.index("blob")
                )
            said = [one for text in texts for one in told(Path(folder), text)]
        return said

    def _scanned(self) -> DataFrame:
        each = self._catalyst.session.range(0, self._tasks, 1, self._tasks)
        flow = self._flow
        then = self._then(1, {name: flow.columns(name) for name in flow.leaves})
        return each.mapInArrow(partial(worker.scan, then=then), on_spark.struct_type(then.output))

    def _kept_where_read(self) -> DataFrame:
        """The one level of a flow whose rows may be in any shard."""
        each = self._catalyst.session.range(0, self._shards, 1, self._shards)
        edges = tuple(edge for _, edge in self._edges[1])
        work = partial(worker.straight, edges=edges, members=self._members(1), bits=self._bits)
        return each.mapInArrow(work, on_spark.struct_type(CELL))

    def _then(self, level: int, sources: Mapping[str, pa.Schema]) -> Then:
        """What becomes of the rows of these sources, on their way into a level."""
        edges = [edge for _, edge in self._edges[level]]
        asked = {edge.source for edge in edges if edge.work is None}
        wide = {name: columns for name, columns in sources.items() if name in asked}
        inline = tuple(edge for edge in edges if edge.work is not None)
        return Then(inline, self._shards, self._bits, worker.wide_schema(wide) if wide else None)

    def _pieces(self, given: DataFrame | None) -> Iterator[DataFrame]:
        """The levels, one above the other, in as many plans as there are cuts, and one."""
        if self._straight:
            yield self._kept_where_read()
            return
        frame = self._scanned() if given is None else given
        cuts = self._cuts()
        for level in range(1, self._flow.depth + 1):
            if by_spark := self._by_spark(level):
                frame = self._packed(frame, level, *zip(*by_spark, strict=True))
            frame = frame.repartitionById(self._shards, "shard")
            kernel, made = self._kernel(level)
            if level + 1 in cuts:
                yield frame.mapInArrow(partial(worker.leave, stage=kernel), on_spark.struct_type(CELL))
                each = self._catalyst.session.range(0, self._shards, 1, self._shards)
                frame = each.mapInArrow(worker.take_up, on_spark.struct_type(made))
            else:
                frame = frame.mapInArrow(kernel, on_spark.struct_type(made))
        yield frame

    def _cuts(self) -> set[int]:
        """The levels that begin a plan of their own, because one plan of all would be too large.

        A plan is a tree: each branch of a level has a copy of all that is below it, and of the branches in there.
        """
        found, copies = set(), 1
        for level in range(1, self._flow.depth + 1):
            branches = sum(step.chain.over is not None for step, _ in self._by_spark(level))
            if branches and level > 1 and copies * (1 + branches) > MOST_COPIES:
                found.add(level)
                copies = 1
            copies *= 1 + branches
        return found

    def _by_spark(self, level: int) -> list[tuple[Step, Edge]]:
        """The ways into a level whose expressions Spark evaluates."""
        return [(step, edge) for step, edge in self._edges[level] if edge.work is None]

    def _packed(
        self, frame: DataFrame, level: int, steps: Sequence[Step], edges: Sequence[Edge]
    ) -> DataFrame:
        """The cells of wide rows, after Spark has evaluated these steps."""
        if level > 1 and any(step.chain.over for step in steps):
            frame = self._catalyst.stage(frame.repartitionById(self._shards, "shard"))
        frame = self._expressions(frame, steps, edges)
        pack = partial(worker.pack, edges=tuple(edges), shards=self._shards, bits=self._bits)
        return frame.mapInArrow(pack, on_spark.struct_type(CELL))

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

    def _kernel(self, level: int) -> tuple[worker.Stage, pa.Schema]:
        """What a task of the level does, and the columns of what it gives."""
        flow, members = self._flow, self._members(level)
        then = None
        if level < flow.depth:
            sources = {m.source: on_spark.carried(m.operator.output) for m in members if m.source is not None}
            then = self._then(level + 1, sources)
        kernel = partial(worker.kernel, members=members, level=level, then=then)
        return kernel, CELL if then is None else then.output

    def _members(self, level: int) -> tuple[Member, ...]:
        """The nodes of a level as its tasks know them."""
        flow = self._flow
        consumed = flow.consumed
        beside = _beside(flow, level)
        return tuple(
            Member(
                node.id,
                node.view,
                node.operator,
                node.source if node.source in consumed else None,
                node.names,
                tuple(edge for edge in beside if edge.source == node.source),
                node.forgets,
                node.reads,
                flow.wanted(node.source),
            )
            for node in flow.at(level)
        )


def straight(flow: Flow) -> bool:
    """Whether tasks keep what they have read where they are: outputs that only grow, of what workers evaluate."""
    return flow.depth == 1 and all(
        isinstance(node.operator, Output)
        and node.operator.anywhere
        and node.operator.grows
        and all(step.source in flow.leaves and step.chain.inline is not None for step in node.steps)
        for node in flow.nodes
    )


def _edges(flow: Flow, inline: int) -> dict[int, list[tuple[Step, Edge]]]:
    """The steps that lead into each level, with their edges; from a level on, workers do what they can."""
    levels = dict.fromkeys(flow.leaves, 0) | {node.source: node.level for node in flow.nodes}
    found: dict[int, list[tuple[Step, Edge]]] = {level: [] for level in range(1, flow.depth + 1)}
    for node in flow.nodes:
        for step in node.steps:
            level = levels[step.source] + 1
            if level > node.level:
                continue
            edge = _edge(node, step, f"e{len(found[level])}", inline=level >= inline)
            found[level].append((step, edge))
    return found


def _beside(flow: Flow, level: int) -> list[Edge]:
    """The edges between nodes of one level."""
    here = {node.source for node in flow.at(level)}
    steps = [(node, step) for node in flow.at(level) for step in node.steps if step.source in here]
    return [_edge(node, step, "", inline=True) for node, step in steps]


def _edge(node: FlowNode, step: Step, column: str, *, inline: bool) -> Edge:
    chain = step.chain
    return Edge(
        column,
        node.id,
        step.port,
        node.operator,
        chain.many,
        step.source,
        chain.inline if inline else None,
        chain.stays,
    )


def _as_it_is(plan: Any) -> Any:
    return plan


def input_schema(flow: Flow) -> pa.Schema:
    """The wide rows that enter a flow."""
    return worker.wide_schema({name: flow.columns(name) for name in flow.leaves})
