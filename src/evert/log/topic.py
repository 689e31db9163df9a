"""A topic as the catalog defines it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from evert.duration import microseconds
from evert.errors import BadOption, BadSchema
from evert.log.names import check_name
from evert.schema.partition import check_key
from evert.schema.schema import Schema

Kind = Literal["stream", "table"]
WhenFull = Literal["buffer", "block", "drop"]
WhatViewsDo = Literal["keep", "forget"]
WhenLate = Literal["correct", "drop"]

POSITION, PARTITION, OFFSET, INGESTED_AT, DELETED, WATERMARK = (
    "_position",
    "_partition",
    "_offset",
    "_ingested_at",
    "_deleted",
    "_watermark",
)
UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
MOST_PARTITIONS = 1024
LATE = ".late"
"""What the name of the stream ends in that keeps another one's stragglers."""
CORRECTED, CLOCK_ERROR = OWN = "corrected_time", "clock_error"
"""The columns that Evert fills itself in a stream whose devices say what their clocks showed."""
DURATIONS = {
    *("retain", "history", "tombstones", "block_timeout"),
    *("lateness", "idle_after", "forget_after", "min_delay"),
}
LONGEST = 2**60
"""No duration is longer, in microseconds: some 36,000 years."""
_NEVER_NONE = {"lateness", "late", "min_delay"}
_TABLES_ONLY = {"history", "tombstones"}
_CLOCKS = {"occurred", "sent", "received", "min_delay"}
_STREAMS_ONLY = {"lateness", "late", "source", "idle_after", "forget_after", *_CLOCKS}
_OWN_TYPES = "corrected_time TIMESTAMP, clock_error DOUBLE"


@dataclass(frozen=True)
class Options:
    """The settings of one topic. Durations are in microseconds, sizes in bytes, None means without bound."""

    retain: int | None = None
    retain_bytes: int | None = None
    history: int | None = None
    tombstones: int = 24 * 3_600_000_000
    when_full: WhenFull = "buffer"
    capacity: int | None = None
    max_bytes: int | None = None
    block_timeout: int = 30_000_000
    views: WhatViewsDo = "keep"
    event_time: str | None = None
    lateness: int = 0
    late: WhenLate = "correct"
    source: str | None = None
    idle_after: int | None = None
    forget_after: int | None = None
    occurred: str | None = None
    sent: str | None = None
    received: str | None = None
    min_delay: int = 100_000
    comment: str | None = None

    @classmethod
    def make(cls, kind: Kind, given: Mapping[str, Any], base: Options | None = None) -> Options:
        """Options as a user wrote them, checked; `base` gives the ones that are not mentioned."""
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise BadOption(
                    f"no topic option is named {name!r}", hint=f"there are {', '.join(sorted(known))}"
                )
            if name in _TABLES_ONLY and kind != "table":
                raise BadOption(f"{name} is an option of tables: a stream keeps every row")
            if name in _STREAMS_ONLY and kind != "stream":
                raise BadOption(f"{name} is an option of streams: the rows of a table replace each other")
            if name == "views" and value == "forget" and kind == "table":
                raise BadOption("views='forget' is for streams: a row of a table goes when it is deleted")
            if name in DURATIONS and value is not None:
                value = microseconds(value)
                if value > LONGEST:
                    raise BadOption(f"{name} is longer than time itself: {given[name]!r}")
            if name in _NEVER_NONE and value is None:
                value = getattr(cls(), name)
            values[name] = value
        options = replace(base or cls(), **values)
        options._check()
        return options

    def _check(self) -> None:
        if self.when_full not in ("buffer", "block", "drop"):
            raise BadOption(f"when_full is buffer, block or drop, not {self.when_full!r}")
        if self.views not in ("keep", "forget"):
            raise BadOption(f"views is keep or forget, not {self.views!r}")
        if self.late not in ("correct", "drop"):
            raise BadOption(f"late is correct or drop, not {self.late!r}")
        if self.comment is not None and not isinstance(self.comment, str):
            raise BadOption(f"a comment is a text, not {self.comment!r}")
        self._check_clocks()
        needy = _STREAMS_ONLY - _CLOCKS - ({"source"} if self.clocks else set())
        for name in sorted(needy):
            if self.event_time is None and getattr(self, name) != getattr(Options(), name):
                raise BadOption(f"{name} needs event_time=, the column that says when an event happened")
        if self.when_full != "buffer" and self.capacity is None:
            raise BadOption(
                f"when_full={self.when_full!r} needs capacity=, the rows a consumer may be behind"
            )
        for name in ("retain_bytes", "capacity", "max_bytes"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value <= 0):
                raise BadOption(f"{name} is a positive whole number, not {value!r}")

    def _check_clocks(self) -> None:
        if not self.clocks:
            for name in sorted(_CLOCKS):
                if getattr(self, name) != getattr(Options(), name):
                    raise BadOption(
                        f"{name} needs occurred= and sent=, the columns with the times of the device's clock"
                    )
        elif self.source is None:
            raise BadOption("occurred and sent need source=, the column that says whose clock they are of")

    @property
    def clocks(self) -> bool:
        """Whether times of devices are corrected by what their clocks are off."""
        return self.occurred is not None and self.sent is not None

    @property
    def times(self) -> tuple[str | int | None, ...]:
        """All that decides what the clock of a device is off by."""
        return self.source, self.occurred, self.sent, self.received, self.min_delay

    @property
    def time(self) -> tuple[str | int | None, ...]:
        """All that decides what is late."""
        return self.event_time, self.lateness, self.late, self.idle_after, self.forget_after, *self.times

    @property
    def sets_aside(self) -> bool:
        """Whether stragglers are kept in a stream of their own."""
        return self.late == "drop" or self.forget_after is not None

    @cached_property
    def text(self) -> str:
        """The options as the catalog stores them."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def load(cls, text: str) -> Options:
        return cls(**json.loads(text))


@dataclass(frozen=True)
class Topic:
    """A named sequence of rows with one schema: a stream of facts, or a table's changes by key."""

    id: int
    name: str
    kind: Kind
    schema: Schema
    key: tuple[str, ...] = ()
    partitions: int = 1
    options: Options = field(default_factory=Options)
    version: int = 1
    created: int = 0

    @cached_property
    def stored(self) -> pa.Schema:
        """The columns as they are stored: the user's, whether the row deletes, and its partition.

        A delete has no values but its key's, so nothing but the key is required of a stored row of a table.
        """
        fields_ = list(self.schema.arrow)
        if self.kind == "table":
            fields_ = [f if f.name in self.key else f.with_nullable(True) for f in fields_]
            fields_.append(pa.field(DELETED, pa.bool_(), nullable=False))
        if self.partitions > 1:
            fields_.append(pa.field(PARTITION, pa.int32(), nullable=False))
        return pa.schema(fields_)

    @property
    def own(self) -> tuple[str, ...]:
        """The columns that Evert fills itself."""
        return OWN if self.options.clocks else ()

    @cached_property
    def given(self) -> Schema:
        """The columns that those who append give."""
        if not self.own:
            return self.schema
        return Schema(tuple(column for column in self.schema.columns if column.name not in self.own))

    @property
    def system_fields(self) -> list[pa.Field]:
        """The columns that a reader gets beside the user's."""
        return [
            pa.field(POSITION, pa.int64(), nullable=False),
            pa.field(PARTITION, pa.int32(), nullable=False),
            pa.field(OFFSET, pa.int64(), nullable=False),
            pa.field(INGESTED_AT, UTC_MICROSECONDS, nullable=False),
            *([pa.field(DELETED, pa.bool_(), nullable=False)] if self.kind == "table" else []),
        ]

    def readable(self, columns: Sequence[str] | None) -> pa.Schema:
        """The schema of what a reader of these columns gets."""
        chosen = self.schema.names if columns is None else [self.schema.column(name).name for name in columns]
        stored = self.stored
        return pa.schema([stored.field(name) for name in chosen] + self.system_fields)


def define(
    name: str,
    kind: Kind,
    schema: str | Schema,
    *,
    key: str | Sequence[str] | None = None,
    partitions: int = 1,
    options: Mapping[str, Any] | None = None,
) -> Topic:
    """A checked definition, not yet created."""
    parsed = schema if isinstance(schema, Schema) else Schema.parse(schema)
    made = Options.make(kind, options or {})
    parsed = clocked(parsed, made)
    columns = (key,) if isinstance(key, str) else tuple(key or ())
    columns = tuple(parsed.column(column).name for column in columns)
    if kind == "table" and not columns:
        raise BadSchema(
            f"the table {name} needs a key", hint='name its columns: key="id" or key=("shop", "id")'
        )
    check_key(parsed, columns)
    if not isinstance(partitions, int) or not 1 <= partitions <= MOST_PARTITIONS:
        raise BadOption(f"a topic has 1 to {MOST_PARTITIONS} partitions, not {partitions!r}")
    made = timed(parsed, made)
    if made.clocks and (taken := set(columns) & set(OWN)):
        raise BadSchema(f"{taken.pop()} is filled by Evert, and cannot be part of the key")
    name = check_name(name)
    if made.sets_aside:
        check_name(name + LATE)
    return Topic(id=0, name=name, kind=kind, schema=parsed, key=columns, partitions=partitions, options=made)


def timed(schema: Schema, options: Options) -> Options:
    """The options, with the names that the schema has for the columns that say when and who."""
    for name in ("event_time", "occurred", "sent", "received"):
        given = getattr(options, name)
        if given is None:
            continue
        column = schema.column(given)
        if not pa.types.is_timestamp(column.type.arrow):
            raise BadOption(
                f"{name} is a TIMESTAMP or TIMESTAMP_NTZ, and {column.name} is {column.type.ddl()}"
            )
        if name != "event_time" and options.clocks and column.name in OWN:
            raise BadOption(f"{name} is a column that is appended, and {column.name} is filled by Evert")
        names: dict[str, Any] = {name: column.name}
        options = replace(options, **names)
    if options.source is not None:
        column = schema.column(options.source)
        kind = column.type.arrow
        if not (pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise BadOption(
                f"source is a column of texts or whole numbers, and {column.name} is {column.type.ddl()}"
            )
        options = replace(options, source=column.name)
    return options


def clocked(schema: Schema, options: Options, before: Schema | None = None) -> Schema:
    """The schema with the columns that Evert fills itself: where they were `before`, or at the end."""
    if not options.clocks:
        return schema
    own = Schema.parse(_OWN_TYPES).columns
    there = [column for column in schema.columns if column.name.lower() in OWN]
    if there:
        wanted = [(column.name, column.type, column.nullable) for column in own]
        if [(column.name, column.type, column.nullable) for column in there] == wanted:
            return schema
        raise BadSchema(
            f"{there[0].name} is a column that Evert adds itself, as {_OWN_TYPES}",
            hint="leave it out, or give yours another name",
            column=there[0].name,
        )
    place = len(schema.columns)
    if before is not None and CORRECTED in before.names:
        ahead = [name for name in before.names[: before.names.index(CORRECTED)] if name in schema.names]
        place = schema.names.index(ahead[-1]) + 1 if ahead else 0
    return Schema((*schema.columns[:place], *own, *schema.columns[place:]))


def late_topic(topic: Topic) -> Topic:
    """The stream that keeps the stragglers of another, not yet created."""
    options = Options(retain=topic.options.retain, retain_bytes=topic.options.retain_bytes)
    return Topic(id=0, name=topic.name + LATE, kind="stream", schema=topic.schema, options=options)
