"""A view as its readers hold it: rows, look-ups, history and changes. No JVM is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from evert.catalog import Transaction
from evert.errors import Expired, TimedOut
from evert.views import definition, reader
from evert.views.definition import Definition
from evert.views.feed import Change
from evert.views.feed import follow as _follow
from evert.views.frontier import begin, frontier
from evert.views.reader import Reader


@dataclass(frozen=True)
class Answer:
    """A view's rows at a position."""

    position: int
    rows: pa.Table


class Past:
    """A view's rows as they were at a position: the last epoch at or before the one that was asked for."""

    def __init__(self, view: Definition, position: int, load: Callable[[], pa.Table]) -> None:
        self._view = view
        self._load = load
        self._weighted: pa.Table | None = None
        self.name = view.name
        self.position = position

    @property
    def schema(self) -> pa.Schema:
        return self._view.schema

    def weighted(self) -> pa.Table:
        """Every row once, with its weight as the last column."""
        if self._weighted is None:
            self._weighted = self._load()
        return self._weighted

    def arrow(self) -> pa.Table:
        return reader.repeated(self.weighted(), self._view.schema)

    def rows(self) -> list[dict[str, Any]]:
        return reader.listed(self.arrow())

    def pandas(self) -> Any:
        return self.arrow().to_pandas()

    def count(self) -> int:
        return reader.total(self.weighted())

    def get(self, *key: Any) -> dict[str, Any] | None:
        return _single(reader.rows_of_key(self._view, self.weighted(), reader.key_arrays(self._view, key)))

    def answer(self) -> Answer:
        return Answer(self.position, self.arrow())

    def __repr__(self) -> str:
        return f"<Past {self.name} at {self.position}>"


class View:
    """A query whose answer is kept. What is asked of it is looked up anew every time.

    A view that stopped never gives an answer as if it were up to date: it raises `Stopped`. One that is still
    being built raises `NotReady`.
    """

    def __init__(self, views: Reader, name: str, function: Callable[[Any], Any] | None = None) -> None:
        self._views = views
        self.name = name
        self.function = function

    @property
    def definition(self) -> Definition:
        return self._views.definition(self.name)

    @property
    def query(self) -> str:
        return self.definition.query

    @property
    def columns(self) -> pa.Schema | None:
        """The columns, once Spark has seen the query."""
        return self.definition.columns

    @property
    def key(self) -> tuple[str, ...] | None:
        return self.definition.key

    @property
    def group(self) -> str:
        return self.definition.group

    @property
    def state(self) -> str:
        """`building`, `live`, `stopped`, or `resuming` when it goes on after that; `absent` if the code of its
        function cannot be found.
        """
        return self.definition.state

    @property
    def position(self) -> int:
        """The position up to which its rows are right, -1 if there are none yet."""
        return self.definition.position

    @property
    def error(self) -> dict[str, Any] | None:
        """Why it stopped."""
        return self.definition.error

    def answer(self) -> Answer:
        """The rows and the position they are right for, in one look."""
        return answers(self._views, [self.name])[self.name]

    def arrow(self) -> pa.Table:
        return self.answer().rows

    def rows(self) -> list[dict[str, Any]]:
        return reader.listed(self.arrow())

    def pandas(self) -> Any:
        return self.arrow().to_pandas()

    def count(self) -> int:
        return self._views.count(self.name)

    def get(self, *key: Any) -> dict[str, Any] | None:
        """The row of a key, found without reading the others; None if there is none."""
        return _single(self._views.get(self.name, key))

    def at(self, position: int) -> Past:
        """The rows as they were at a position; `Expired` if that history is gone."""

        def look(tx: Transaction) -> tuple[Definition, int]:
            view = definition.find(tx, self.name)
            if view.state in reader.STOPPED and position > view.position:
                raise reader.stopped(view)
            if view.state == "building" or view.columns is None:
                raise reader.not_ready(tx, view)
            found = frontier(tx, view, position)
            if found is None:
                start = begin(tx, view)
                raise Expired(
                    f"the rows of {view.name} at position {position} are not kept: its history begins at {start}",
                    hint="keep more with history=",
                    view=view.name,
                    position=start,
                )
            return view, found

        with self._views.catalog.read() as tx:
            view, found = look(tx)
        return Past(view, found, lambda: self._views.content(view, found))

    def changes(
        self,
        after: int | None = None,
        *,
        follow: bool = False,
        timeout: float | None = None,
        progress: bool = False,
    ) -> Iterator[Change]:
        """What every epoch changed after a position, one change an epoch; first the present rows if none is given.

        To go on later, give the position of the last change. If the history does not reach back to it any
        more, a `reset` and a `snapshot` come first. With `follow` it waits for more, for ever, or until nothing has
        come for `timeout` seconds. With `progress`, epochs that changed nothing are told of too.
        """
        return _follow(self._views, self.name, after, follow, timeout, progress)

    def wait(self, position: int, timeout: float = 60.0) -> int:
        """Block until the view has reached a position, such as one that an append returned; its own."""
        deadline = time.monotonic() + timeout
        while True:
            with self._views.catalog.read() as tx:
                (version,) = tx.one("SELECT version FROM state") or (0,)
                view = definition.find(tx, self.name)
            if view.position >= position and view.state != "building":
                return view.position
            if view.state == "stopped":
                raise reader.stopped(view)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimedOut(
                    f"the view {view.name} is at position {view.position}, not yet at {position}",
                    hint="keep views up to date with db.run(), or call db.refresh()",
                    view=view.name,
                    position=view.position,
                )
            self._views.catalog.wait(version, left)

    def resume(self) -> None:
        """Let a stopped view catch up from where it stopped, and those that stopped because they read it."""
        self._views.catalog.write(lambda tx: definition.resume(tx, self.name))

    def __repr__(self) -> str:
        return f"<View {self.name}>"


def answers(views: Reader, names: Sequence[str]) -> dict[str, Answer]:
    """The rows of several views as they are in one and the same commit."""
    opened = views.open(names)
    return {
        name: Answer(one.seen.view.position, reader.repeated(one.weighted(), one.seen.view.schema))
        for name, one in zip(names, opened, strict=True)
    }


def _single(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    return rows[0] if rows else None
