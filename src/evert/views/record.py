"""One row of the table `views`, as Python values."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import pyarrow as pa

Kind = Literal["sql", "function"]
RefreshPolicy = Literal["auto", "strict", "full"]
Emit = Literal["changes", "close", "late"]
"""What a view shows: every change; windows once they are closed; what came too late for those."""
State = Literal["building", "resuming", "live", "stopped", "absent"]

NOWHERE = -1
"""The position of a view that has no rows yet."""

COLUMNS = (
    'id, name, folded, replaces, feed, kind, query, options, "group", reads, columns, key, explanation,'
    " recomputes, fingerprint, state, position, at, error, created, held"
)


@dataclass(frozen=True)
class Options:
    """The settings of one view. Durations are in microseconds; None means without bound."""

    history: int | None = None
    interval: int | None = None
    key: tuple[str, ...] | None = None
    group: str | None = None
    """The group that was asked for."""
    refresh: RefreshPolicy = "auto"
    emit: Emit = "changes"
    since: int = NOWHERE
    """The position at which the view joined its group the last time: from then on their frontiers are its own."""
    begins: int = NOWHERE
    """The position from which on its feed is shown, if that is not the feed of the view it replaced."""
    comment: str | None = None
    """What a reader should know of it; another one makes no other view."""

    @property
    def asked(self) -> Options:
        """What decides about the view's rows."""
        return replace(self, since=NOWHERE, begins=NOWHERE, comment=None)

    @property
    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def load(cls, text: str) -> Options:
        values = json.loads(text)
        if values.get("key") is not None:
            values["key"] = tuple(values["key"])
        return cls(**values)


@dataclass(frozen=True)
class Read:
    """A relation that a view reads: the id of a topic, with the version of its schema, or of a view.

    A view that reads a table's versions may read its present rows too, which is another `Read`.

    `columns` are the ones on which the view's rows depend; None if that is not known.
    """

    kind: Literal["stream", "table", "versions", "view"]
    id: int
    name: str
    schema: int = 0
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Definition:
    """One row of the table `views`."""

    id: int
    name: str
    folded: str | None
    replaces: int | None
    feed: int
    kind: Kind
    query: str
    options: Options
    group: str
    reads: tuple[Read, ...]
    columns: pa.Schema | None
    key: tuple[str, ...] | None
    explanation: str
    recomputes: str | None
    fingerprint: str
    state: State
    position: int
    at: int
    error: dict[str, Any] | None = field(hash=False)
    created: int
    held: bool = False
    """Whether it is a replacement that waits until it is told to take its place."""

    @property
    def asked(self) -> tuple[Kind, str, Options]:
        """What the user said, without what became of it."""
        return self.kind, self.query, self.options.asked

    @property
    def current(self) -> bool:
        """Whether it has its name, and is not a replacement under construction."""
        return self.folded is not None

    @property
    def schema(self) -> pa.Schema:
        """The columns, once they are known."""
        assert self.columns is not None, f"the view {self.name} is not planned yet"
        return self.columns


def parsed(row: tuple[Any, ...]) -> Definition:
    """A definition from the columns `COLUMNS`."""
    (number, name, folded_name, replaces, feed, kind, query, options, group, reads, columns, key) = row[:12]
    (explanation, recomputes, fingerprint, state, position, at, error, created, held) = row[12:]
    return Definition(
        id=number,
        name=name,
        folded=folded_name,
        replaces=replaces,
        feed=feed,
        kind=kind,
        query=query,
        options=Options.load(options),
        group=group,
        reads=tuple(_read(**read) for read in json.loads(reads)),
        columns=None if columns is None else _schema(columns),
        key=None if key is None else tuple(json.loads(key)),
        explanation=explanation,
        recomputes=recomputes,
        fingerprint=fingerprint,
        state=state,
        position=position,
        at=at,
        error=None if error is None else json.loads(error),
        created=created,
        held=bool(held),
    )


def _read(columns: list[str] | None = None, **values: Any) -> Read:
    return Read(**values, columns=None if columns is None else tuple(columns))


@lru_cache(maxsize=1024)
def _schema(data: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(data))
