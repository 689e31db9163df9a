"""What a view is made of: leaves it reads, nodes that keep state, and stateless chains between them.

    leaf ──chain──> node ──chain──> node ──chain──> output

A source (a leaf or a node) gives rows of a struct `c0 ... cN, __w`; a chain turns such a row into the rows that
one port of the next node takes. Nothing here knows Spark: what a chain builds is opaque.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from evert.trace.horizon import Forgets

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from evert.delta.inline import Work
    from evert.delta.operator import Operator

LeafKind = Literal["stream", "table", "versions", "view", "clock", "constant", "query"]
VERSIONS = ".versions"
"""What the name of a table's versions ends in."""
How = Literal["incremental", "per key", "whole"]
"""What a node reads for a change: the change and what it meets, all rows of the keys in it, or its whole input."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """A relation that a view reads: `t<topic id>`, `v<name>`, or `k<n>` for constants of the query itself.

    A clock has one row, a moment: `clock` is what `now()` means, `w<topic id>` the watermark of a stream. A view
    that is recomputed is fed by the leaf `q<n>`, its query's whole result. The changes that a table's versions are
    made of are the leaf `t<topic id>v`, and come with when they came in.

    A constant has its `rows` (columns `c0 ...` and `__w`), which it gives once, in the first epoch.
    """

    id: str
    kind: LeafKind
    name: str
    schema: pa.Schema
    rows: pa.Table | None = None
    used: tuple[str, ...] | None = None
    """The columns on which the view's rows depend, and perhaps others; None if that is not known."""

    @property
    def of_topic(self) -> bool:
        """Whether its rows are those of a topic."""
        return self.kind in ("stream", "table", "versions")

    @property
    def has_changes(self) -> bool:
        """Whether its rows are a table's: each with its place in the log, and whether it deletes."""
        return self.kind in ("table", "versions")

    @property
    def topic(self) -> str:
        """The name of the topic whose rows these are."""
        return self.name.removesuffix(VERSIONS) if self.kind == "versions" else self.name

    @property
    def number(self) -> int:
        """The id of that topic."""
        return int(self.id.strip("tv"))


@dataclass(frozen=True, eq=False)
class Chain:
    """Stateless work from a source to a port.

    `build` takes a Catalyst attribute of type `struct<c0 ... cN, __w>` that holds a row of the source, and gives
    an expression of type `struct<c0 ... cM, __w>` that is NULL when the row is filtered out, or, if `many`, an
    array of such structs without NULLs in it. It must be evaluated for rows that are not NULL only.

    Where operators of Spark's own are on the way, a chain is no expression: then `over` takes a plan and that
    attribute of it, and gives a plan whose only column holds the structs.
    """

    source: str
    many: bool
    build: Callable[[Any], Any]
    over: Callable[[Any, Any], Any] | None = None
    inline: Work | None = None
    """The same without Spark, if workers can do it."""
    stays: bool = False
    """The rows are in the shards where the port needs them already."""
    reads: frozenset[int] | None = None
    """The columns of the source that matter to it, and perhaps others; None is all of them."""


@dataclass(frozen=True, eq=False)
class Node:
    """A stateful operator, and for each of its ports the chains that lead into it.

    Nodes of equal `fingerprint` keep equal state, whatever view they are of; tables' rows in the columns needed.
    """

    id: str
    operator: Operator
    ports: tuple[tuple[Chain, ...], ...]
    kind: str
    detail: str
    append_only: bool
    fingerprint: str
    how: How = "incremental"
    reads: str | None = None
    """The node whose state it reads, if that is not its own."""
    forgets: tuple[Forgets, ...] = ()
    """The rows of its state that it may drop, because no change can reach them any more."""
    needs: frozenset[int] | None = None
    """The columns of a table that the view reads, if the node keeps a table's rows and they are not all."""


@dataclass(frozen=True)
class ExplainLine:
    """One line of the drawn plan; `depth` is 0 for the output."""

    depth: int
    text: str
    node: str | None = None

    def __str__(self) -> str:
        return "  " * self.depth + self.text


@dataclass(frozen=True, eq=False)
class Plan:
    """How a view is kept: its nodes from the leaves up, the last being the output.

    `reads` are the relations that the query names; `leaves` those whose rows it needs, with its constants.
    If `recomputes` gives a reason, there is only the output node, whose port has no chain: it takes the whole
    content of `frame(session)` each time, on a session where the relations hold their data.
    """

    reads: tuple[Leaf, ...]
    leaves: tuple[Leaf, ...]
    nodes: tuple[Node, ...]
    columns: pa.Schema
    key: tuple[str, ...] | None
    recomputes: str | None
    fingerprint: str
    explain: tuple[ExplainLine, ...]
    frame: Callable[[SparkSession], DataFrame]
    estimates: tuple[str, ...] = ()
    """The columns that come from sketches."""

    @property
    def output(self) -> Node:
        return self.nodes[-1]

    @property
    def reads_all_again(self) -> str | None:
        """Why a change makes the view or one of its nodes read all its input again, if it does."""
        drawn = {line.node for line in self.explain}
        nodes = (node for node in self.nodes if node.how == "whole" and node.id in drawn)
        whole = (f"{node.detail} [{node.id}]" for node in nodes)
        return self.recomputes or next(whole, None)

    @property
    def append_only(self) -> bool:
        """No row of the view is ever retracted."""
        return self.output.append_only

    def __str__(self) -> str:
        return "\n".join(map(str, self.explain))
