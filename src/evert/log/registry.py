"""The topics in the catalog: create, alter, drop, look up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import Any

from evert.catalog import Catalog, Transaction
from evert.errors import Refused, SchemaChangeRefused, TopicExists, UnknownTopic, ViewExists
from evert.log import clocks, watermarks
from evert.log.files import let_go, to_garbage
from evert.log.names import check_name, folded
from evert.log.topic import LATE, Options, Topic, clocked, late_topic, timed
from evert.schema.schema import Schema, check_evolution

_SELECT = (
    "SELECT t.id, t.name, t.kind, t.key, t.partitions, t.options, t.schema, t.created, s.ddl"
    " FROM topics t JOIN schemas s ON s.topic = t.id AND s.version = t.schema"
)


class Registry:
    """The topics of one catalog. Rows of the catalog that were read before are not parsed again."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._parsed: dict[tuple[Any, ...], Topic] = {}
        self._older: dict[tuple[int, int, int], Topic] = {}
        self.refuse_if_used: Callable[[Transaction, Topic, str], None] = lambda tx, topic, action: None

    def find(self, tx: Transaction, name: str) -> Topic:
        row = tx.one(f"{_SELECT} WHERE t.folded = ?", folded(name))
        if row is None:
            names = [known for (known,) in tx.all("SELECT name FROM topics ORDER BY name")]
            raise unknown(name, names)
        return self._topic(row)

    def current(self, tx: Transaction, topic: Topic) -> Topic:
        """The same topic as it is defined now; not another one that has its name."""
        row = tx.one(f"{_SELECT} WHERE t.id = ? AND t.created = ?", topic.id, topic.created)
        if row is None:
            raise UnknownTopic(f"the topic {topic.name} was dropped", topic=topic.name)
        return self._topic(row)

    def all(self, tx: Transaction) -> dict[str, Topic]:
        return {topic.name: topic for topic in map(self._topic, tx.all(f"{_SELECT} ORDER BY t.name"))}

    def at_version(self, tx: Transaction, topic: Topic, version: int) -> Topic:
        """The topic as it was when rows of this schema version were written."""
        if version == topic.version:
            return topic
        known = self._older.get((topic.id, topic.created, version))
        if known is None:
            row = tx.one("SELECT ddl FROM schemas WHERE topic = ? AND version = ?", topic.id, version)
            if row is None:
                raise UnknownTopic(f"the topic {topic.name} was dropped", topic=topic.name)
            known = replace(topic, schema=Schema.parse(row[0]), version=version)
            self._older[(topic.id, topic.created, version)] = known
        return known

    def create(self, topic: Topic) -> Topic:
        def work(tx: Transaction) -> Topic:
            row = tx.one(f"{_SELECT} WHERE t.folded = ?", folded(topic.name))
            if row is not None:
                return same_or_refused(self._topic(row), topic)
            _insert(tx, topic)
            return self._with_late(tx, self.find(tx, topic.name))

        return self._catalog.write(work)

    def _with_late(self, tx: Transaction, topic: Topic) -> Topic:
        """A topic, after the stream for its stragglers was made, if it sets any aside."""
        if topic.options.sets_aside:
            wanted = late_topic(topic)
            check_name(wanted.name)
            row = tx.one(f"{_SELECT} WHERE t.folded = ?", folded(wanted.name))
            if row is None:
                _insert(tx, wanted)
            else:
                there = self._topic(row)
                if there.kind != "stream":
                    raise TopicExists(
                        f"{there.name} is a table, and the stragglers of {topic.name} would go there",
                        hint="drop the table, or choose another name for the stream",
                        topic=there.name,
                    )
                self._evolve(tx, there, wanted.schema)
        return topic

    @staticmethod
    def _evolve(tx: Transaction, topic: Topic, wanted: Schema) -> None:
        check_evolution(topic.schema, wanted, topic.key)
        if wanted != topic.schema:
            tx.run("INSERT INTO schemas VALUES (?, ?, ?)", topic.id, topic.version + 1, wanted.ddl())
            tx.run("UPDATE topics SET schema = ? WHERE id = ?", topic.version + 1, topic.id)

    def alter(self, name: str, schema: str | None, options: Mapping[str, Any] | None) -> Topic:
        def work(tx: Transaction) -> Topic:
            topic = self.find(tx, name)
            wanted = topic.schema if schema is None else Schema.parse(schema)
            changed = Options.make(topic.kind, options or {}, topic.options)
            wanted = clocked(wanted, changed, topic.schema)
            changed = timed(wanted, changed)
            _check_horizon(tx, topic, changed)
            if changed.source != topic.options.source:
                watermarks.retire(tx, topic.id)
            if changed.times != topic.options.times:
                clocks.forget(tx, topic.id)
            if options:
                tx.run("UPDATE topics SET options = ? WHERE id = ?", changed.text, topic.id)
            self._evolve(tx, topic, wanted)
            return self._with_late(tx, self.find(tx, name))

        return self._catalog.write(work)

    def drop(self, name: str) -> list[Topic]:
        """Drop a topic, and with it the stream of its stragglers; those that are gone."""

        def work(tx: Transaction) -> list[Topic]:
            topic = self.find(tx, name)
            lowered = folded(topic.name)
            owner = tx.one(f"{_SELECT} WHERE t.folded = ?", lowered.removesuffix(LATE))
            if lowered.endswith(LATE) and owner is not None and self._topic(owner).options.sets_aside:
                raise Refused(
                    f"the stragglers of {self._topic(owner).name} go into {topic.name}",
                    hint='alter the stream first: late="correct"; one with forget_after needs it always',
                    topic=topic.name,
                )
            gone = [topic]
            if topic.options.sets_aside:
                gone.append(self.find(tx, topic.name + LATE))
            for one in gone:
                self._drop(tx, one)
            return gone

        return self._catalog.write(work)

    def _drop(self, tx: Transaction, topic: Topic) -> None:
        self.refuse_if_used(tx, topic, "dropped")
        watermarks.forget(tx, topic.id)
        clocks.forget(tx, topic.id)
        for (file,) in tx.all("SELECT file FROM segments WHERE topic = ?", topic.id):
            to_garbage(tx, file)
        spilled = tx.all("SELECT DISTINCT file FROM tail WHERE topic = ? AND file IS NOT NULL", topic.id)
        for table in ("segments", "tail", "offsets", "schemas", "assignments", "consumed", "deliveries"):
            tx.run(f"DELETE FROM {table} WHERE topic = ?", topic.id)
        tx.run("DELETE FROM topics WHERE id = ?", topic.id)
        let_go(tx, (file for (file,) in spilled))

    def _topic(self, row: tuple[Any, ...]) -> Topic:
        topic = self._parsed.get(row)
        if topic is None:
            number, name, kind, key, partitions, options, version, created, ddl = row
            topic = Topic(
                number,
                name,
                kind,
                Schema.parse(ddl),
                tuple(json.loads(key)),
                partitions,
                Options.load(options),
                version,
                created,
            )
            self._parsed[row] = topic
        return topic


def _check_horizon(tx: Transaction, topic: Topic, changed: Options) -> None:
    """What views have forgotten they cannot count again, so a stream stays with the horizon that it has."""
    if watermarks.horizon(tx, topic.id) == watermarks.LEAST:
        return
    if changed.forget_after is None or changed.event_time != topic.options.event_time:
        name = "forget_after" if changed.forget_after is None else "event_time"
        raise Refused(
            f"views of {topic.name} have forgotten what is before its horizon, so its {name} stays",
            hint="a longer forget_after is possible, or a new stream",
            topic=topic.name,
        )


def _insert(tx: Transaction, topic: Topic) -> None:
    view = tx.one("SELECT name FROM views WHERE folded = ?", folded(topic.name))
    if view is not None:
        raise ViewExists(
            f"the view {view[0]} exists, so a topic cannot be named {topic.name}",
            hint="choose another name: topics and views share their names",
            view=view[0],
        )
    tx.run(
        "INSERT INTO topics (name, folded, kind, key, partitions, options, schema, created)"
        " VALUES (?, ?, ?, ?, ?, ?, 1, ?)",
        topic.name,
        folded(topic.name),
        topic.kind,
        json.dumps(topic.key),
        topic.partitions,
        topic.options.text,
        tx.now,
    )
    (number,) = tx.one("SELECT id FROM topics WHERE folded = ?", folded(topic.name)) or (0,)
    tx.run("INSERT INTO schemas VALUES (?, 1, ?)", number, topic.schema.ddl())
    for partition in range(topic.partitions):
        tx.run("INSERT INTO offsets VALUES (?, ?, 0, 0)", number, partition)


def same_or_refused(there: Topic, wanted: Topic) -> Topic:
    """Creating what is already there is fine, and so is declaring what it was before it evolved.

    Anything else under the same name is refused. Options that the declaration leaves out are not compared.
    """
    if there.name != wanted.name:
        raise TopicExists(
            f"{wanted.name} differs from the existing topic {there.name} in case only",
            hint="choose another name: names are compared without regard to case",
            topic=there.name,
        )
    asked = {
        f.name: getattr(wanted.options, f.name) for f in fields(Options) if _is_set(wanted.options, f.name)
    }
    for what, old, new in (
        ("kind", there.kind, wanted.kind),
        ("key", there.key, wanted.key),
        ("number of partitions", there.partitions, wanted.partitions),
        ("options", {name: getattr(there.options, name) for name in asked}, asked),
    ):
        if old != new:
            hint = "change it with alter()" if what == "options" else "choose another name"
            raise TopicExists(
                f"the topic {there.name} exists with another {what}: {old} and not {new}",
                hint=hint,
                topic=there.name,
            )
    try:
        check_evolution(wanted.given, there.given if wanted.own else there.schema, there.key)
    except SchemaChangeRefused as error:
        raise TopicExists(
            f"the topic {there.name} exists with the schema {there.schema.ddl()}",
            hint="change the topic, in Python with alter(), or with `evert topics alter`",
            topic=there.name,
        ) from error
    return there


def _is_set(options: Options, name: str) -> bool:
    return bool(getattr(options, name) != getattr(Options(), name))


def unknown(name: str, names: list[str]) -> UnknownTopic:
    close = get_close_matches(name, names, n=1)
    if close:
        hint = f"did you mean {close[0]}?"
    else:
        hint = f"there are {', '.join(names[:20])}" if names else "create one with db.stream() or db.table()"
    return UnknownTopic(f"there is no topic {name!r}", hint=hint)
