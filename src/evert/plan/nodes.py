"""The leaves and nodes of one view while they are put together; equal nodes become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from evert.delta.aggregate import Aggregate
from evert.delta.inline import Work
from evert.delta.upsert import Upsert
from evert.delta.versions import Versions
from evert.plan.catalyst import Catalyst
from evert.plan.chains import Pipe, Through, builder, no_expression, operated, segments
from evert.plan.expressions import name_of
from evert.plan.fingerprints import FORMAT, digest, fields_read, term_text
from evert.plan.graph import Chain, How, Leaf, Node
from evert.plan.inline import inlined
from evert.plan.placing import Placed, Places, anywhere, kept_by, placed_by, stay
from evert.plan.tree import Recompute, Term
from evert.plan.types import carried, kind_of, kinds_in
from evert.schema.types import Atom, Column, DataType, Struct
from evert.trace.horizon import Forgets

if TYPE_CHECKING:
    from evert.delta.operator import Operator


_FUNCTION = "PythonUDF", "a function in Python inside another operator"
_SUBQUERY = "ScalarSubquery", "a scalar subquery inside an operator that Spark runs"


@dataclass(frozen=True)
class Port:
    """Pipes that end in the same columns, and the terms of those that the node takes."""

    pipes: tuple[Pipe, ...]
    terms: tuple[Term, ...]

    @property
    def kinds(self) -> tuple[DataType, ...]:
        return tuple(carried(kind_of(term)) for term in self.terms)


@dataclass
class Nodes:
    """What a view has so far."""

    catalyst: Catalyst
    settings: dict[str, str]
    leaves: dict[str, Leaf] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    _sources: dict[str, tuple[str, Any]] = field(default_factory=dict)
    _used: dict[str, set[int]] = field(default_factory=dict)
    _placed: dict[str, Placed | None] = field(default_factory=dict)
    """The columns that decide in which shard the rows of a node are."""

    def leaf(self, leaf: Leaf) -> str:
        """The id of a leaf, which is added if it is new."""
        if leaf.id not in self.leaves:
            self.leaves[leaf.id] = leaf
            self._sources[leaf.id] = leaf_digest(leaf), self._row(kinds_in(leaf.schema))
        return leaf.id

    def table(self, leaf: Leaf, key: tuple[str, ...]) -> str:
        """The node that keeps the present rows of a table."""
        places = tuple(leaf.schema.names.index(name) for name in key)
        return self._changes("upsert", Upsert(leaf.schema, places), leaf, key, [places])

    def versions(self, leaf: Leaf, key: tuple[str, ...], operator: Versions) -> str:
        """The node that keeps the versions of a table's rows."""
        spec = [operator.key, operator.time and operator.time.name, operator.partitions]
        return self._changes("versions", operator, leaf, key, spec)

    def _changes(
        self, kind: str, operator: Operator, leaf: Leaf, key: tuple[str, ...], spec: Sequence[Any]
    ) -> str:
        """The node that takes in a table's changes as they are."""
        self.leaf(leaf)
        fingerprint = digest([FORMAT, kind, self._sources[leaf.id][0], *spec])
        chain = Chain(leaf.id, False, lambda attribute: attribute, inline=Work(()))
        detail = f"{leaf.topic} by {', '.join(key)}"
        return self._add(kind, operator, ((chain,),), detail, fingerprint, append_only=False)

    def add(
        self,
        kind: str,
        operator: Operator,
        ports: Sequence[Port],
        detail: str,
        spec: Any,
        *,
        append_only: bool,
        how: How = "incremental",
        forgets: tuple[Forgets, ...] = (),
    ) -> str:
        """The id of a node; `spec` is what tells it from others of its kind with the same ports.

        What it `forgets` is not part of that: it must follow from the ports, or be part of `spec`.
        """
        chains, texts = [], []
        for port in ports:
            made = [self._chain(pipe, port) for pipe in port.pipes]
            chains.append([chain for chain, _ in made])
            texts.append([text for _, text in made])
        kinds = [[one.ddl() for one in port.kinds] for port in ports]
        kept = kept_by(self.catalyst, operator, ports, self._placed)
        staying = stay(self.catalyst, operator, ports, self._placed, kept, self._of_one_row())
        placed = [
            tuple(replace(chain, stays=stays) for chain, stays in zip(port, each, strict=True))
            for port, each in zip(chains, staying, strict=True)
        ]
        read: list[Any] = [[sorted(port), columns] for port, columns in zip(texts, kinds, strict=True)]
        where = (
            [sorted(zip(*port, strict=True)) for port in zip(texts, staying, strict=True)]
            if anywhere(operator)
            else kept
        )
        fingerprint = digest([FORMAT, kind, spec, read, self.settings, where])
        return self._add(
            *(kind, operator, tuple(placed), detail, fingerprint),
            append_only=append_only,
            how=how,
            kept=kept,
            forgets=forgets,
        )

    def _of_one_row(self) -> set[str]:
        """The nodes that give one row: aggregates without groups."""
        return {
            id
            for id, node in self.nodes.items()
            if isinstance(node.operator, Aggregate) and not node.operator.keys
        }

    def alike(self, one: Port, two: Port) -> bool:
        """Whether two ports are given the same rows, whatever else is going on."""
        made = [sorted(self._chain(pipe, port)[1] for pipe in port.pipes) for port in (one, two)]
        return made[0] == made[1] and one.kinds == two.kinds

    def reads(self, node: str, other: str) -> None:
        """Let a node read the state that another one keeps, which is where its own rows go."""
        self.nodes[node] = replace(self.nodes[node], reads=other)

    def _chain(self, pipe: Pipe, port: Port) -> tuple[Chain, str]:
        source, row = self._sources[pipe.source]
        texts: list[Any] = [source]
        reads: frozenset[int] | None = None
        for part, through in segments(pipe):
            wanted = port.terms if through is None else tuple(column.term for column in through.takes)
            kinds = port.kinds if through is None else None
            term = builder(self.catalyst, part, wanted, kinds)(row)
            text = _checked(term_text(term), _FUNCTION, _SUBQUERY)
            if len(texts) == 1:
                reads = fields_read(text)
                every = range(len(pipe.columns))
                self._used.setdefault(pipe.source, set()).update(every if reads is None else reads)
            texts.append(text)
            if through is not None:
                texts.append([through.weighted, self._operators(through)])
                row = self._row([kind_of(column.term) for column in through.gives])
        if pipe.plain:
            build = builder(self.catalyst, pipe, port.terms, port.kinds)
            inline = inlined(pipe, port.terms)
            return Chain(pipe.source, pipe.many, build, inline=inline, reads=reads), digest(texts)
        over = operated(self.catalyst, pipe, port.terms, port.kinds)
        return Chain(pipe.source, False, no_expression, over, reads=reads), digest(texts)

    def _operators(self, through: Through) -> list[Any]:
        """What tells operators from others, whatever the identities of their columns are."""
        catalyst = self.catalyst
        row = self._row([kind_of(column.term) for column in through.takes])
        fields = [catalyst.field(row, place) for place in range(len(through.takes))]
        scope = catalyst.scope(through.takes, fields)
        return [
            [
                name_of(operator),
                [
                    _checked(term_text(catalyst.substitute(term, scope)), _SUBQUERY)
                    for term in catalyst.items(operator.expressions())
                ],
            ]
            for operator in through.operators
        ]

    def read(self) -> tuple[Leaf, ...]:
        """The leaves, with the columns that the view's rows depend on; a table's rows depend on all."""
        found = []
        for leaf in self.leaves.values():
            places = self._used.get(leaf.id, set())
            used = tuple(name for place, name in enumerate(leaf.schema.names) if place in places)
            found.append(leaf if leaf.has_changes else replace(leaf, used=used))
        return tuple(found)

    def finished(self) -> tuple[Node, ...]:
        """The nodes, once all are there; those of tables with the columns that are read of them."""
        return tuple(
            replace(node, needs=self._needs(node.id, node.operator))
            if isinstance(node.operator, Upsert)
            else node
            for node in self.nodes.values()
        )

    def _needs(self, node: str, table: Upsert) -> frozenset[int] | None:
        every = frozenset(range(len(table.columns)))
        needed = every & (self._used.get(node, set()) | set(table.key))
        return None if needed == every else needed

    def _add(
        self,
        kind: str,
        operator: Operator,
        ports: tuple[tuple[Chain, ...], ...],
        detail: str,
        fingerprint: str,
        *,
        append_only: bool,
        how: How = "incremental",
        kept: Places | None = None,
        forgets: tuple[Forgets, ...] = (),
    ) -> str:
        for node in self.nodes.values():
            if node.fingerprint == fingerprint:
                return node.id
        name = f"n{len(self.nodes)}"
        self.nodes[name] = Node(
            *(name, operator, ports, kind, detail, append_only, fingerprint),
            how=how,
            forgets=forgets,
        )
        self._placed[name] = placed_by(operator, kept)
        self._sources[name] = fingerprint, self._row(kinds_in(operator.output))
        return name

    def _row(self, kinds: Sequence[DataType]) -> Any:
        """An attribute that stands for a row of a source."""
        columns = [Column(f"c{place}", kind) for place, kind in enumerate(kinds)]
        row = Struct((*columns, Column("__w", Atom("BIGINT"))))
        return self.catalyst.fresh_column("s", row).term


def _checked(text: str, *unable: tuple[str, str]) -> str:
    """The text of a term; what cannot be evaluated where it stands makes the view recompute."""
    for name, reason in unable:
        if f"catalyst.expressions.{name}" in text:
            raise Recompute(reason)
    return text


def leaf_digest(leaf: Leaf) -> str:
    """What tells the content of a leaf from that of others."""
    if leaf.rows is None:
        return digest([leaf.kind, leaf.id, [[one.name, str(one.type)] for one in leaf.schema]])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, leaf.rows.schema) as writer:
        writer.write_table(leaf.rows)
    return digest([leaf.kind, sink.getvalue().to_pybytes().hex()])
