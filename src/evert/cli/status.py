"""`evert status`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from evert.cli.base import Command, session
from evert.cli.output import listing, sized

if TYPE_CHECKING:
    from evert.log.clocks import DeviceClock
    from evert.log.times import StreamTime
    from evert.views.profile import EpochProfile, NodeProfile
    from evert.views.status import ViewStatus

SHOWN = (
    "view",
    "state",
    "position",
    "behind",
    "seconds",
    "epoch ms",
    "changed",
    "corrections",
    "rows",
    "size",
)
TIMED = ("topic", "watermark", "sources", "idle", "events", "late", "dropped", "recently")
UNTIMED = "no stream has event time: give one the option event_time"
CLOCKED = ("topic", "device", "offset", "error", "drift", "jumps", "events", "seen")
UNCLOCKED = (
    "no stream says what the clocks of its devices show: give one the options source, occurred and sent"
)
UNHEARD = "no device has sent anything yet"
_BAR = 20


PROFILED = (
    "view",
    "node",
    "kind",
    "rows in",
    "rows out",
    "received",
    "ms",
    "state rows",
    "state",
    "expressions",
)


@click.command(cls=Command)
@click.option("--profile", is_flag=True, help="Show what the time of the last epoch went into, node by node.")
@click.option(
    "--time", "times", is_flag=True, help="Show the streams with event time: watermarks, stragglers."
)
@click.option("--clocks", is_flag=True, help="Show what the clocks of devices are off by, in seconds.")
def status(profile: bool, times: bool, clocks: bool) -> None:
    """How far the views are: position, events and seconds behind, the last epoch, rows and size of the state.

    It reads what the last epoch has left, and starts no Java.

    \b
    Example: evert status
             evert status --profile
             evert status --time
             evert status --clocks
    """
    with session().open() as db:
        if profile:
            show_profile(db.profile())
        elif times:
            show_times(db.times())
        elif clocks:
            found = [topic.name for topic in db.log.topics().values() if topic.options.clocks]
            show_clocks({name: db.clocks(name) for name in found})
        else:
            show_status(db.status())
            warn(db.times())


def show_times(streams: Iterable[StreamTime]) -> None:
    """The streams with event time, and under the table which have more stragglers than they had."""
    found = list(streams)
    listing([_timed(one) for one in found], TIMED, empty=UNTIMED)
    warn(found)


def _timed(one: StreamTime) -> dict[str, Any]:
    watermark = None if one.watermark is None else one.watermark.isoformat()
    return asdict(one) | {"watermark": watermark, "rising": one.rising}


def show_clocks(streams: Mapping[str, Iterable[DeviceClock]]) -> None:
    """The clocks of the devices of all streams that say what these show."""
    rows = [_clock(topic, clock) for topic, clocks in streams.items() for clock in clocks]
    listing(rows, CLOCKED, empty=UNHEARD if streams else UNCLOCKED)


def _clock(topic: str, clock: DeviceClock) -> dict[str, Any]:
    seen = None if clock.seen is None else clock.seen.isoformat()
    lengths = {"offset": clock.offset.total_seconds(), "error": clock.error.total_seconds()}
    return {"topic": topic} | asdict(clock) | lengths | {"seen": seen}


def warn(streams: Iterable[StreamTime]) -> None:
    """Tell of streams that set aside more events than they used to."""
    for one in streams:
        if one.rising and not session().json:
            click.echo(
                f"{one.topic}: {one.recently:,} events came too late in the last hour, and are in {one.topic}.late;"
                f" {one.dropped - one.recently:,} did before. Is `lateness` too short, or a source's clock wrong?",
                err=True,
            )


def show_profile(epochs: Iterable[EpochProfile]) -> None:
    """The last epoch of each group: a line for the whole, and a table of its nodes."""
    found = list(epochs)
    if session().json:
        listing([asdict(one) for one in found], (), empty="[]")
        return
    if not found:
        click.echo("no epoch has run yet")
    for one in found:
        click.echo(
            f"{one.group}: {one.events:,} events to position {one.position} in {one.milliseconds:,.0f} ms;"
            f" all tasks together: reading {one.scanning:,.0f} ms, nodes {one.in_nodes:,.0f} ms,"
            f" packing for Spark {one.packing:,.0f} ms"
        )
        listing([_profiled(node) for node in one.nodes], PROFILED, empty="")


def _profiled(node: NodeProfile) -> dict[str, Any]:
    figures = (node.view, node.node, node.kind, node.rows_in, node.rows_out, sized(node.bytes_in))
    state = (round(node.milliseconds, 1), node.state_rows, sized(node.state_bytes), node.home)
    return dict(zip(PROFILED, (*figures, *state), strict=True))


def show_status(found: Iterable[ViewStatus]) -> None:
    """The state of all views, and under the table how far those are that are built, and why some have stopped."""
    states = list(found)
    rows = [asdict(one) for one in states] if session().json else [shown(one) for one in states]
    listing(rows, columns_of(states), empty="there are no views yet")
    if not session().json:
        for line in filter(None, map(note, states)):
            click.echo(line, err=True)


def columns_of(states: Iterable[ViewStatus]) -> tuple[str, ...]:
    """The columns of the table: corrections have one where there are some."""
    corrected = any(one.corrections for one in states)
    return tuple(column for column in SHOWN if corrected or column != "corrections")


def shown(one: ViewStatus) -> dict[str, Any]:
    """A line of the table."""
    return {
        "view": called(one),
        "state": one.state,
        "position": one.position if one.position >= 0 else None,
        "behind": one.lag_events,
        "seconds": None if one.lag_seconds is None else round(one.lag_seconds, 1),
        "epoch ms": None if one.epoch_ms is None else round(one.epoch_ms),
        "changed": one.changed,
        "corrections": one.corrections,
        "rows": one.rows,
        "size": None if one.bytes is None else sized(one.bytes),
    }


def note(one: ViewStatus) -> str | None:
    """What the table has no room for: how far a view is built, why it has stopped, or that it waits."""
    if one.held and one.state == "live":
        return f"{called(one)} waits: `evert view compare {one.name}`, then `evert view switch {one.name}`"
    return progress(one) if one.state in ("building", "resuming") else trouble(one)


def called(one: ViewStatus) -> str:
    """The name of a view; a replacement has none of its own yet."""
    return f"{one.name} (new)" if one.replacing else one.name


def progress(one: ViewStatus) -> str:
    """How much of the log a view that is being built has gone through, as a bar."""
    done = max(one.position, 0)
    share = done / max(done + (one.lag_commits or 0), 1)
    left = f", {one.lag_events:,} events to go" if one.lag_events else ""
    return f"{called(one)} is being built  {bar(share, _BAR)} {share:.0%}{left}"


def bar(share: float, width: int) -> str:
    """
    >>> bar(0.5, 4)
    '██░░'
    """
    full = min(width, max(0, int(share * width)))
    return "█" * full + "░" * (width - full)


def trouble(one: ViewStatus) -> str | None:
    """Why a view does not go on, and what to do; None if it does."""
    if one.state == "stopped":
        then = "abandon" if one.replacing else "resume"
        said = f"{called(one)} stopped at position {one.position}: {reason(one.error)}"
        return f"{said}; `evert view {then} {one.name}`"
    if one.state == "absent":
        return f"{called(one)} is not kept: its code is not here. {reason(one.error)}".rstrip()
    return None


def reason(error: Any) -> str:
    """The sentence in the error that the catalog keeps of a view."""
    if isinstance(error, dict):
        return str(error.get("message") or error.get("error") or "")
    return str(error or "")
