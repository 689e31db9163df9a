"""Consumer groups: who is alive, who owns which partition, and how far each partition is read.

    poll ──> still a member, nobody died, no new topic? ──no──> one transaction: drop the dead, spread again
                 │ yes
                 └──> rows of the own partitions from the cursor on
    commit ──> one transaction: every partition still ours (member and token)? store all, or nothing: Fenced

A token is the group's generation at the time the partition got its owner. Generations never repeat, so what
was read under an older ownership can never be committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from evert.catalog import Catalog, Transaction
from evert.errors import Fenced, NotFound, Refused
from evert.log import deliveries, progress
from evert.log.assignment import Slot, spread
from evert.log.follower import Cursor, Extent
from evert.log.names import folded
from evert.log.progress import Start, Target
from evert.log.reader import LogReader
from evert.log.registry import Registry
from evert.log.topic import Topic


@dataclass(frozen=True)
class Subscription:
    """One consumer's part in a group. `session` tells two consumers of the same member name apart."""

    group: str
    member: str
    session: str
    topics: tuple[str, ...]
    start: Start
    lease: int


@dataclass(frozen=True)
class Owned:
    """A partition that a member has, under a token, and what the group has committed of it."""

    token: int
    committed: Cursor


@dataclass(frozen=True)
class Look:
    """What a member sees of its group in one snapshot. `stale`: it has to join (again) first."""

    version: int
    stale: bool
    owned: Mapping[Slot, Owned]
    topics: Mapping[int, Topic]
    extents: Mapping[int, Extent]


@dataclass(frozen=True)
class Claim:
    """What a member wants committed of one partition, and the token under which it was read."""

    token: int
    cursor: Cursor


@dataclass(frozen=True)
class MemberInfo:
    """A live member; `lease_left` is in seconds."""

    member: str
    assignment: dict[str, list[int]]
    lease_left: float


@dataclass(frozen=True)
class GroupInfo:
    """A group, how it reads (`consumer`, `queue`, `ordered queue`), its live members and its topics."""

    group: str
    kind: str
    members: tuple[MemberInfo, ...]
    topics: tuple[str, ...]


def matching(topics: Iterable[Topic], patterns: Iterable[str]) -> list[Topic]:
    """The topics that a list of names and glob patterns stands for."""
    wanted = [folded(pattern) for pattern in patterns]
    return [topic for topic in topics if any(fnmatchcase(folded(topic.name), pattern) for pattern in wanted)]


def look(tx: Transaction, registry: Registry, mine: Subscription) -> Look:
    (version,) = tx.one("SELECT version FROM state") or (0,)
    topics = {topic.id: topic for topic in registry.all(tx).values()}
    stale, subscribed = _membership(tx, mine)
    sql = (
        'SELECT a.topic, a."partition", a.member, a.token, c.next, c.position FROM assignments a'
        ' JOIN consumed c ON c."group" = a."group" AND c.topic = a.topic AND c."partition" = a."partition"'
        ' WHERE a."group" = ?'
    )
    rows = tx.all(sql, mine.group)
    wanted = {
        (topic.id, partition)
        for topic in matching(topics.values(), subscribed)
        for partition in range(topic.partitions)
    }
    owned = {
        (topic, partition): Owned(token, Cursor(next_, position))
        for topic, partition, member, token, next_, position in rows
        if member == mine.member and topic in topics
    }
    return Look(
        version,
        stale or wanted != {(row[0], row[1]) for row in rows},
        owned,
        topics,
        {topic: progress.extent(tx, topics[topic]) for topic in sorted({topic for topic, _ in owned})},
    )


def _membership(tx: Transaction, mine: Subscription) -> tuple[bool, set[str]]:
    """Whether the members are out of date, and what they subscribe to together."""
    stale, there = False, False
    subscribed: set[str] = set()
    sql = 'SELECT member, session, topics, until FROM members WHERE "group" = ?'
    for member, session, topics, until in tx.all(sql, mine.group):
        subscribed.update(json.loads(topics))
        if member == mine.member:
            there = True
            _check_session(mine, session)
            stale |= until - tx.now < mine.lease * 2 // 3
        else:
            stale |= until <= tx.now
    return stale or not there, subscribed


def join(tx: Transaction, registry: Registry, mine: Subscription, *, first: bool = False) -> None:
    """Become or stay a member, drop the dead, and spread the partitions over who is there.

    The `first` time it takes over a member's name from whoever has it, and begins the topics that are there
    where the subscription says. Topics that come later are read from their beginning.
    """
    sql = 'SELECT session FROM members WHERE "group" = ? AND member = ?'
    before = tx.one(sql, mine.group, mine.member)
    if before is not None and not first:
        _check_session(mine, before[0])
    tx.run(
        'INSERT INTO members ("group", member, session, topics, until) VALUES (?, ?, ?, ?, ?)'
        ' ON CONFLICT ("group", member) DO UPDATE'
        " SET session = excluded.session, topics = excluded.topics, until = excluded.until",
        mine.group,
        mine.member,
        mine.session,
        json.dumps(mine.topics),
        tx.now + mine.lease,
    )
    tx.run('DELETE FROM members WHERE "group" = ? AND until <= ?', mine.group, tx.now)
    renewed = mine.member if before is not None and before[0] != mine.session else None
    if first:
        for topic in matching(registry.all(tx).values(), mine.topics):
            progress.begin(tx, mine.group, topic, "consumer", mine.start)
    _spread(tx, registry, mine.group, renewed)


def leave(tx: Transaction, registry: Registry, mine: Subscription) -> None:
    """Give everything up at once; nothing happens if another consumer has taken over the member's name."""
    sql = 'DELETE FROM members WHERE "group" = ? AND member = ? AND session = ?'
    if tx.run(sql, mine.group, mine.member, mine.session):
        _spread(tx, registry, mine.group, None)


def commit(
    tx: Transaction, mine: Subscription, claims: Mapping[Slot, Claim], names: Mapping[int, str]
) -> None:
    """Store how far the partitions are read, if all of them are still this member's under these tokens."""
    sql = 'SELECT topic, "partition", token FROM assignments WHERE "group" = ? AND member = ?'
    tokens = {(topic, partition): token for topic, partition, token in tx.all(sql, mine.group, mine.member)}
    for slot, claim in claims.items():
        if tokens.get(slot) != claim.token:
            name = names.get(slot[0], str(slot[0]))
            raise Fenced(
                f"partition {slot[1]} of {name} no longer belongs to {mine.member} of the group {mine.group}",
                hint="nothing was committed; poll again, it starts at the last commit",
                topic=name,
                group=mine.group,
                member=mine.member,
                partition=slot[1],
            )
    for (topic, partition), claim in claims.items():
        progress.store(tx, mine.group, topic, {partition: claim.cursor})


def _check_session(mine: Subscription, session: str) -> None:
    if session != mine.session:
        raise Fenced(
            f"another consumer has joined the group {mine.group} as {mine.member}",
            hint="close this one, or give each consumer a member name of its own",
            group=mine.group,
            member=mine.member,
        )


def _spread(tx: Transaction, registry: Registry, group: str, renewed: str | None) -> None:
    """Assign every wanted partition; what changes hands gets a new token, and all of `renewed` does."""
    members = tx.all('SELECT member, topics FROM members WHERE "group" = ? ORDER BY member', group)
    wanted: dict[Slot, tuple[str, ...]] = {}
    topics = list(registry.all(tx).values())
    for member, patterns in members:
        for topic in matching(topics, json.loads(patterns)):
            if (topic.id, 0) not in wanted:
                progress.begin(tx, group, topic, "consumer", "earliest")
            for partition in range(topic.partitions):
                slot = (topic.id, partition)
                wanted[slot] = (*wanted.get(slot, ()), member)
    sql = 'SELECT topic, "partition", member FROM assignments WHERE "group" = ?'
    owners = {(topic, partition): member for topic, partition, member in tx.all(sql, group)}
    assigned = spread(owners, wanted)
    moved = {s: m for s, m in assigned.items() if owners.get(s) != m or m == renewed}
    ended = owners.keys() - assigned.keys()
    if not moved and not ended:
        return
    token = _next_generation(tx, group)
    for slot in ended:
        tx.run('DELETE FROM assignments WHERE "group" = ? AND topic = ? AND "partition" = ?', group, *slot)
    for slot, member in moved.items():
        tx.run(
            "INSERT INTO assignments VALUES (?, ?, ?, ?, ?)"
            ' ON CONFLICT ("group", topic, "partition") DO UPDATE'
            " SET member = excluded.member, token = excluded.token",
            group,
            *slot,
            member,
            token,
        )


def _next_generation(tx: Transaction, group: str) -> int:
    tx.run(
        'INSERT INTO generations VALUES (?, 1) ON CONFLICT ("group")'
        " DO UPDATE SET generation = generations.generation + 1",
        group,
    )
    (generation,) = tx.one('SELECT generation FROM generations WHERE "group" = ?', group) or (0,)
    return int(generation)


def infos(tx: Transaction, registry: Registry) -> list[GroupInfo]:
    """Every group that has read something or has a live member."""
    names = {topic.id: topic.name for topic in registry.all(tx).values()}
    members: dict[str, list[MemberInfo]] = {}
    sql = 'SELECT "group", member, until FROM members WHERE until > ? ORDER BY "group", member'
    for group, member, until in tx.all(sql, tx.now):
        sql = 'SELECT topic, "partition" FROM assignments WHERE "group" = ? AND member = ? ORDER BY 1, 2'
        owned: dict[str, list[int]] = {}
        for topic, partition in tx.all(sql, group, member):
            owned.setdefault(names[topic], []).append(partition)
        members.setdefault(group, []).append(MemberInfo(member, owned, (until - tx.now) / 1_000_000))
    kinds: dict[str, set[str]] = {group: {"consumer"} for group in members}
    topics: dict[str, list[str]] = {}
    for group, topic, kind in tx.all(
        'SELECT DISTINCT "group", topic, kind FROM consumed ORDER BY "group", topic'
    ):
        kinds.setdefault(group, set()).add(kind)
        topics.setdefault(group, []).append(names[topic])
    return [
        GroupInfo(
            group,
            ", ".join(sorted(kinds[group])),
            tuple(members.get(group, ())),
            tuple(topics.get(group, ())),
        )
        for group in sorted(kinds)
    ]


def reset(
    catalog: Catalog,
    registry: Registry,
    reader: LogReader,
    group: str,
    to: Target,
    topic: str | None,
    force: bool,
) -> None:
    """Move a group's cursors. Live members stop it, unless forced: then they are fenced.

    In a queue, messages and dead letters that lie before the new cursor stay as they are; the ones after it
    are read from the log and delivered anew.
    """
    with catalog.read() as tx:
        known = {t.id: t for t in registry.all(tx).values()}
        chosen = [known[number] for number, _ in progress.topics_of(tx, group)]
        if topic is not None:
            asked = registry.find(tx, topic).id
            chosen = [t for t in chosen if t.id == asked]
        if not chosen:
            what = f"the group {group} has read nothing" + (f" of {topic}" if topic else "")
            raise NotFound(what, hint="see the groups with `evert groups`", group=group)
        extents = {t.id: progress.extent(tx, t) for t in chosen}
    moved = {t.id: progress.targets(reader, t, extents[t.id], to) for t in chosen}

    def work(tx: Transaction) -> None:
        live = tx.all('SELECT member FROM members WHERE "group" = ? AND until > ?', group, tx.now)
        flying = sum(deliveries.forget(tx, group, number, cursors) for number, cursors in moved.items())
        if (live or flying) and not force:
            who = f"{len(live)} live members" if live else f"{flying} messages in flight"
            raise Refused(
                f"the group {group} has {who}",
                hint="stop its consumers first, or reset with force, which fences them",
                group=group,
            )
        for table in ("members", "assignments"):
            tx.run(f'DELETE FROM {table} WHERE "group" = ?', group)
        _next_generation(tx, group)
        for number, cursors in moved.items():
            progress.store(tx, group, number, cursors)

    catalog.write(work)
