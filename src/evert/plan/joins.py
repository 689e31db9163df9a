"""Joins of every kind, made of two nodes: pairs of rows, and rows that have a match or none.

    left ⟕ right  =  pairs + (left without a match, NULLs beside it)

Where only keys decide, whether a row has a match is a matter of the keys of the other side. A condition on both
sides is evaluated on pairs first; then a row has a match if it is in a pair.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from evert.delta.join import During
from evert.delta.join import Join as JoinKernel
from evert.delta.semi import Semi
from evert.plan import best, during
from evert.plan.bounds import NOTHING, Bounds, aboves, met
from evert.plan.chains import Pipe, Select, Where
from evert.plan.explain import Drawing
from evert.plan.keys import Keys, through_join, through_outer
from evert.plan.nodes import Port
from evert.plan.tree import Column, Join, Term
from evert.plan.types import arrow_schema, check_key, kind_of

if TYPE_CHECKING:
    from evert.plan.incremental import Flow, Incremental

Kind = Literal["semi", "anti", "existence"]

_WORDS = {
    "inner": "join",
    "left": "left join",
    "right": "right join",
    "full": "full join",
    "semi": "semi join",
    "anti": "anti join",
    "existence": "existence join",
}


def flow(plan: Incremental, shape: Join) -> Flow:
    for left_term, right_term, _ in shape.keys:
        check_key(kind_of(left_term), "a join")
        check_key(kind_of(right_term), "a join")
    if (best_rows := best.ranked(plan, shape)) is not None:
        return plan.flow(best_rows)
    left, right = plan.flow(shape.left), plan.flow(shape.right)
    words = _WORDS[shape.kind] + (f" on {shape.text}" if shape.text else " of every row with every row")
    drawing = Drawing(words, (left.drawing, right.drawing))
    return _Joined(plan, shape, left, right, drawing).flow()


class _Joined:
    """One join while it is planned."""

    def __init__(self, plan: Incremental, shape: Join, left: Flow, right: Flow, drawing: Drawing) -> None:
        self.plan = plan
        self.shape = shape
        self.left = left
        self.right = right
        self.drawing = drawing
        self.during = during.found(plan, shape)
        """The time at which rows of the right are to be valid, their begin and their end."""
        self.reach = self._reach()
        """How far back changes reach rows of the left and of the right that are in pairs."""

    def flow(self) -> Flow:
        shape = self.shape
        match shape.kind:
            case "inner":
                return self._pairs()
            case "semi" | "anti" | "existence":
                return self._matched(shape.kind)
        pairs = self._pairs()
        chosen = Select(shape.columns, tuple(column.term for column in pairs.columns))
        pipes = [pipe.then(chosen) for pipe in pairs.pipes]
        if shape.kind in ("left", "full"):
            pipes += self._padded(self._matched("anti"))
        if shape.kind in ("right", "full"):
            pipes += self._padded(self._turned()._matched("anti"))
        ids = self.plan.catalyst.attribute_id
        keys: Keys = ()
        if shape.kind == "left":
            keys = through_outer(self.left.keys, self.right.keys, [ids(two) for _, two, _ in shape.keys])
            keys = keys if self.during is None else self.left.keys
        if shape.kind == "right":
            keys = through_outer(self.right.keys, self.left.keys, [ids(one) for one, _, _ in shape.keys])
        made = replace(pairs, pipes=tuple(pipes), columns=shape.columns, keys=keys, append_only=False)
        return replace(made, bounds=self.plan.renamed(pairs, shape.columns))

    def _reach(self) -> tuple[Bounds, Bounds]:
        if not self.left.bounds or not self.right.bounds:
            return NOTHING, NOTHING
        keys = ((one, two) for one, two, _ in self.shape.keys)
        above = aboves(self.plan.catalyst, self.shape.residual, keys)
        return met(self.left.bounds, self.right.bounds, above)

    def _pairs(self) -> Flow:
        plan, shape = self.plan, self.shape
        when = () if self.during is None else self.during
        left_port, left_columns, left_key = plan.side(self.left, [*(key[0] for key in shape.keys), *when[:1]])
        right_port, right_columns, right_key = plan.side(
            self.right, [*(key[1] for key in shape.keys), *when[1:]]
        )
        count, valid = len(shape.keys), None
        if when:
            valid = During(*left_key[count:], *right_key[count:])
            left_key, right_key = left_key[:count], right_key[:count]
        null_safe = tuple(key[2] for key in shape.keys)
        operator = JoinKernel(
            arrow_schema(left_port.kinds),
            arrow_schema(right_port.kinds),
            left_key,
            right_key,
            null_safe,
            valid,
        )
        append_only = self.left.append_only and self.right.append_only
        detail = shape.text or "every row with every row"
        spec: list[Any] = [left_key, right_key, null_safe, *([] if valid is None else [valid])]
        left_reach, right_reach = self.reach
        forgets = (
            *left_reach.forgets("left", [column.id for column in left_columns]),
            *right_reach.forgets("right", [column.id for column in right_columns]),
        )
        if forgets:  # which depends on the condition that is behind the node
            spec.append(sorted(str([*rule[:3], sorted(rule.before)]) for rule in forgets))
        node = plan.nodes.add(
            "join", operator, [left_port, right_port], detail, spec, append_only=append_only, forgets=forgets
        )
        pipe = Pipe(node, (*left_columns, *right_columns))
        if shape.residual is not None:
            pipe = pipe.then(Where(shape.residual))
        columns = (*self.left.columns, *self.right.columns)
        ids = plan.catalyst.attribute_id
        equal = [(ids(one), ids(two)) for one, two, _ in shape.keys]
        keys = self.left.keys if when else through_join(self.left.keys, self.right.keys, equal)
        bounds = Bounds({**left_reach.places, **right_reach.places})
        made = replace(self.left, pipes=(pipe,), columns=columns, keys=keys, append_only=append_only)
        return replace(made, drawing=replace(self.drawing, node=node), bounds=bounds)

    def _matched(self, kind: Kind) -> Flow:
        """Rows of the left by whether they have a match."""
        plan, shape, left = self.plan, self.shape, self.left
        if shape.residual is None:
            port, columns, key = plan.side(left, [one for one, _, _ in shape.keys])
            other = Port(self.right.pipes, tuple(two for _, two, _ in shape.keys))
            null_safe = tuple(safe for _, _, safe in shape.keys)
            reach = self.reach
        else:
            pairs = self._pairs()
            port, columns, key = plan.side(left, self._identity(pairs.bounds))
            other = Port(pairs.pipes, tuple(columns[place].term for place in key))
            null_safe = (True,) * len(key)
            known = left.bounds.only(columns[place].id for place in key)
            there = {place: bound for place, bound in pairs.bounds.places.items() if place in known.places}
            reach = Bounds(there), Bounds(there)
        kinds = arrow_schema(port.kinds), arrow_schema(other.kinds)
        operator = Semi(*kinds, key, null_safe, kind)
        append_only = kind == "semi" and left.append_only and self.right.append_only
        detail = f"{_WORDS[kind]} on {shape.text}" if shape.text else _WORDS[kind]
        ids = [column.id for column in columns]
        forgets = (
            *reach[0].forgets("left", ids),
            *reach[1].forgets("right", [self.plan.catalyst.attribute_id(term) for term in other.terms]),
        )
        node = plan.nodes.add(
            *(kind, operator, [port, other], detail, [key, null_safe]),
            append_only=append_only,
            forgets=forgets,
        )
        given = shape.columns if kind == "existence" else left.columns
        flag = (given[-1],) if kind == "existence" else ()
        pipe = Pipe(node, (*columns, *flag)).then(Select(given, tuple(column.term for column in given)))
        drawing = replace(self.drawing, node=node)
        made = replace(left, pipes=(pipe,), columns=given, append_only=append_only, drawing=drawing)
        return replace(made, bounds=reach[0])

    def _identity(self, bounds: Bounds) -> list[Term]:
        """What tells the rows of the left apart: a key of it, or all its columns; and times that are bounded."""
        left = self.left
        of_key = {column.id: column.term for column in left.columns}
        ids = left.keys[0] if left.keys else tuple(of_key)
        dated = (place.id for place in bounds.places if place.id in of_key)
        terms = [of_key[id] for id in dict.fromkeys((*ids, *dated))]
        for term in terms:
            check_key(kind_of(term), f"a {_WORDS[self.shape.kind]} with a condition, of rows without a key,")
        return terms

    def _padded(self, lonely: Flow) -> list[Pipe]:
        """Rows without a match, with NULLs in the columns of the other side."""
        catalyst = self.plan.catalyst
        there = {column.id for column in lonely.columns}
        terms = tuple(
            column.term if column.id in there else catalyst.null(column.term.dataType())
            for column in self.shape.columns
        )
        return [pipe.then(Select(self.shape.columns, terms)) for pipe in lonely.pipes]

    def _turned(self) -> _Joined:
        """The same join seen from the other side."""
        keys = tuple((two, one, safe) for one, two, safe in self.shape.keys)
        columns: tuple[Column, ...] = (*self.right.columns, *self.left.columns)
        turned = replace(self.shape, columns=columns, left=self.shape.right, right=self.shape.left, keys=keys)
        return _Joined(self.plan, turned, self.right, self.left, self.drawing)
