"""How far back changes reach: the least value that a column has in rows which change from now on.

    clicks, with event time `at`            at           not before the horizon of clicks
    window(at, '1 hour')                    window.end   not before it
    s JOIN c ON c.at >= s.at AND            c.at         not before the horizons of both
        c.at <= s.at + INTERVAL 1 HOUR      s.at         not before those, an hour earlier for c

A row of a node's state whose value is before that is not needed any more: no change will ever meet it. NULL is not
bounded, and never forgotten. Whatever is not understood here has no bound, which only means that it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from evert.plan.expressions import conjuncts, name_of
from evert.plan.tree import Column, Term
from evert.trace.horizon import DAY, Bound, Forgets

if TYPE_CHECKING:
    from evert.plan.catalyst import Catalyst

OFFSETS = 36 * 3_600_000_000
"""By how much two offsets of a time zone may differ: so much longer or shorter may days be, in microseconds."""
_MINUTE = 60_000_000
_HOUR = 60 * _MINUTE
_SAME = {"Alias", "KnownNullable", "KnownNotNull", "PreciseTimestampConversion"}
_UNITS = {
    **dict.fromkeys(("MICROSECOND", "MILLISECOND", "SECOND"), 1_000_000),
    "MINUTE": _MINUTE,
    "HOUR": _HOUR,
    **dict.fromkeys(("DAY", "DD"), DAY),
    "WEEK": 7 * DAY,
    **dict.fromkeys(("MONTH", "MM", "MON"), 31 * DAY),
    "QUARTER": 92 * DAY,
    **dict.fromkeys(("YEAR", "YYYY", "YY"), 366 * DAY),
}
"""How far `date_trunc` goes back at most."""
_TIMES = {"timestamp", "timestamp_ntz", "date"}
_LESS = {"LessThan", "LessThanOrEqual"}
_GREATER = {"GreaterThan", "GreaterThanOrEqual"}
_EQUAL = {"EqualTo", "EqualNullSafe"}

HORIZON, WATERMARK = "h", "w"
"""What the names of the clocks of a stream begin with; the number of its topic follows."""

NEVER: Bound = frozenset()
"""The bound of what is always NULL."""


class Place(NamedTuple):
    """A column, or a field of one that is a struct."""

    id: int
    field: int | None = None


class Above(NamedTuple):
    """That one place is never less than another one and so much more."""

    greater: Place
    lesser: Place
    by: int


@dataclass(frozen=True)
class Bounds:
    """What is known of columns, and of terms over them."""

    places: Mapping[Place, Bound] = field(default_factory=dict)
    terms: tuple[tuple[Term, Bound], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.places)

    def of(self, catalyst: Catalyst, term: Term) -> dict[int | None, Bound]:
        """The bounds of a term: of its value (None), and of fields if it is a struct."""
        if not self.places:
            return {}
        for known, bound in self.terms:
            if term.semanticEquals(known):
                return {None: bound}
        name = name_of(term)
        if name == "AttributeReference":
            id = catalyst.attribute_id(term)
            return {place.field: bound for place, bound in self.places.items() if place.id == id}
        if name in _SAME:
            return self.of(catalyst, term.child())
        if name == "Literal":
            return {None: NEVER} if term.value() is None else {}
        if name == "CreateNamedStruct":
            fields = [self.of(catalyst, one) for one in catalyst.items(term.valExprs())]
            return {place: one[None] for place, one in enumerate(fields) if None in one}
        if name == "GetStructField":
            inner = self.of(catalyst, term.child())
            return {None: inner[term.ordinal()]} if term.ordinal() in inner else {}
        moved = _moved(catalyst, term)
        if moved is None:
            return {}
        child, (shift, _) = moved
        inner = self.of(catalyst, child)
        return {None: shifted(inner[None], shift)} if None in inner else {}

    def projected(self, catalyst: Catalyst, columns: Sequence[Column], terms: Sequence[Term]) -> Bounds:
        """What is known of columns that are given by terms."""
        pairs = zip(columns, terms, strict=True)
        found = {column.id: self.of(catalyst, term) for column, term in pairs if self.places}
        return Bounds({Place(id, one): bound for id, known in found.items() for one, bound in known.items()})

    def only(self, ids: Iterable[int | None]) -> Bounds:
        """What is known of these columns."""
        wanted = set(ids)
        return Bounds({place: bound for place, bound in self.places.items() if place.id in wanted})

    def where(self, catalyst: Catalyst, condition: Term) -> Bounds:
        """What is known of rows that meet a condition: what is above a value that is bounded is bounded too.

        A watermark is not NULL once there is one, and before that nothing is forgotten.
        """
        if not self.places:
            return self
        places, terms = dict(self.places), list(self.terms)
        for part in conjuncts(condition):
            for great, less in _compared(self._known(catalyst, part)):
                bound = self.of(catalyst, less).get(None)
                if bound is None or not (_is_nearer(bound) or None not in self.of(catalyst, great)):
                    continue
                terms.append((great, bound))
                moved = _anchored(catalyst, great)
                if moved is not None:
                    place, (_, most) = moved
                    places[place] = shifted(bound, -most)
        return replace(self, places=places, terms=tuple(terms))

    def passed(self, catalyst: Catalyst, value: Term, moment: Bound) -> Bounds:
        """What is known of rows that change also when a moment passes their value."""
        anchored = _anchored(catalyst, value) if self.places else None
        if anchored is None or anchored[0] not in self.places:
            return NOTHING
        place, (_, most) = anchored
        return Bounds({place: least([self.places[place], shifted(moment, -most)])})

    def _known(self, catalyst: Catalyst, term: Term) -> Term:
        """The condition in `watermark IS NULL OR condition`; any other is itself."""
        if name_of(term) == "Or":
            for one, two in ((term.left(), term.right()), (term.right(), term.left())):
                if name_of(one) == "IsNull" and _is_nearer(self.of(catalyst, one.child()).get(None, NEVER)):
                    return two
        return term

    def forgets(self, trace: str, ids: Sequence[int | None]) -> tuple[Forgets, ...]:
        """What a trace forgets whose columns these are, if changes reach no further than these bounds."""
        return tuple(
            Forgets(trace, f"c{ids.index(place.id)}", place.field, bound)
            for place, bound in self.places.items()
            if bound and place.id in ids
        )


NOTHING = Bounds()


def union(given: Sequence[Bounds]) -> Bounds:
    """What is known of rows that come from several sides."""
    if not given:
        return NOTHING
    first, *rest = given
    places = {}
    for place, bound in first.places.items():
        if all(place in one.places for one in rest):
            places[place] = least([bound, *(one.places[place] for one in rest)])
    return Bounds(places)


def met(left: Bounds, right: Bounds, above: Iterable[Above]) -> tuple[Bounds, Bounds]:
    """What is known of the rows of two sides that meet, where some places of one are above some of the other.

    A change on one side meets rows of the other side: those reach back as far as they may meet it.
    """
    lefts: dict[Place, Bound] = {}
    rights: dict[Place, Bound] = {}
    for one in above:
        for here, there, found in ((left, right, lefts), (right, left, rights)):
            if one.greater in here.places and one.lesser in there.places and one.greater not in found:
                other = shifted(there.places[one.lesser], one.by)
                found[one.greater] = least([here.places[one.greater], other])
    return Bounds(lefts), Bounds(rights)


def least(bounds: Iterable[Bound]) -> Bound:
    """The least of several bounds.

    >>> sorted(least([frozenset({("h1", 5), ("h2", 0)}), frozenset({("h1", 2)})]))
    [('h1', 2), ('h2', 0)]
    """
    found: dict[str, int] = {}
    for clock, shift in (moment for bound in bounds for moment in bound):
        found[clock] = min(shift, found.get(clock, shift))
    return frozenset(found.items())


def shifted(bound: Bound, by: int) -> Bound:
    """
    >>> shifted(frozenset({("h1", 5)}), -2)
    frozenset({('h1', 3)})
    """
    return frozenset((clock, shift + by) for clock, shift in bound)


def aboves(catalyst: Catalyst, condition: Term | None, keys: Iterable[tuple[Term, Term]]) -> list[Above]:
    """What a join says of which place is above which one."""
    found = []
    for part in () if condition is None else conjuncts(condition):
        for great, less in _compared(part):
            one, two = _anchored(catalyst, great), _anchored(catalyst, less)
            if one is not None and two is not None:
                found.append(Above(one[0], two[0], two[1][0] - one[1][1]))
    for left, right in keys:
        one, two = _anchored(catalyst, left), _anchored(catalyst, right)
        if one is not None and two is not None:
            for here, there in _alike(one[0], two[0]):
                found.append(Above(here, there, two[1][0] - one[1][1]))
                found.append(Above(there, here, one[1][0] - two[1][1]))
    return found


def _alike(one: Place, two: Place) -> Iterator[tuple[Place, Place]]:
    """What is equal if two places are: they themselves, and if they are windows, begin and end."""
    yield one, two
    if one.field is None and two.field is None:
        yield from ((Place(one.id, number), Place(two.id, number)) for number in (0, 1))


def _is_nearer(bound: Bound) -> bool:
    """Whether a bound is one of watermarks, which are ahead of horizons."""
    return bool(bound) and all(clock.startswith(WATERMARK) for clock, _ in bound)


def _compared(term: Term) -> Iterator[tuple[Term, Term]]:
    """What is not less than what, in a comparison of times."""
    name = name_of(term)
    if name not in _GREATER and name not in _LESS and name not in _EQUAL:
        return
    if term.left().dataType().typeName() not in _TIMES:
        return
    if name in _GREATER or name in _EQUAL:
        yield term.left(), term.right()
    if name in _LESS or name in _EQUAL:
        yield term.right(), term.left()


def _anchored(catalyst: Catalyst, term: Term) -> tuple[Place, tuple[int, int]] | None:
    """The place that a term is, and by how much at least and at most it is more than that."""
    name = name_of(term)
    if name == "AttributeReference":
        return Place(term.exprId().id()), (0, 0)
    if name in _SAME:
        return _anchored(catalyst, term.child())
    if name == "GetStructField":
        inner = _anchored(catalyst, term.child())
        return (
            None
            if inner is None or inner[0].field is not None
            else (Place(inner[0].id, term.ordinal()), (0, 0))
        )
    moved = _moved(catalyst, term)
    if moved is None:
        return None
    child, (least, most) = moved
    inner = _anchored(catalyst, child)
    if inner is None:
        return None
    return inner[0], (inner[1][0] + least, inner[1][1] + most)


def _moved(catalyst: Catalyst, term: Term) -> tuple[Term, tuple[int, int]] | None:
    """The time that a term is computed from, and by how much at least and at most it is later."""
    name = name_of(term)
    if name in ("TimestampAddInterval", "Add", "Subtract"):
        child, other = catalyst.items(term.children())
        by = _amount(catalyst, other)
        if by is None:
            return None
        least, most = by
        return child, (-most, -least) if name == "Subtract" else (least, most)
    if name == "TruncTimestamp":
        unit, child = catalyst.items(term.children())
        length = _UNITS.get(str(unit.value()).upper()) if name_of(unit) == "Literal" else None
        return None if length is None else (child, (-length - OFFSETS, OFFSETS))
    if name == "Cast" and term.dataType().typeName() == "date":
        return term.child(), (-DAY - OFFSETS, OFFSETS)
    return None


def _amount(catalyst: Catalyst, term: Term) -> tuple[int, int] | None:
    """How large a number or an interval is at least and at most."""
    if name_of(term) == "CaseWhen":
        return _remainder(catalyst, term)
    kind = name_of(term.dataType())
    if name_of(term) != "Literal" or term.value() is None or kind not in ("DayTimeIntervalType", "LongType"):
        return None
    value = int(term.value())
    uneven = kind == "DayTimeIntervalType" and abs(value) >= DAY and not catalyst.even_days
    slack = OFFSETS if uneven else 0
    return value - slack, value + slack


def _remainder(catalyst: Catalyst, term: Term) -> tuple[int, int] | None:
    """`CASE WHEN x % n < 0 THEN x % n + n ELSE x % n END`: how Spark finds the begin of a window."""
    parts = catalyst.items(term.children())
    if [name_of(part) for part in parts] != ["LessThan", "Add", "Remainder"]:
        return None
    negative, positive, rest = parts
    length = rest.right()
    same = negative.left().semanticEquals(rest) and positive.left().semanticEquals(rest)
    if not same or not positive.right().semanticEquals(length) or name_of(length) != "Literal":
        return None
    return 0, int(length.value()) - 1
