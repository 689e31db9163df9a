"""A member of a consumer group: it polls the rows of its partitions and commits how far it has come."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

from evert.catalog import Catalog
from evert.catalog import Transaction as CatalogTransaction
from evert.duration import Duration, microseconds
from evert.errors import BadOption, EvertError, Expired, Fenced, Refused
from evert.log import groups, progress
from evert.log.assignment import Slot
from evert.log.embedded import EmbeddedLog
from evert.log.follower import Cursor, Follower, Piece
from evert.log.groups import Claim, Look, Owned, Subscription
from evert.log.names import check_name
from evert.log.progress import Start
from evert.log.protocol import Batch
from evert.log.topic import POSITION, Topic
from evert.transaction import Transaction

PATTERN = frozenset("*?[")
MOST_ROWS = 10_000


@dataclass(frozen=True)
class _Offer:
    """Claims that will be committed with a transaction of the caller, if that succeeds."""

    transaction: Transaction
    claims: dict[Slot, Claim]


class Consumer:
    """Shares the partitions of some topics with the other members of its group.

    A row is given to a member of the group at least once, and again after a crash until it is committed.
    With `commit(tx)` the offsets move in one commit with what the member writes: then each row counts once.
    A member that does not poll for the time of its lease may lose its partitions to others, who start at the
    last commit; its own next commit then raises `Fenced` and stores nothing. One thread at a time uses it.
    """

    def __init__(
        self,
        catalog: Catalog,
        log: EmbeddedLog,
        group: str,
        topics: str | Sequence[str],
        *,
        member: str | None = None,
        start: Start = "earliest",
        lease: Duration = "30 seconds",
    ) -> None:
        if start not in ("earliest", "latest"):
            raise BadOption(f"a group starts at earliest or latest, not at {start!r}")
        if not (duration := microseconds(lease)):
            raise BadOption("a lease takes some time", hint='lease="30 seconds"')
        self._catalog = catalog
        self._log = log
        names = _names(log, topics)
        session = uuid.uuid4().hex
        self._mine = Subscription(
            check_name(group, "group"), member or f"m-{session[:12]}", session, names, start, duration
        )
        self._owned: dict[Slot, Owned] = {}
        self._cursors: dict[Slot, Cursor] = {}
        self._claims: dict[Slot, Claim] = {}
        self._offers: list[_Offer] = []
        self._followers: dict[int, Follower] = {}
        self._topics: dict[int, str] = {}
        self._turn = 0
        self._closed = False
        self._join(first=True)

    @property
    def group(self) -> str:
        return self._mine.group

    @property
    def member(self) -> str:
        return self._mine.member

    @property
    def assignment(self) -> dict[str, list[int]]:
        """The partitions this member owns now, by topic."""
        seen = self._look()
        owned: dict[str, list[int]] = {}
        for topic, partition in sorted(seen.owned):
            owned.setdefault(seen.topics[topic].name, []).append(partition)
        return owned

    def poll(self, timeout: float = 1.0, max_rows: int = MOST_ROWS) -> list[Batch]:
        """The next rows, at most a batch a topic; empty if none came within the time.

        Goes on from the last poll, whether that was committed or not. Also renews the lease, and takes the
        partitions of members that have died.
        """
        if max_rows < 1:
            raise BadOption(f"max_rows is a positive number, not {max_rows!r}")
        deadline = time.monotonic() + timeout
        while True:
            seen, pieces = self._fetch(max_rows)
            for topic, piece in pieces:
                self._note(topic, piece)
            found = [_batch(topic, piece) for topic, piece in pieces if piece.rows is not None]
            if found or not self._wait(seen, deadline):
                return found

    def __iter__(self) -> Iterator[Batch]:
        """Batches for ever, until it is closed; `commit` covers the batches taken out of the iterator."""
        while not self._closed:
            seen, pieces = self._fetch(MOST_ROWS, first_only=True)
            for topic, piece in pieces:
                self._note(topic, piece)
                if piece.rows is not None:
                    yield _batch(topic, piece)
                    break
            else:
                self._wait(seen, time.monotonic() + 1.0)

    def commit(self, tx: Transaction | None = None) -> None:
        """Store that everything polled so far is done; with a transaction, in its commit and only with it.

        `Fenced` if a partition of it has gone to another member: then nothing of it is stored (nor of the
        transaction), and the next poll starts again at the last commit.
        """
        self._settle()
        claims = dict(self._claims)
        if not claims:
            return
        names = dict(self._topics)

        def work(catalog_tx: CatalogTransaction, position: int = 0) -> None:
            groups.commit(catalog_tx, self._mine, claims, names)

        if tx is not None:
            tx.also(work)
            self._offers.append(_Offer(tx, claims))
            return
        try:
            self._catalog.write(work)
        except Fenced:
            self.rewind()
            raise
        self._committed(claims)

    def seek(self, topic: str, partition: int, offset: int) -> None:
        """Poll one of the own partitions from this offset on; what was polled of it stays uncommitted."""
        self._settle()
        self._adopt(self._look())
        found = self._log.reader.topic(topic)
        slot = (found.id, partition)
        if slot not in self._owned:
            raise Refused(
                f"partition {partition} of {found.name} does not belong to the member {self.member}",
                hint="see consumer.assignment",
                topic=found.name,
                partition=partition,
            )
        with self._catalog.read() as tx:
            held = progress.extent(tx, found)
            if not held.firsts[partition] <= offset <= held.ends[partition]:
                raise Expired(
                    f"partition {partition} of {found.name} has offsets {held.firsts[partition]}"
                    f" to {held.ends[partition]}, not {offset}",
                    topic=found.name,
                    offset=offset,
                )
            position = progress.locate(tx, found, partition, offset)
        self._claims.pop(slot, None)
        self._cursors[slot] = Cursor(offset, position)

    def rewind(self) -> None:
        """Forget what was polled and not committed: the next poll starts at the last commit."""
        self._claims.clear()
        self._offers.clear()
        self._owned.clear()
        self._cursors.clear()

    def close(self) -> None:
        """Leave the group; its partitions are free at once."""
        if not self._closed:
            self._closed = True
            self._catalog.write(lambda tx: groups.leave(tx, self._log.registry, self._mine))

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Consumer {self.member} of {self.group}>"

    def _join(self, *, first: bool = False) -> None:
        self._catalog.write(lambda tx: groups.join(tx, self._log.registry, self._mine, first=first))

    def _look(self) -> Look:
        """The group as it is; if the member is not what it should be in it, that is put right first."""
        if self._closed:
            raise EvertError(f"the consumer {self.member} is closed", hint="make another with db.consumer()")
        with self._catalog.read() as tx:
            seen = groups.look(tx, self._log.registry, self._mine)
        if seen.stale:
            self._join()
            with self._catalog.read() as tx:
                seen = groups.look(tx, self._log.registry, self._mine)
        return seen

    def _wait(self, seen: Look, deadline: float) -> bool:
        """Sleep until something is committed or the lease wants renewing; False if the time is over."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        self._catalog.wait(seen.version, min(left, self._mine.lease / 3_000_000))
        return True

    def _fetch(self, most: int, *, first_only: bool = False) -> tuple[Look, list[tuple[Topic, Piece]]]:
        """What comes next, not yet noted as given."""
        self._settle()
        seen = self._look()
        self._adopt(seen)
        order = sorted({topic for topic, _ in self._owned})
        self._turn += 1
        pieces: list[tuple[Topic, Piece]] = []
        for index in range(len(order)):
            topic = seen.topics[order[(self._turn + index) % len(order)]]
            piece = self._read(topic, seen, most)
            pieces.append((topic, piece))
            if piece.rows is not None:
                most -= piece.rows.num_rows
                if first_only or most <= 0:
                    break
        return seen, pieces

    def _adopt(self, seen: Look) -> None:
        """Start at the last commit in partitions that are new, and forget the ones that have gone."""
        for slot, owned in seen.owned.items():
            before = self._owned.get(slot)
            if before is None or before.token != owned.token:
                self._cursors[slot] = owned.committed
        for slot in self._cursors.keys() - seen.owned.keys():
            del self._cursors[slot]
        self._owned = dict(seen.owned)
        self._topics.update({topic: seen.topics[topic].name for topic, _ in self._owned})

    def _read(self, topic: Topic, seen: Look, most: int) -> Piece:
        cursors = {p: cursor for (number, p), cursor in self._cursors.items() if number == topic.id}
        held = seen.extents[topic.id]
        follower = self._followers.setdefault(topic.id, Follower(self._log.reader, topic))
        return progress.advance(self._catalog, self.group, topic, follower, cursors, held, most)

    def _note(self, topic: Topic, piece: Piece) -> None:
        """The piece is given: move the cursors, and claim what is to be committed."""
        moved = progress.after(piece.rows)
        for slot, cursor in list(self._cursors.items()):
            if slot[0] != topic.id:
                continue
            reached = replace(cursor, position=max(cursor.position, piece.complete))
            if slot[1] in moved:
                reached = replace(reached, next=moved[slot[1]])
            self._cursors[slot] = reached
            if moved and reached != cursor:
                self._claims[slot] = Claim(self._owned[slot].token, reached)

    def _settle(self) -> None:
        """Learn what became of the transactions that took claims along."""
        open_offers = []
        for offer in self._offers:
            if offer.transaction.position is not None:
                self._committed(offer.claims)
            elif offer.transaction.over:
                self.rewind()
                return
            else:
                open_offers.append(offer)
        self._offers = open_offers

    def _committed(self, claims: dict[Slot, Claim]) -> None:
        for slot, claim in claims.items():
            if self._claims.get(slot) == claim:
                del self._claims[slot]


def _names(log: EmbeddedLog, topics: str | Sequence[str]) -> tuple[str, ...]:
    """The subscription as it is stored: topics by their names, which must exist, and patterns as they are."""
    names = [topics] if isinstance(topics, str) else list(topics)
    if not names:
        raise BadOption("a consumer subscribes to a topic, several, or a pattern", hint='topics="click*"')
    return tuple(name if PATTERN.intersection(name) else log.reader.topic(name).name for name in names)


def _batch(topic: Topic, piece: Piece) -> Batch:
    assert piece.rows is not None
    positions = piece.rows.column(POSITION)
    return Batch(topic.name, positions[0].as_py(), positions[-1].as_py(), piece.rows)
