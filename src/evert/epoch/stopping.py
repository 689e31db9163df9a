"""Views that have stopped: who stops with them, and when they may try again.

A view that reads one that has stopped, or whose code is absent, stops too, whatever group it is in. It goes on
when the one below does. A stopped view tries again when the log has something that it did not fail on.
"""

from __future__ import annotations

from collections.abc import Sequence

from evert.catalog import Transaction
from evert.epoch.define import rebuild
from evert.views import changes
from evert.views import definition as definitions
from evert.views.definition import NOWHERE, Definition


def readers_of_stopped(views: Sequence[Definition]) -> list[tuple[Definition, str]]:
    """The views that go on though one that they read has stopped or is absent, with its name."""
    by_id = {view.id: view for view in views}
    going = [view for view in views if view.state in ("building", "resuming", "live")]
    return [(view, name) for view in going if (name := _below(view, by_id)) is not None]


def stop_readers(tx: Transaction) -> None:
    """Stop every view that reads a stopped or absent one, directly or not."""
    while readers := readers_of_stopped(definitions.all(tx)):
        for view, name in readers:
            message = f"the view {name}, which it reads, has stopped"
            definitions.mark(tx, view.id, "stopped", error={"error": "stopped", "message": message})


def can_try(tx: Transaction, view: Definition, head: int) -> bool:
    """Whether a stopped view may try again: there is something new, and what it reads has not stopped."""
    if view.state != "stopped" or tried(view) >= head:
        return False
    return _below(view, {other.id: other for other in definitions.all(tx)}) is None


def tried(view: Definition) -> int:
    """The position up to which a stopped view is known to fail."""
    return max(view.position, (view.error or {}).get("epoch", NOWHERE))


def try_again(tx: Transaction, view: Definition) -> None:
    """Let a stopped view go on from where it is, or build it anew if what it has missed is gone."""
    if definitions.replacement_of(tx, view) is not None:
        return
    if _missed_views(tx, view):
        rebuild(tx, view)
    elif (reason := definitions.lost(tx, view)) is not None:
        error = view.error or {}
        if reason not in error.get("message", ""):
            error = error | {"message": f"{error.get('message', '')} ({reason})"}
        definitions.mark(tx, view.id, "stopped", error=error | {"epoch": 2**62})
    else:
        definitions.go_on(tx, view)


def _missed_views(tx: Transaction, view: Definition) -> bool:
    """Whether the history of a view that it reads no longer reaches back to where it stopped."""
    for read in view.reads:
        below = definitions.by_id(tx, read.id) if read.kind == "view" else None
        if below is not None and view.position != NOWHERE:
            begin = changes.first(tx, below.feed)
            if begin is not None and begin > view.position:
                return True
    return False


def _below(view: Definition, views: dict[int, Definition]) -> str | None:
    """The name of a view that it reads and that has stopped, if there is one."""
    for read in view.reads:
        below = views.get(read.id) if read.kind == "view" else None
        if below is not None and below.state in ("stopped", "absent"):
            return below.name
    return None
