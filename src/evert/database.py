"""The façade: one object for one folder."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from evert.access import Tokens
from evert.catalog import SqliteCatalog
from evert.catalog import Transaction as Changes
from evert.clock import Clock, SystemClock
from evert.config import Config
from evert.consumer import Consumer
from evert.duration import Duration
from evert.errors import BadOption, Expired, TimedOut
from evert.hooks import Hooks
from evert.log import groups, lag
from evert.log.clocks import DeviceClock, clocks
from evert.log.embedded import EmbeddedLog
from evert.log.groups import GroupInfo
from evert.log.lag import Lag
from evert.log.progress import Start, Target
from evert.log.protocol import Batch
from evert.log.stragglers import source_name
from evert.log.times import StreamTime, micros, stream_time
from evert.log.topic import Kind, Topic, define
from evert.queue import Queue
from evert.statements import Result, run_statements
from evert.topics import Stream, Table, handle
from evert.transaction import Transaction, request_of
from evert.views import definition as definitions
from evert.views import earlier, upkeep, waiting
from evert.views.earlier import Earlier
from evert.views.profile import EpochProfile, profiles
from evert.views.reader import Reader
from evert.views.record import Emit, RefreshPolicy
from evert.views.status import ViewStatus, statuses
from evert.views.view import Answer, View, answers
from evert.views.waiting import Comparison

if TYPE_CHECKING:
    from evert.ask import Answer as Asked
    from evert.epoch.epoch import EpochDone
    from evert.epoch.prove import Proof
    from evert.epoch.runner import Explanation, Runner


def open(path: str | Path, *, create: bool = True, clock: Clock | None = None, **settings: Any) -> Database:
    """Open the database in a folder, and make it if there is none.

    Any number of threads and processes of one machine may have it open. `settings` are those of
    `evert.config.Config`.
    """
    return Database(Path(path), create=create, clock=clock, config=Config.make(settings))


class Database:
    """Topics, views and everything that reads them. Close it, or use it as a context manager."""

    def __init__(self, path: Path, *, create: bool, clock: Clock | None, config: Config) -> None:
        self.path = path
        self.config = config
        self.clock = clock or SystemClock()
        self.catalog = SqliteCatalog(path, clock=self.clock, create=create)
        self.log = EmbeddedLog(self.catalog, path, config)
        self.log.registry.refuse_if_used = definitions.refuse_topic
        self.reader = Reader(self.catalog, path, bits=config.hash_bits)
        self._known: dict[str, Topic] = {}
        self._running: Runner | None = None
        self.tokens = Tokens(self.catalog)
        self.hooks = Hooks(self)

    def stream(
        self,
        name: str,
        schema: str,
        *,
        key: str | Sequence[str] | None = None,
        partitions: int = 1,
        **options: Any,
    ) -> Stream:
        """A stream of facts, made if it is not there. The schema is Spark DDL: `"id BIGINT, at TIMESTAMP"`."""
        self._create(name, "stream", schema, key, partitions, options)
        return Stream(self, name)

    def table(
        self, name: str, schema: str, *, key: str | Sequence[str], partitions: int = 1, **options: Any
    ) -> Table:
        """A table kept as its changes, made if it is not there; the key has one or more columns."""
        self._create(name, "table", schema, key, partitions, options)
        return Table(self, name)

    def _create(
        self,
        name: str,
        kind: Kind,
        schema: str,
        key: str | Sequence[str] | None,
        partitions: int,
        options: dict[str, Any],
    ) -> None:
        self.log.create(define(name, kind, schema, key=key, partitions=partitions, options=options))

    @property
    def topics(self) -> dict[str, Stream | Table]:
        """The topics by name."""
        return {name: handle(self, topic) for name, topic in self.log.topics().items()}

    def topic(self, name: str) -> Stream | Table:
        return handle(self, self.definition(name))

    def definition(self, name: str) -> Topic:
        """The topic as it is defined now."""
        topic = self.log.reader.topic(name)
        self._known[name] = topic
        return topic

    def known(self, name: str) -> Topic:
        """The topic as it was when this object looked last."""
        return self._known.get(name) or self.definition(name)

    def alter(self, name: str, schema: str | None = None, **options: Any) -> None:
        """Change a topic: add nullable columns, widen numbers, set options."""
        self.log.alter(name, schema=schema, options=options)

    def drop(self, name: str) -> None:
        """Remove a topic with all its rows, or a view; refused while a view reads it."""

        def drop_view(tx: Changes) -> bool:
            there = definitions.lookup(tx, name) is not None
            if there:
                definitions.drop(tx, name)
            return there

        if self.catalog.write(drop_view):
            self.log.files.sweep()
        else:
            self.log.drop(name)

    def transaction(
        self, *, request_id: str | None = None, producer: str | None = None, sequence: int | None = None
    ) -> Transaction:
        """Writes to several topics in one commit: `with db.transaction() as tx: tx.append("clicks", rows)`."""
        return Transaction(self.log, self.definition, request_of(request_id, producer, sequence))

    @property
    def position(self) -> int:
        """The last position of the log."""
        return self.log.head()

    def read(
        self,
        topics: Sequence[str],
        *,
        after: int = 0,
        upto: int | None = None,
        columns: Sequence[str] | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> Iterator[Batch]:
        """Batches of one or more topics in one order of positions; see `TopicHandle.read`."""
        found = [self.definition(name) for name in topics]
        last = time.monotonic()
        while True:
            head = self.log.head()
            for batch in self.log.read(topics, after=after, upto=upto, columns=columns):
                yield batch
                after = max(after, batch.last)
                last = time.monotonic()
            after = max(after, head if upto is None else min(head, upto))
            if not follow or (upto is not None and after >= upto):
                return
            left = 1.0 if timeout is None else min(1.0, last + timeout - time.monotonic())
            if left <= 0:
                return
            self.log.wait(after, left)
            self._refuse_others(found)

    def _refuse_others(self, topics: Sequence[Topic]) -> None:
        """`Expired` if a topic that is followed was dropped, though another has its name by now."""
        there = {(topic.id, topic.created) for topic in self.log.topics().values()}
        for topic in topics:
            if (topic.id, topic.created) not in there:
                raise Expired(f"the topic {topic.name} was dropped while it was read", topic=topic.name)

    def wait(self, position: int, timeout: float = 60.0) -> int:
        """Block until the log has reached a position; the head."""
        head = self.log.wait(position - 1, timeout)
        if head < position:
            raise TimedOut(f"the log is at position {head}, not yet at {position}", position=head)
        return head

    def consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        *,
        member: str | None = None,
        start: Start = "earliest",
        lease: Duration = "30 seconds",
    ) -> Consumer:
        """Join a group that shares the partitions of a topic, of several, or of all that match `"click*"`.

        `start` counts for topics that the group has not read before.
        """
        return Consumer(self.catalog, self.log, group, topics, member=member, start=start, lease=lease)

    def queue(
        self,
        topic: str,
        *,
        group: str = "default",
        visibility: Duration = "30 seconds",
        max_attempts: int = 5,
        ordered: bool = False,
    ) -> Queue:
        """A stream as a queue: each message goes to one taker of the group, until it is acknowledged."""
        return Queue(
            self.catalog,
            self.log,
            topic,
            group=group,
            visibility=visibility,
            max_attempts=max_attempts,
            ordered=ordered,
        )

    def groups(self) -> list[GroupInfo]:
        """The consumer groups and queues, with their live members."""
        with self.catalog.read() as tx:
            return groups.infos(tx, self.log.registry)

    def reset(self, group: str, to: Target, *, topic: str | None = None, force: bool = False) -> None:
        """Let a group go on at `"earliest"`, `"latest"`, after a position, or at a time of ingestion.

        Refused while members are live; `force` fences them.
        """
        groups.reset(self.catalog, self.log.registry, self.log.reader, group, to, topic, force)

    def lag(self, topic: str | None = None, group: str | None = None) -> list[Lag]:
        """How far each group is behind in each partition, with a warning where retention comes close."""
        return lag.lag(self.catalog, self.log.registry, self.log.reader, topic, group)

    def no_more_before(
        self, topic: str, before: datetime, *, source: str | int | bool | None = None
    ) -> int | None:
        """Promise that no event of a stream older than this will come, of one source or at all; the position.

        Its watermark goes on at once, though no event says so. Events that break the promise are late.
        """
        found = self.definition(topic)
        if found.options.event_time is None or found.kind != "stream":
            raise BadOption(
                f"{topic} has no event_time", hint="alter the stream: event_time=, a column", topic=topic
            )
        if source is not None and found.options.source is None:
            raise BadOption(f"{topic} does not say who sends events: it has no source=", topic=topic)
        if not isinstance(before, datetime):
            raise BadOption(f"the time is a datetime, not {before!r}")
        name = None if source is None else source_name(source)
        return self.log.no_more_before(found, micros(before), name)

    def times(self) -> list[StreamTime]:
        """The streams with event time: their watermarks, sources, and what came late."""
        topics = [topic for topic in self.log.topics().values() if topic.kind == "stream"]
        with self.catalog.read() as tx:
            return [stream_time(tx, topic) for topic in topics if topic.options.event_time]

    def clocks(self, topic: str) -> list[DeviceClock]:
        """What the clocks of a stream's devices are off by; those that are furthest ahead come first."""
        found = self.definition(topic)
        if not found.options.clocks:
            raise BadOption(
                f"{topic} does not say what the clocks of its devices show",
                hint="alter the stream: source=, occurred= and sent=, columns",
                topic=topic,
            )
        with self.catalog.read() as tx:
            return clocks(tx, found)

    def maintain(self, timeout: float = 120.0) -> None:
        """Do all upkeep now: seal the tail, apply retention, compact, sweep, give space back."""
        deadline = time.monotonic() + timeout
        self._keep_log(deadline)
        if upkeep.keep(self.catalog, self.log):
            self._keep_log(deadline)

    def _keep_log(self, deadline: float) -> None:
        while not self.log.keep():
            if time.monotonic() > deadline:
                raise TimedOut("another process has been looking after the log all the time")
            time.sleep(0.05)

    def compact(self, name: str) -> int:
        """Compact a table now; how many rows went."""
        return self.log.keeper.compact(name)

    def view(
        self,
        name: str | Callable[[Any], Any] | None = None,
        query: str | Callable[[Any], Any] | None = None,
        *,
        key: str | Sequence[str] | None = None,
        group: str | None = None,
        history: Duration | None = definitions.DEFAULT_HISTORY,
        interval: Duration | None = None,
        refresh: RefreshPolicy = "auto",
        emit: Emit = "changes",
        comment: str | None = None,
        replace: bool = False,
        hold: bool = False,
    ) -> Any:
        """Define a view: a SELECT in Spark SQL, or a function of a Spark session that gives a DataFrame.

        As a decorator, `@db.view` or `@db.view(key=...)`, it takes name and query from a function. The view has
        rows as soon as `refresh` or `run` has built it. Its name alone gives the handle of a view that is there.
        Defining the same again is fine; another definition needs `replace`, and takes over when it is built, or
        with `hold` when `switch` says so.
        `refresh="strict"` refuses a view that would read its input again for a change; `"full"` recomputes it.
        `emit="close"` shows what is final: windows once the watermark has closed them, joins within an interval and
        frames once nothing can change them; what comes too late is in the view `<name>.late`. `comment` is for
        readers.
        """
        options = {
            "key": key,
            "group": group,
            "history": history,
            "interval": interval,
            "refresh": refresh,
            "emit": emit,
            "comment": comment,
            "replace": replace,
            "hold": hold,
        }
        if callable(name):
            return self._define(name.__name__, name, options)
        if name is None:
            return lambda function: self._define(function.__name__, function, options)
        if query is not None:
            return self._define(name, query, options)
        if key is not None or group is not None or replace or hold:
            raise BadOption(f"the view {name} needs a query", hint=f'db.view("{name}", "SELECT ...")')
        return View(self.reader, self.reader.definition(name).name)

    def _define(self, name: str, query: str | Callable[[Any], Any], options: dict[str, Any]) -> View:
        from evert.epoch.define import Wanted

        made = self._runner().define(Wanted(name, query, **options))
        return View(self.reader, made.name, None if isinstance(query, str) else query)

    def compare(self, name: str) -> Comparison:
        """The rows that differ between a view and its replacement, at one position."""
        return waiting.compare(self.reader, name)

    def switch(self, name: str) -> None:
        """Let the replacement of a view that was defined with `hold` take its place, with the next epoch."""
        self.catalog.write(lambda tx: waiting.release(tx, name))

    def abandon(self, name: str) -> None:
        """Give up the replacement of a view, whether it is being built or waits; the view stays as it is."""
        self.catalog.write(lambda tx: waiting.abandon(tx, name))
        self.log.files.sweep()

    def rollback(self, name: str) -> View:
        """Replace a view by what it was before it was replaced; it takes over when it is built."""
        return View(self.reader, self._runner().go_back(name).name)

    def earlier(self, name: str, *, forget: bool = False) -> list[Earlier]:
        """What a view was before it was replaced, newest first; with `forget` it is not kept any longer."""

        def work(tx: Changes) -> list[Earlier]:
            view = definitions.find(tx, name)
            found = earlier.of_view(tx, view.name)
            if forget:
                earlier.forget(tx, view.name)
            return found

        if forget:
            return self.catalog.write(work)
        with self.catalog.read() as tx:
            return work(tx)

    @property
    def views(self) -> dict[str, View]:
        """The views by name, in the order of their definition."""
        with self.catalog.read() as tx:
            return {view.name: View(self.reader, view.name) for view in definitions.all(tx) if view.current}

    def answers(self, names: Sequence[str] | None = None) -> dict[str, Answer]:
        """The rows of several views, or of all, as they are in one and the same commit."""
        return answers(self.reader, list(self.views) if names is None else names)

    def ask(
        self,
        sql: str,
        *,
        at: int | None = None,
        max_seconds: float = 30,
        max_rows: int = 100_000,
        dialect: str = "spark",
        visible: Callable[[str], bool] | None = None,
    ) -> Asked:
        """Any SELECT over topics and views, at one position and without a JVM; `at` asks for the past.

        The SQL is Spark's. What has no tested equal in the embedded engine is refused, or computed by Spark if this
        process runs one. A query that takes longer, or gives more rows, than allowed is an error. With `visible`,
        topics and views whose names it denies are as if they were not there.
        """
        from evert.ask.engine import ask

        return ask(
            self,
            sql,
            at=at,
            max_seconds=max_seconds,
            max_rows=max_rows,
            dialect=dialect,
            visible=visible,
        )

    def status(self) -> list[ViewStatus]:
        """How the views are: state, position, how far behind, how large."""
        return statuses(self.reader)

    def refresh(
        self, timeout: float | None = None, on_epoch: Callable[[EpochDone], None] | None = None
    ) -> int:
        """Bring all views to the head of the log as it is now; the position.

        If another process is running, it is waited for. Views that had stopped try again.
        """
        return self._runner().refresh(timeout, on_epoch)

    def run(
        self,
        *,
        stop: threading.Event | None = None,
        on_epoch: Callable[[EpochDone], None] | None = None,
        seconds: float | None = None,
    ) -> None:
        """Keep all views at the head of the log, until told to stop or the time is over."""
        self._runner().run(stop=stop, on_epoch=on_epoch, seconds=seconds)

    def explain(self, query: str | Callable[[Any], Any], *, analyze: bool = False) -> Explanation:
        """How a view, or a query that could be one, is kept up to date.

        With `analyze`, what each node of a view did in the last epoch is said below it.
        """
        return self._runner().explain(query, analyze=analyze)

    def profile(self) -> list[EpochProfile]:
        """Where the time of the last epoch of each group went."""
        with self.catalog.read() as tx:
            return profiles(tx)

    def prove(self, name: str | None = None) -> list[Proof]:
        """Compare a view, or all of them, with plain Spark SQL over the log at its position."""
        return self._runner().prove(name)

    @property
    def shards(self) -> int:
        """Into how many shards the state of views is divided; the same for the life of the database."""
        with self.catalog.read() as tx:
            row = tx.one("SELECT value FROM engine WHERE name = 'shards'")
        return int(row[0]) if row else self.config.shards

    def sql(self, text: str) -> list[Result]:
        """Run statements such as `CREATE MATERIALIZED VIEW … AS SELECT …`, separated by `;`."""
        return run_statements(self, text)

    def _runner(self) -> Runner:
        if self._running is None:
            from evert.epoch.runner import Runner

            self._running = Runner(self)
        return self._running

    def close(self) -> None:
        self.log.close()
        self.catalog.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Database {self.path}>"
