"""The one transaction of an epoch: state, views, change feeds and position move together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evert.catalog import Lease, Transaction
from evert.epoch.receipt import Receipt
from evert.errors import Conflict, Fenced
from evert.log import holds
from evert.log.files import Files, let_go, to_garbage
from evert.views import changes, states
from evert.views.definition import Definition, by_id, joined, mark, switch

if TYPE_CHECKING:
    from evert.epoch.work import Work


@dataclass(frozen=True)
class Outcome:
    """What a job left: its files' prefix, its receipts, and the output nodes of its views."""

    epoch: str
    receipts: Sequence[Receipt]
    outputs: Mapping[str, int]
    profile: str | None = None
    """What the time of its tasks went into, as JSON."""


def commit(
    tx: Transaction, files: Files, lease: Lease, work: Work, outcome: Outcome, micros: int, events: int
) -> dict[str, int]:
    """Make an epoch visible; how many rows changed in each view.

    The epoch's prefix becomes garbage in the same transaction: what its files hold and nothing refers to, such
    as the manifests or what a repeated task wrote, goes with the next sweep.
    """
    lease.check(tx)
    if outcome.epoch:
        files.renew(tx, outcome.epoch)
        to_garbage(tx, outcome.epoch)
    for view in work.views:
        now = by_id(tx, view.id)
        if now is None or (now.state, now.position, now.held) != (view.state, view.position, view.held):
            raise Conflict(f"the view {view.name} was changed while an epoch ran", view=view.name)
    _check_once(outcome.receipts)
    states.part(tx, {receipt.node for receipt in outcome.receipts}, {view.id for view in work.views})
    for receipt in outcome.receipts:
        _replace_runs(tx, receipt)
    for number, reuse in work.reuses.items():
        states.adopt(tx, number, reuse.states, work.upto)
    changed = {}
    for view in work.views:
        pieces = [
            changes.Piece(p.rows, p.size, p.checksum, p.data, p.file)
            for receipt in outcome.receipts
            if receipt.node == outcome.outputs[view.name]
            for p in receipt.published
        ]
        changed[view.name] = _show(tx, work, view, pieces)
    if work.joins or work.switches:
        states.share(tx, work.group)
    tx.run(
        'INSERT INTO epochs ("group", shown, after, upto, at, micros, rows, changed, profile)'
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        work.group,
        int((work.joins or work.views[0].state == "live") and not work.views[0].held),
        max(0, work.after),
        work.upto,
        tx.now,
        micros,
        events,
        sum(changed.values()),
        outcome.profile,
    )
    return changed


def _show(tx: Transaction, work: Work, view: Definition, pieces: list[changes.Piece]) -> int:
    """Move a view to its new position and publish what changed."""
    feed = view.feed
    for change in work.switches:
        if change.new.id == view.id:
            feed = switch(tx, view.id, work.upto).feed
            if change.difference is not None:
                pieces = [*pieces, changes.piece(change.difference)]
    rows = changes.publish(tx, feed, work.upto, tx.now, pieces)
    if work.joins and view.state == "building":
        changes.begin(tx, feed, work.upto)
    mark(tx, view.id, "live" if work.joins else view.state, position=work.upto)
    if work.joins:
        joined(tx, view, work.upto)
    holds.seen(tx, view.id, work.upto)
    for topic, position in work.forgets.items():
        holds.can_go(tx, topic, view.id, position, since=position)
    return rows


def _check_once(receipts: Sequence[Receipt]) -> None:
    """Exactly one receipt for a node and shard is accepted."""
    seen = [(receipt.node, receipt.shard) for receipt in receipts]
    if len(seen) != len(set(seen)):
        raise Fenced("a node ran twice in one shard and epoch; nothing was committed")


def _replace_runs(tx: Transaction, receipt: Receipt) -> None:
    for trace, run in receipt.added:
        tx.run(
            "INSERT INTO runs (node, trace, shard, file, start, bytes, rows, checksum)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            receipt.node,
            trace,
            receipt.shard,
            run.file,
            run.start,
            run.bytes,
            run.rows,
            run.checksum,
        )
    files = set()
    for number in receipt.removed:
        row = tx.one("SELECT file FROM runs WHERE id = ?", number)
        if row is None or not tx.run("DELETE FROM runs WHERE id = ?", number):
            raise Fenced("an epoch replaced a run that is not there any more; nothing was committed")
        files.add(row[0])
    let_go(tx, files)
