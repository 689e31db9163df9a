"""An epoch: one range of the log through one Spark job, and one commit for all that comes of it.

    range ──> deltas of the leaves ──> job: levels of kernels ──> receipts ──> one catalog transaction

A crash before the commit leaves announced files and nothing else. The commit checks the runner's lease, the
announcement, and that the views are still where the epoch found them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.catalog import Lease, Transaction
from evert.epoch import direct, inputs, narrow
from evert.epoch.commit import Outcome, commit
from evert.epoch.feed import Feed, counted_since, gathered
from evert.epoch.flow import Flow, Part, joined
from evert.epoch.job import Job, input_schema, straight
from evert.epoch.jobs import Jobs
from evert.epoch.moments import standing
from evert.epoch.planning import Planning, nodes_of
from evert.epoch.profile import profile
from evert.epoch.receipt import Manifest, NodeRuns, Receipt, Spent
from evert.epoch.reuse import NOTHING
from evert.epoch.slices import leave
from evert.epoch.spark import Damaged, JobFailed
from evert.epoch.work import Work
from evert.plan.graph import Plan
from evert.trace import Stored
from evert.views.definition import NOWHERE, Definition

if TYPE_CHECKING:
    from evert.database import Database

ROOM = "state"


@dataclass(frozen=True)
class EpochDone:
    """What an epoch did; `changed` has the rows that changed in each view."""

    group: str
    position: int
    after: int
    milliseconds: float
    rows: int
    changed: dict[str, int]
    views: list[str]


class Epochs:
    """Runs epochs of one database."""

    def __init__(self, db: Database, planning: Planning) -> None:
        self._db = db
        self._planning = planning
        self._jobs = Jobs()
        self._by_spark: set[tuple[tuple[int, ...], frozenset[str]]] = set()
        """Flows in which workers met what only Spark can evaluate."""
        self._running = ""

    def run(self, work: Work, lease: Lease) -> EpochDone:
        """Run one epoch and commit it."""
        begun = time.perf_counter()
        outcome, events = self._computed(work)
        micros = int((time.perf_counter() - begun) * 1e6)
        catalog, files = self._db.catalog, self._db.log.files
        changed = catalog.write(lambda tx: commit(tx, files, lease, work, outcome, micros, events))
        names = [view.name for view in work.views]
        spent = (time.perf_counter() - begun) * 1e3
        return EpochDone(work.group, work.upto, max(0, work.after), spent, events, changed, names)

    def attempt(self, work: Work) -> None:
        """Run an epoch's job and forget it: does it fail?"""
        outcome, _ = self._computed(work)
        if outcome.epoch:
            self._db.log.files.discard([outcome.epoch])

    def hold_files(self) -> None:
        """Keep the files of a long epoch from the sweep while it runs."""
        if epoch := self._running:
            self._db.catalog.write(lambda tx: self._db.log.files.renew(tx, epoch))

    def _computed(self, work: Work) -> tuple[Outcome, int]:
        parts, runs = self._state(work)
        flow = joined(parts, {switch.old.name for switch in work.switches})
        feed = gathered(self._db, self._planning, work, flow, parts)
        first = work.after == NOWHERE
        if not first:
            flow = flow.fed_by(feed.sources)
        outputs = {part.view: part.output for part in parts}
        if not flow.nodes:
            return Outcome("", [], outputs), feed.events
        files = self._db.log.files
        epoch = self._running = files.announce_prefix(ROOM)
        try:
            with self._db.catalog.read() as tx:
                moments = standing(tx, (rule for node in flow.nodes for rule in node.forgets), work.upto)
            said = self._run_job(flow, feed, epoch, runs, moments, again=not work.reuses)
        except BaseException:
            files.discard([epoch])
            raise
        finally:
            self._running = ""
        receipts = [one for one in said if isinstance(one, Receipt)]
        inline = _shape(flow) not in self._by_spark
        return Outcome(epoch, receipts, outputs, profile(said, flow, inline=inline)), feed.events

    def _run_job(
        self,
        flow: Flow,
        feed: Feed,
        epoch: str,
        runs: Mapping[int, Mapping[int, NodeRuns]],
        moments: Mapping[str, int],
        *,
        again: bool,
    ) -> list[Receipt | Spent]:
        """Run a flow's job; one that will be run `again` is kept."""
        folder = str(self._db.path.resolve())
        bits = self._db.config.hash_bits
        for shard in range(self.shards):
            nodes = {node.id: runs[shard][node.id] for node in flow.nodes}
            Manifest(folder, epoch, bits, nodes, moments).save(shard)
        shape = _shape(flow)
        inline = shape not in self._by_spark
        entry = self._entry(flow, feed, epoch, inline)
        make = partial(Job, self._planning.catalyst, flow, shards=self.shards, bits=bits, **entry)
        jobs = self._jobs if again and "frame" not in entry else Jobs()
        key, size = (*shape, entry.get("tasks")), len(flow.nodes)
        job = jobs.get(key, size, partial(make, inline=inline))
        try:
            return job.run(folder, epoch)
        except JobFailed as error:
            jobs.forget(key)
            if not job.inline or isinstance(error, Damaged):
                raise
        del job
        try:
            said = jobs.get(key, size, partial(make, inline=False)).run(folder, epoch)
        except JobFailed:
            jobs.forget(key)  # Spark fails too: it is the data, and the next rows may be for workers again
            raise
        self._by_spark.add(shape)
        return said

    def _entry(self, flow: Flow, feed: Feed, epoch: str, inline: bool) -> dict[str, Any]:
        """Put down what enters a job, and say how it gets it."""
        db, session = self._db, self._planning.catalyst.session
        deltas, tasks = dict(feed.deltas), 1
        found = direct.slices(db, flow, feed.topics) if inline and not feed.frames else None
        if found is not None:
            slices, rest = found
            parts = self.shards if straight(flow) else session.sparkContext.defaultParallelism
            tasks = parts if slices else 1
            leave(db.path, epoch, slices, tasks)
            for name, rows in rest.items():
                deltas[name] = pa.concat_tables([deltas[name], rows]) if name in deltas else rows
        elif feed.topics or feed.frames:
            frames = feed.frames_of(session, db, flow)
            return {"frame": inputs.wide_frame(session, frames, input_schema(flow))}
        inputs.write_scan(db.log.files.path(f"{epoch}input.arrow"), deltas, input_schema(flow))
        return {"tasks": tasks}

    @property
    def shards(self) -> int:
        return self._db.shards

    def _state(self, work: Work) -> tuple[list[Part], dict[int, dict[int, NodeRuns]]]:
        """The views' nodes, and their runs by shard."""
        plans = {view.id: self._planning.plan(view) for view in work.views}

        def numbers(tx: Transaction) -> list[Part]:
            tables = narrow.decided(tx, work.views, plans) if first else {}
            return [_part(tx, work, view, plans[view.id], tables) for view in work.views]

        first = work.after == NOWHERE
        if first:
            parts = self._db.catalog.write(numbers)
        else:
            with self._db.catalog.read() as tx:
                parts = numbers(tx)
        ids = sorted({number for part in parts for number in part.nodes.values()})
        stored: dict[int, dict[int, dict[str, list[Stored]]]] = {
            shard: {number: {} for number in ids} for shard in range(self.shards)
        }
        with self._db.catalog.read() as tx:
            for number in ids:
                sql = (
                    "SELECT shard, trace, id, file, start, bytes, rows, checksum FROM runs WHERE node = ?"
                    " ORDER BY id DESC"
                )
                for shard, trace, *run in tx.all(sql, number):
                    stored[shard][number].setdefault(trace, []).append(Stored(*run))
        runs = {
            shard: {
                number: NodeRuns(first, {trace: tuple(found) for trace, found in traces.items()})
                for number, traces in nodes.items()
            }
            for shard, nodes in stored.items()
        }
        return parts, runs


def _shape(flow: Flow) -> tuple[tuple[int, ...], frozenset[str]]:
    """What tells flows apart: their nodes, and what enters them."""
    return tuple(node.id for node in flow.nodes), frozenset(flow.leaves)


def _part(tx: Transaction, work: Work, view: Definition, plan: Plan, tables: Mapping[str, str]) -> Part:
    reuse = work.reuses.get(view.id, NOTHING)
    nodes = {**nodes_of(tx, view, plan, tables), **reuse.states}
    plan = narrow.narrowed(tx, plan, nodes)
    return Part(view.name, plan, nodes, counted_since(tx, work, view), reuse)
