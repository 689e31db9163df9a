"""Queries that cannot be views: what Spark cannot read, and answers that do not depend on the log alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from evert.errors import BadQuery, UnknownRelation
from evert.plan.catalyst import ROWLESS, Catalyst
from evert.plan.expressions import name_of

_CLOCKS = {
    "CurrentBatchTimestamp": "current_timestamp()",
    "CurrentDate": "current_date()",
    "CurrentTime": "current_time()",
    "CurrentTimestamp": "current_timestamp()",
    "LocalTimestamp": "localtimestamp()",
    "Now": "now()",
}
_SESSION = {
    "CurrentCatalog": "current_catalog()",
    "CurrentDatabase": "current_schema()",
    "CurrentUser": "current_user()",
    "SparkVersion": "version()",
}
_RANDOM = {
    "AesEncrypt": "aes_encrypt()",
    "InputFileName": "input_file_name()",
    "MonotonicallyIncreasingID": "monotonically_increasing_id()",
    "Rand": "rand()",
    "Randn": "randn()",
    "RandStr": "randstr()",
    "Sample": "TABLESAMPLE",
    "Shuffle": "shuffle()",
    "SparkPartitionID": "spark_partition_id()",
    "Uniform": "uniform()",
    "Uuid": "uuid()",
}
_JAVA = {"CallMethodViaReflection": "reflect()", "TryReflect": "try_reflect()"}
_CONSTANT_LEAVES = {"CTERelationRef", "LocalRelation", "OneRowRelation", "Range", "UnionLoopRef"}
_DAY = r"(['\"])\s*(?:now|today|tomorrow|yesterday)\s*\1"
_KIND = r"(?:timestamp(?:_ntz|_ltz)?|date)\b"
_CLOCK_TEXT = re.compile(rf"\b{_KIND}\s*{_DAY}|{_DAY.replace('1', '2')}\s*(?:as|::)\s*{_KIND}", re.IGNORECASE)
_PLACE = re.compile(r"line (\d+),? pos (\d+)")


@contextmanager
def spark_words(names: Sequence[str]) -> Iterator[None]:
    """Errors of parsing and analysis become ours, in Spark's words; `names` are the relations that exist."""
    with Catalyst.quietly():
        try:
            yield
        except Catalyst.query_errors() as error:
            raise _translated(error, names) from None
        except Catalyst.failures() as error:
            if ROWLESS not in str(error):
                raise
            raise BadQuery(
                "the view's function runs a query while it is planned, when there are no rows yet",
                hint="leave out count(), collect() and the like, and give pivot() its values",
            ) from None


def _translated(error: Any, names: Sequence[str]) -> Exception:
    text = str(error).strip()
    first = re.sub(r"^\[\w+(\.\w+)*\] ", "", re.split(r"\n\n== SQL|;?\n'|; line \d|;\n", text)[0])
    message = re.sub(r"\s*SQLSTATE: \w+", "", first).strip().splitlines()[0]
    place = _PLACE.search(text)
    line, at = (int(place[1]), int(place[2])) if place else (None, None)
    condition = error.getCondition()
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = error.getMessageParameters()["relationName"].replace("`", "")
        return unknown(name, names, {"line": line, "at": at})
    return BadQuery(message, condition=condition, line=line, at=at)


def unknown(name: str, names: Sequence[str], place: Mapping[str, Any]) -> UnknownRelation:
    """The error for a relation that is none of these; `place` has the line and where in it the name stands."""
    where = {"line": place.get("line"), "at": place.get("at")}
    return UnknownRelation(
        f"there is no topic or view {name!r}", hint=_close(name, names), name=name, **where
    )


def _close(name: str, names: Sequence[str]) -> str:
    near = get_close_matches(name.lower(), [one.lower() for one in names], n=3)
    close = [one for one in names if one.lower() in near]
    if close:
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    return "the topics and views are " + ", ".join(sorted(names)) if names else "there are no topics yet"


def check_text(query: str) -> None:
    """Raises BadQuery for literals that mean the moment at which the query is read."""
    if found := _CLOCK_TEXT.search(query):
        raise BadQuery(
            f"{found[0]} is the time at which the query is read, so the view would change with every restart",
            hint="write the time out, or compare with a column of the topic",
        )


def check(catalyst: Catalyst, plan: Any, ours: Collection[int]) -> list[int]:
    """Raises BadQuery for an analysed plan that cannot be a view; gives the relations that it reads."""
    if plan.isStreaming():
        raise BadQuery("a view cannot read a streaming DataFrame", hint="read a topic with spark.table(name)")
    found = catalyst.classes(plan)
    for one in found:
        _check_class(one)
    if not plan.deterministic():
        raise _changing("a nondeterministic function")
    reads: list[int] = []
    for leaf in catalyst.leaves(plan):
        placeholder = catalyst.relation(leaf)
        if placeholder is not None and placeholder in ours:
            reads.append(placeholder)
        elif name_of(leaf) not in _CONSTANT_LEAVES:
            raise BadQuery(
                f"the query reads {leaf.nodeName()}, which is no topic or view of this database",
                hint="append that data to a topic and read the topic",
            )
    _check_names([attribute.name() for attribute in catalyst.items(plan.output())])
    return list(dict.fromkeys(reads))


def _check_class(one: dict[str, Any]) -> None:
    name = one["class"]
    if name in _CLOCKS:
        raise BadQuery(
            f"{_CLOCKS[name]} changes without any change of the log, so the view would never be up to date",
            hint="compare a column of the topic with now() in WHERE, or filter by time when reading the view",
        )
    if name in _SESSION:
        raise BadQuery(f"{_SESSION[name]} depends on the session that computes the view")
    if name in _RANDOM:
        raise _changing(_RANDOM[name])
    if name in _JAVA:
        raise BadQuery(f"{_JAVA[name]} calls any Java method, and a view may not")
    if "udfDeterministic" in one and one["udfDeterministic"] is False:
        raise _changing(f"the function {one.get('name', 'of a user')}")


def _changing(what: str) -> BadQuery:
    return BadQuery(
        f"{what} gives another answer each time, so the view could not be kept up to date",
        hint="compute such values before appending the rows",
    )


def _check_names(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise BadQuery(
                f"two columns of the view are named {name!r}", hint="name one of them with AS", column=name
            )
        seen.add(name.lower())
