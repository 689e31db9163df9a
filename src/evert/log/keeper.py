"""Looking after the log: sealing, retention, compaction, old ids, old files.

Any process that has the database open may do it; a lease sees to it that one does at a time. Each step is a
transaction of its own, so the keeper can be stopped, or killed, between any two instructions.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable

from evert import fork
from evert.catalog import Catalog, Lease, acquire, release
from evert.config import Config
from evert.errors import Conflict, EvertError, Fenced, TimedOut, UnknownTopic
from evert.log import compaction, requests, retention, seal
from evert.log.files import Files
from evert.log.reader import LogReader, head_of
from evert.log.registry import Registry
from evert.log.topic import Topic

LEASE = "keeper"
LEASE_TIME = 60_000_000
EVERYTHING = 2**62

_log = logging.getLogger("evert.log")


class Keeper:
    """Keeps one log in shape, on demand and in the background."""

    def __init__(
        self,
        catalog: Catalog,
        registry: Registry,
        files: Files,
        reader: LogReader,
        config: Config,
        also: Callable[[], None] = lambda: None,
    ) -> None:
        """`also` is done in the background with the rest."""
        self._catalog = catalog
        self._registry = registry
        self._files = files
        self._reader = reader
        self._config = config
        self._also = also
        self._begin_anew()
        fork.watch(self)

    def _begin_anew(self) -> None:
        self._owner = uuid.uuid4().hex
        self._busy = threading.Lock()
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def before_fork(self) -> None:
        """The parent's keeper goes on as it is."""

    def after_fork(self, *, child: bool) -> None:
        if child:
            self._begin_anew()

    def keep(self, *, seal_all: bool = False) -> bool:
        """One round of everything that is due; False if another process is at it."""
        with self._busy:
            lease = acquire(self._catalog, LEASE, self._owner, LEASE_TIME)
            if lease is None:
                return False
            try:
                with self._catalog.read() as tx:
                    topics = self._registry.all(tx)
                    full = {t.id for t in topics.values()} if seal_all else set(seal.due(tx, self._config))
                troubles = self._keep_topics(topics.values(), lease, full)
                self._catalog.write(lambda tx: requests.forget(tx, tx.now - self._config.ids_kept))
                self._files.sweep()
                self._catalog.shrink(eager=seal_all)
            finally:
                release(self._catalog, lease)
        if troubles:
            raise troubles[0]
        return True

    def _keep_topics(self, topics: Iterable[Topic], lease: Lease, full: set[int]) -> list[EvertError]:
        """Look after each topic, though another is in trouble; the troubles."""
        troubles: list[EvertError] = []
        renew = self._renewal()
        for topic in topics:
            try:
                self._keep_topic(topic, lease, renew, seal_tail=topic.id in full)
            except Fenced:
                raise
            except (UnknownTopic, Conflict):
                continue
            except EvertError as error:
                troubles.append(error)
            renew()
        return troubles

    def _renewal(self) -> Callable[[], None]:
        """Something to call often while working under the lease: it renews it once in a while."""
        due = time.monotonic() + LEASE_TIME / 3_000_000

        def renew() -> None:
            nonlocal due
            if time.monotonic() >= due:
                due = time.monotonic() + LEASE_TIME / 3_000_000
                acquire(self._catalog, LEASE, self._owner, LEASE_TIME)

        return renew

    def seal(self, name: str, upto: int = EVERYTHING, *, timeout: float = 60.0) -> int:
        """Seal a topic's tail up to a position now; how many rows moved."""
        return self._alone(name, timeout, lambda topic, lease: self._seal(topic, lease, upto))

    def compact(self, name: str, *, timeout: float = 60.0) -> int:
        """Seal and compact a table now; how many rows went."""

        def work(topic: Topic, lease: Lease) -> int:
            if topic.kind == "table":
                self._seal(topic, lease, EVERYTHING)
            return self._compact(topic, lease, self._renewal())

        return self._alone(name, timeout, work)

    def _alone(self, name: str, timeout: float, work: Callable[[Topic, Lease], int]) -> int:
        with self._busy:
            waited = 0.0
            while (lease := acquire(self._catalog, LEASE, self._owner, LEASE_TIME)) is None:
                if waited >= timeout:
                    raise TimedOut("another process has been looking after the log all the time", topic=name)
                self._stop.wait(0.05)
                waited += 0.05
            try:
                return work(self._reader.topic(name), lease)
            finally:
                release(self._catalog, lease)

    def _keep_topic(self, topic: Topic, lease: Lease, renew: Callable[[], None], *, seal_tail: bool) -> None:
        with self._catalog.read() as tx:
            upto = head_of(tx) if seal_tail else retention.old_enough_to_seal(tx, topic)
        if upto is not None:
            self._seal(topic, lease, upto)
        if topic.options.retain is not None or topic.options.retain_bytes is not None:
            retention.expire(self._catalog, self._registry, topic, lease)
        with self._catalog.read() as tx:
            compactable = compaction.due(tx, topic)
        if compactable:
            self._compact(topic, lease, renew)

    def _seal(self, topic: Topic, lease: Lease, upto: int) -> int:
        return seal.seal(self._catalog, self._registry, self._files, self._config, topic, lease, upto=upto)

    def _compact(self, topic: Topic, lease: Lease, renew: Callable[[], None]) -> int:
        return compaction.compact(
            self._catalog, self._reader, self._files, self._config, topic.name, lease, renew
        )

    def start(self) -> None:
        """Let the background thread run, which has a look every now and then."""
        if not self._config.background or self._stop.is_set():
            return
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="evert-keeper", daemon=True)
            self._thread.start()

    def nudge(self) -> None:
        """Something was appended: let the background thread have a look now."""
        self.start()
        self._wake.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(self._config.keep_every / 1_000_000)
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self._also()
                self.keep()
            except Fenced:
                continue
            except EvertError as error:
                _log.warning("the keeper will try again: %s", error)
                self._stop.wait(1.0)

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
