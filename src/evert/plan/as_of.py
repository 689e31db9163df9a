"""`FOR SYSTEM_TIME AS OF` in a query: the table as it was at a time, which may be another one for each row.

    orders o JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.country = r.country
    orders o JOIN `rates.versions` AS r ON o.country = r.country
        AND r._valid_from <= o.at AND (r._valid_to IS NULL OR o.at < r._valid_to)

Spark's parser knows the words, but takes a time without columns only. It says where in the text one with columns
stands; there it is given the name of a version in its place, and finds the rest of the query itself. In what it has
read the table is then replaced by its versions. A time without columns is a filter of the versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evert.delta.versions import VALID_FROM, VALID_TO
from evert.errors import BadQuery
from evert.plan.expressions import name_of
from evert.plan.graph import VERSIONS
from evert.plan.tokens import scan
from evert.plan.tree import Term

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst


_MENTIONED = re.compile(r"\bAS\s+OF\b", re.IGNORECASE)
_PASSING = re.compile(r"\b(?:now|current_timestamp|current_date|localtimestamp)\b", re.IGNORECASE)
_OF_COLUMNS = "timestamp expression cannot refer to any columns"
_FIRST = 0xE000
"""Versions are named by characters that nobody uses, from this one on."""

_JOINS = {"Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti"}
_HINT = (
    "write FROM orders o JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON ..., as a JOIN or LEFT JOIN,"
    " or read its versions: `rates.versions` has _valid_from and _valid_to"
)


def parsed(catalyst: Catalyst, parse: Callable[[str], Any], text: str) -> Any:
    """What the parser makes of a query, with the versions of tables where it asks for them as of a time."""
    moments: list[str] = []
    while True:
        try:
            plan = parse(text)
            break
        except catalyst.query_errors() as error:
            place = _place(error)
            if place is None:
                raise
            moment, text = _replaced(text, *place, chr(_FIRST + len(moments)))
            moments.append(moment)
    if not moments and not _MENTIONED.search(text):
        return plan
    return _Rewriting(catalyst, [catalyst.term(moment) for moment in moments]).plan(plan)


def _place(error: Any) -> tuple[int, int] | None:
    """From where to where a time with columns stands, if that is what the parser refuses."""
    found = error.getQueryContext() if _OF_COLUMNS in str(error) else []
    return (found[0].startIndex(), found[0].stopIndex() + 1) if found else None


def _replaced(text: str, start: int, stop: int, version: str) -> tuple[str, str]:
    """The time that stands in the clause, and the text with a version in its place; nothing else moves.

    >>> _replaced("rates FOR SYSTEM_TIME AS OF o.at r", 6, 32, "x")
    ('o.at', "rates VERSION AS OF 'x'          r")
    """
    clause = text[start:stop]
    of = next(token for token in scan(clause) if token.upper == "OF")
    instead = f"VERSION AS OF '{version}'"
    rest = re.sub(r"[^\n]", " ", clause[len(instead) :])
    return clause[of.end :].strip(), text[:start] + instead + rest + text[stop:]


class _Rewriting:
    """One query while its tables are replaced by their versions."""

    def __init__(self, catalyst: Catalyst, moments: Sequence[Term]) -> None:
        self._catalyst = catalyst
        self._moments = moments

    def plan(self, plan: Any) -> Any:
        name = name_of(plan)
        if name == "RelationTimeTravel":
            return self._alone(plan)
        if name == "Join":
            plan = self._join(plan)
        if name == "UnresolvedWith" or self._catalyst.has_subqueries(plan):
            return self._catalyst.rebuilt(plan, self.plan)
        children = self._catalyst.items(plan.children())
        done = [self.plan(child) for child in children]
        if all(new is old for new, old in zip(done, children, strict=True)):
            return plan
        return plan.withNewChildren(self._catalyst.sequence(done))

    def _join(self, join: Any) -> Any:
        """The join with the versions that are valid at the time of a row of its left side."""
        alias, travel = self._travel(join.right())
        moment = None if travel is None else self._moment(travel)
        if moment is None:
            return join
        kind = join.joinType().toString()
        if kind.startswith(("UsingJoin", "NaturalJoin")):
            raise BadQuery(
                "a join with a table FOR SYSTEM_TIME AS OF a column has a condition with ON",
                hint="USING (country) is ON o.country = r.country",
            )
        if kind not in _JOINS:
            raise BadQuery(f"{kind} is no join with a table FOR SYSTEM_TIME AS OF a column", hint=_HINT)
        name = alias or self._name(travel)
        given = join.condition()
        terms = [given.get()] if given.isDefined() else []
        condition = self._catalyst.both([*terms, self._valid(name, moment)])
        right = self._catalyst.named(self._versions(travel), name)
        return self._catalyst.joined(join, right, condition)

    def _travel(self, side: Any) -> tuple[str | None, Any]:
        """The name of a join's side, and the table as of a time that it is; None if it is something else."""
        alias = None
        while name_of(side) == "SubqueryAlias":
            alias = alias or side.identifier().name()
            side = side.child()
        if name_of(side) == "UnresolvedSubqueryColumnAliases" and self._travel(side.child())[1] is not None:
            raise BadQuery(
                "a table FOR SYSTEM_TIME AS OF a time keeps the names of its columns",
                hint="leave the list of names behind its alias out, and rename them in the SELECT",
            )
        return alias, side if name_of(side) == "RelationTimeTravel" else None

    def _alone(self, travel: Any) -> Any:
        """The versions that are valid at a time that is the same for all rows."""
        if travel.timestamp().isEmpty():
            self._moment(travel)
            raise BadQuery(
                "FOR SYSTEM_TIME AS OF a column needs a row of the left side of a join", hint=_HINT
            )
        moment = travel.timestamp().get()
        if _PASSING.search(moment.toString()):
            raise BadQuery(
                "a table is read as of a time that stays, not as of now()",
                hint="the table itself, without FOR SYSTEM_TIME AS OF, is what holds now",
            )
        name = self._name(travel)
        valid = self._valid(name, moment)
        return self._catalyst.filtered(self._catalyst.named(self._versions(travel), name), valid)

    def _moment(self, travel: Any) -> Term | None:
        """The time that was in the text in place of a version; None if it is still there."""
        if travel.timestamp().isDefined():
            return None
        place = ord(travel.version().get()[0]) - _FIRST if len(travel.version().get()) == 1 else -1
        if not 0 <= place < len(self._moments):
            raise BadQuery(
                "a table is read as of a time, not as of a version",
                hint="FOR SYSTEM_TIME AS OF a time, or WHERE _version = ... of its versions",
            )
        return self._moments[place]

    def _name(self, travel: Any) -> str:
        relation = travel.relation()
        if name_of(relation) != "UnresolvedRelation":
            raise BadQuery("FOR SYSTEM_TIME AS OF needs the name of a table before it", hint=_HINT)
        return ".".join(self._catalyst.items(relation.multipartIdentifier()))

    def _versions(self, travel: Any) -> Any:
        return self._catalyst.unresolved(self._name(travel) + VERSIONS)

    def _valid(self, name: str, moment: Term) -> Term:
        """Whether a version is valid at a time."""
        begin, end = (self._catalyst.term(f"{_quoted(name)}.{column}") for column in (VALID_FROM, VALID_TO))
        return self._catalyst.within(moment, begin, end)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
