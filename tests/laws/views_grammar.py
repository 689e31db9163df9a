"""A grammar of views: every operator there is, nested three deep."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.laws.choices import Dice
from tests.laws.expressions import comparable, condition, expression
from tests.laws.values import COMPARABLE, FLOATING

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Relation:
    """What a query can read: columns with their kinds, about how many rows, and what is known of them."""

    name: str
    columns: Columns
    rows: int
    append_only: bool = False
    group: str | None = None
    """The group in which it is kept if not in the usual one: views that read two such groups are refused."""


@dataclass(frozen=True)
class Query:
    """A SELECT and the same about its result."""

    sql: str
    columns: Columns
    rows: int
    append_only: bool = False
    recomputed: bool = False


@dataclass(frozen=True)
class Source:
    """What stands after FROM; columns by their full reference."""

    sql: str
    scope: Columns
    rows: int
    append_only: bool
    recomputed: bool


MOST_PAIRS = 2500
PLAIN = [
    "project",
    "project",
    "union",
    "generate",
    "group",
    "group",
    "sets",
    "distinct",
    "join",
    "join",
    "total",
    "outer join",
    "outer join",
    "semi",
    "in",
    "existence",
    "scalar",
    "extremes",
    "count distinct",
    "others",
    "window",
    "window",
    "rank",
    "rank",
    "top",
    "set",
    "sessions",
]


@dataclass
class Grammar:
    """Makes queries over relations that grow with the views made of them."""

    dice: Dice
    relations: list[Relation]
    group: str | None = None
    aliases: int = 0
    shapes: list[str] = field(default_factory=lambda: list(PLAIN))

    def view(self, *, recomputed: bool) -> Query:
        """The query of the next view."""
        self.group = None
        self.aliases = 0
        if recomputed:
            return self._recursive()
        return self.query(self.dice.number(0, 3))

    def query(self, depth: int) -> Query:
        return self._of(self.dice.pick(self.shapes), depth)

    def _of(self, shape: str, depth: int) -> Query:
        match shape:
            case "union":
                return self._union(depth)
            case "generate":
                return self._generate(depth)
            case "group" | "sets" | "extremes" | "count distinct" | "others":
                return self._group(depth, shape)
            case "total":
                return self._total(depth)
            case "distinct":
                return self._distinct(depth)
            case "join" | "outer join" | "semi" | "in" | "existence" | "scalar":
                return self._join(depth, shape)
            case "window" | "rank" | "top":
                return self._ordered(depth, shape)
            case "set":
                return self._set(depth)
            case "sessions":
                return self._sessions(depth)
        return self._project(depth)

    def _source(self, depth: int) -> Source:
        dice = self.dice
        alias = f"s{self.aliases}"
        self.aliases += 1
        if depth > 0 and dice.chance(60):
            inner = self.query(depth - 1)
            scope = tuple((f"{alias}.{name}", kind) for name, kind in inner.columns)
            return Source(f"({inner.sql}) {alias}", scope, inner.rows, inner.append_only, inner.recomputed)
        fitting = [r for r in self.relations if r.group is None or self.group in (None, r.group)]
        chosen = dice.pick(fitting)
        self.group = chosen.group or self.group
        return self._read(chosen, alias)

    def _read(self, relation: Relation, alias: str) -> Source:
        scope = tuple((f"{alias}.{name}", kind) for name, kind in relation.columns)
        return Source(f"{relation.name} {alias}", scope, relation.rows, relation.append_only, False)

    def _chosen(self, scope: Columns, least: int = 1, most: int = 4) -> tuple[str, Columns]:
        """The list of a SELECT over the columns, and what it gives."""
        dice = self.dice
        terms = []
        for name, kind in dice.some(scope, least, most):
            if dice.chance(45):
                kind = dice.pick(["int", "str", "bool", "dbl", "dec", kind])
                terms.append((expression(dice, kind, scope), kind))
            else:
                terms.append((name, kind))
        return self._named(terms)

    def _named(self, terms: list[tuple[str, str]]) -> tuple[str, Columns]:
        listed = ", ".join(f"{term} AS a{i}" for i, (term, _) in enumerate(terms))
        return listed, tuple((f"a{i}", kind) for i, (_, kind) in enumerate(terms))

    def _where(self, scope: Columns, percent: int = 40) -> str:
        return f" WHERE {condition(self.dice, scope)}" if self.dice.chance(percent) else ""

    def _project(self, depth: int) -> Query:
        source = self._source(depth)
        listed, columns = self._chosen(source.scope, 1, 5)
        sql = f"SELECT {listed} FROM {source.sql}{self._where(source.scope, 60)}"
        return Query(sql, columns, source.rows, source.append_only, source.recomputed)

    def _union(self, depth: int) -> Query:
        first, second = self._source(depth), self._source(depth)
        listed, columns = self._chosen(first.scope)
        terms = [(expression(self.dice, kind, second.scope, 1), kind) for _, kind in columns]
        other, _ = self._named(terms)
        sql = (
            f"SELECT {listed} FROM {first.sql}{self._where(first.scope)}"
            f" UNION ALL SELECT {other} FROM {second.sql}{self._where(second.scope)}"
        )
        both = first.append_only and second.append_only
        return Query(sql, columns, first.rows + second.rows, both, first.recomputed or second.recomputed)

    def _generate(self, depth: int) -> Query:
        dice = self.dice
        source = self._source(depth)
        outer = "OUTER " if dice.chance(40) else ""
        kind = dice.pick(["ints", "strs", "structs", "map"])
        rows = expression(dice, kind, source.scope, 1)
        made, function, names = {
            "ints": ((("g.e", "int"),), "explode", "e"),
            "strs": ((("g.e", "str"),), "explode", "e"),
            "structs": ((("g.p", "int"), ("g.q", "str")), "inline", "p, q"),
            "map": ((("g.k", "str"), ("g.v", "int")), "explode", "k, v"),
        }[kind]
        if function == "explode" and dice.chance(40):
            made, function, names = (("g.i", "int"), *made), "posexplode", f"i, {names}"
        scope = (*source.scope, *made)
        listed, columns = self._chosen(scope, 1, 4)
        listed, columns = self._with(listed, columns, made)
        sql = (
            f"SELECT {listed} FROM {source.sql} LATERAL VIEW {outer}{function}({rows}) g AS {names}"
            f"{self._where(scope)}"
        )
        return Query(sql, columns, source.rows * 2, source.append_only, source.recomputed)

    def _with(self, listed: str, columns: Columns, made: Columns) -> tuple[str, Columns]:
        more = [(term, f"m{i}", kind) for i, (term, kind) in enumerate(made)]
        listed = ", ".join([listed, *(f"{term} AS {name}" for term, name, _ in more)])
        return listed, (*columns, *((name, kind) for _, name, kind in more))

    def _keys(self, scope: Columns) -> list[tuple[str, str]]:
        """Terms to group by."""
        dice = self.dice
        able = [c for c in scope if c[1] in (*COMPARABLE, "ints", "struct")]
        keys = dice.some(able, 1, 2)
        if not keys or dice.chance(30):
            kind = dice.pick(["int", "str", "bool", "date"])
            term = expression(dice, kind, scope, 1)
            keys.append((f"coalesce({term}, 0)" if kind == "int" else term, kind))
        return list(dict.fromkeys(keys))

    def _calls(self, scope: Columns, shape: str) -> list[tuple[str, str]]:
        dice = self.dice
        options = ["count", "count one", "sum", "sum", "avg", "count_if", "sum noisy", "filtered"]
        if shape == "extremes":
            options = ["min", "max", "min", "max", *options[:3]]
        if shape == "others":
            options = ["other", "other", *options[:3]]
        calls = [self._call(dice.pick(options), scope) for _ in range(dice.number(1, 3))]
        if shape == "count distinct":
            name, _ = dice.pick(comparable(scope) or [("1", "int")])
            where = f" FILTER (WHERE {condition(dice, scope)})" if dice.chance(25) else ""
            calls.append((f"count(DISTINCT {name}){where}", "int"))
            if dice.chance(40):
                calls.append((f"sum(DISTINCT {expression(dice, 'int', scope, 1)})", "int"))
        return calls

    def _call(self, name: str, scope: Columns) -> tuple[str, str]:
        dice = self.dice
        match name:
            case "count":
                return "count(*)", "int"
            case "count one":
                return f"count({dice.pick(scope)[0]})", "int"
            case "sum":
                kind = dice.pick(["int", "dec", "dbl", "span"])
                return f"sum({expression(dice, kind, scope, 1)})", kind
            case "sum noisy":
                return f"sum({expression(dice, 'noisy', scope, 1)})", "noisy"
            case "avg":
                kind = dice.pick(["int", "dbl", "dec"])
                result = "dec" if kind == "dec" else "noisy"
                return f"avg({expression(dice, kind, scope, 1)})", result
            case "count_if":
                return f"count_if({condition(dice, scope)})", "int"
            case "filtered":
                kind = dice.pick(["int", "dec"])
                return (
                    f"sum({expression(dice, kind, scope, 1)}) FILTER (WHERE {condition(dice, scope)})",
                    kind,
                )
            case "other":
                return self._other(scope)
        kind = dice.pick([kind for _, kind in comparable(scope) if kind not in ("dbl", "wdbl")] or ["int"])
        return f"{name}({expression(dice, kind, scope, 1)})", kind

    def _other(self, scope: Columns) -> tuple[str, str]:
        """A function that is computed from all rows of a group, whose order does not matter to it."""
        dice = self.dice
        x, y = (expression(dice, "int", scope, 1) for _ in range(2))
        options = [
            (f"stddev({x})", "noisy"),
            (f"corr({x}, {y})", "noisy"),
            (f"percentile({x}, 0.5)", "noisy"),
            (f"bit_xor({x})", "int"),
            (f"array_size(collect_set({x}))", "int"),
            (f"sort_array(collect_list(CAST({x} AS INT)))", "ints"),
            (f"approx_count_distinct({x})", "int"),
            (f"max_by({x}, struct({x}, {y}))", "int"),
            (f"bool_or({condition(dice, scope)})", "bool"),
        ]
        return dice.pick(options)

    def _group(self, depth: int, shape: str) -> Query:
        dice = self.dice
        source = self._source(depth)
        keys = self._keys(source.scope)
        calls = self._calls(source.scope, shape)
        listed, columns = self._named([*keys, *calls])
        groups = ", ".join(term for term, _ in keys)
        if shape == "sets":
            groups = dice.pick([f"ROLLUP ({groups})", f"CUBE ({groups})", f"GROUPING SETS (({groups}), ())"])
        having = f" HAVING {dice.pick(['count(*) > 1', 'count(*) <= 2'])}" if dice.chance(20) else ""
        sql = f"SELECT {listed} FROM {source.sql}{self._where(source.scope)} GROUP BY {groups}{having}"
        return Query(sql, columns, min(source.rows, 20), False, source.recomputed)

    def _total(self, depth: int) -> Query:
        source = self._source(depth)
        shape = self.dice.pick(["group", "group", "extremes", "count distinct", "others"])
        listed, columns = self._named(self._calls(source.scope, shape))
        sql = f"SELECT {listed} FROM {source.sql}{self._where(source.scope)}"
        return Query(sql, columns, 1, False, source.recomputed)

    def _distinct(self, depth: int) -> Query:
        dice = self.dice
        source = self._source(depth)
        able = [c for c in source.scope if c[1] in (*COMPARABLE, "ints", "struct")]
        listed, columns = self._named(
            dice.some(able, 1, 2) or [(expression(dice, "int", source.scope), "int")]
        )
        sql = f"SELECT DISTINCT {listed} FROM {source.sql}{self._where(source.scope)}"
        return Query(sql, columns, min(source.rows, 30), source.append_only, source.recomputed)

    def _join(self, depth: int, shape: str) -> Query:
        dice = self.dice
        left = self._source(depth)
        if dice.chance(20) and "(" not in left.sql:
            name = left.sql.split()[0]
            alias = f"s{self.aliases}"
            self.aliases += 1
            right = self._read(next(r for r in self.relations if r.name == name), alias)
        else:
            right = self._source(depth)
        if left.rows * right.rows > MOST_PAIRS:
            return self._project(0)
        on = self._on(left.scope, right.scope)
        scope = (*left.scope, *right.scope)
        recomputed = left.recomputed or right.recomputed
        append_only = left.append_only and right.append_only
        if shape in ("semi", "in", "existence", "scalar"):
            return self._tested(left, right, on, shape)
        listed, columns = self._chosen(scope, 1, 5)
        if shape == "outer join":
            kind = dice.pick(["LEFT", "RIGHT", "FULL"] if on and " = " in on else ["LEFT", "RIGHT"])
            sql = f"SELECT {listed} FROM {left.sql} {kind} JOIN {right.sql} ON {on or 'true'}"
            sql += self._where(scope, 20)
            return Query(sql, columns, left.rows * right.rows // 3 + left.rows, False, recomputed)
        join = f"JOIN {right.sql} ON {on}" if on else f"CROSS JOIN {right.sql}"
        sql = f"SELECT {listed} FROM {left.sql} {join}{self._where(scope, 30)}"
        rows = left.rows * right.rows // (3 if on else 1)
        return Query(sql, columns, max(1, rows), append_only, recomputed)

    def _tested(self, left: Source, right: Source, on: str | None, shape: str) -> Query:
        """Rows of the left by what is found on the right."""
        dice = self.dice
        listed, columns = self._chosen(left.scope)
        found = f"SELECT 1 FROM {right.sql} WHERE {on or 'true'}"
        recomputed = left.recomputed or right.recomputed
        if shape == "semi":
            word = dice.pick(["EXISTS", "NOT EXISTS"])
            sql = f"SELECT {listed} FROM {left.sql} WHERE {word} ({found})"
            return Query(sql, columns, left.rows, False, recomputed)
        if shape == "in":
            kind = dice.pick(["int", "str"])
            one, two = expression(dice, kind, left.scope, 1), expression(dice, kind, right.scope, 1)
            where = self._where(right.scope)
            word = dice.pick(["IN", "NOT IN"])
            sql = f"SELECT {listed} FROM {left.sql} WHERE {one} {word} (SELECT {two} FROM {right.sql}{where})"
            return Query(sql, columns, left.rows, False, recomputed)
        if shape == "existence":
            test = f"EXISTS ({found}) OR {condition(dice, left.scope)}"
            sql = f"SELECT {listed} FROM {left.sql} WHERE {test}"
            return Query(sql, columns, left.rows, False, recomputed)
        call = dice.pick(["count(*)", f"max({expression(dice, 'int', right.scope, 1)})"])
        where = dice.pick([f" WHERE {on}" if on and "<=>" not in on and "(" not in on else "", ""])
        listed, columns = self._with(listed, columns, ((f"(SELECT {call} FROM {right.sql}{where})", "int"),))
        return Query(f"SELECT {listed} FROM {left.sql}", columns, left.rows, False, recomputed)

    def _on(self, left: Columns, right: Columns) -> str | None:
        dice = self.dice
        pairs = [
            (one, two, kind) for one, kind in left for two, other in right if kind == other in COMPARABLE
        ]
        if not pairs or dice.chance(10):
            kind = dice.pick(["int", "str", "none"])
            if kind == "none":
                return None
            return f"{expression(dice, kind, left, 1)} = {expression(dice, kind, right, 1)}"
        found = []
        for one, two, _ in dice.some(pairs, 1, 2):
            found.append(f"{one} {'<=>' if dice.chance(25) else '='} {two}")
        if dice.chance(25):
            found.append(f"({condition(dice, (*left, *right))})")
        return " AND ".join(found)

    def _ordered(self, depth: int, shape: str) -> Query:
        """Rows by their place: all columns that are shown decide it, so that ties do not matter."""
        dice = self.dice
        source = self._source(depth)
        able = [c for c in source.scope if c[1] in COMPARABLE and c[1] not in FLOATING]
        terms = dice.some(able, 1, 3) or [(expression(dice, "int", source.scope), "int")]
        listed, columns = self._named(terms)
        order = ", ".join(f"{term} {dice.pick(['ASC', 'DESC'])}" for term, _ in terms)
        if shape == "top":
            offset = f" OFFSET {dice.number(1, 3)}" if dice.chance(30) else ""
            sql = f"SELECT {listed} FROM {source.sql} ORDER BY {order} LIMIT {dice.number(1, 5)}{offset}"
            return Query(sql, columns, 5, False, source.recomputed)
        by = f"PARTITION BY {dice.pick(terms)[0]} " if dice.chance(85) else ""
        if shape == "rank":
            function = dice.pick(["row_number()", "rank()", "dense_rank()"])
            limit = dice.pick(["place <= 2", "place < 4", "place = 1", "place <= 3 AND place > 1"])
            inner = f"SELECT {listed}, {function} OVER ({by}ORDER BY {order}) AS place FROM {source.sql}"
            sql = f"SELECT * FROM ({inner}) WHERE {limit}"
            return Query(sql, (*columns, ("place", "int")), source.rows, False, source.recomputed)
        term = dice.pick(terms)[0]
        function, kind, framed = dice.pick(
            [
                ("row_number()", "int", False),
                ("rank()", "int", False),
                ("ntile(3)", "int", False),
                ("percent_rank()", "noisy", False),
                ("cume_dist()", "noisy", False),
                (f"hash(lag({term}))", "int", False),
                (f"hash(lead({term}, 2))", "int", False),
                ("count(*)", "int", True),
                (f"count({term})", "int", True),
                (f"hash(max({term}))", "int", True),
                (f"hash(first_value({term}))", "int", True),
            ]
        )
        if function.startswith("hash("):
            inner, function = function[5:-1], "hash"
        else:
            inner, function = function, ""
        frame = ""
        if framed:
            frame = dice.pick(["", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING"])
        over = f"{inner} OVER ({by}ORDER BY {order}{frame})"
        sql = f"SELECT {listed}, {function}({over}) AS place FROM {source.sql}"
        return Query(sql, (*columns, ("place", kind)), source.rows, False, source.recomputed)

    def _set(self, depth: int) -> Query:
        dice = self.dice
        first, second = self._source(depth), self._source(depth)
        able = comparable(first.scope) or [("1", "int")]
        terms = [c for c in dice.some(able, 1, 2) if c[1] not in FLOATING] or [("1", "int")]
        listed, columns = self._named(terms)
        other, _ = self._named([(expression(dice, kind, second.scope, 1), kind) for _, kind in terms])
        word = dice.pick(["EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"])
        sql = f"SELECT {listed} FROM {first.sql} {word} SELECT {other} FROM {second.sql}"
        return Query(sql, columns, first.rows, False, first.recomputed or second.recomputed)

    def _sessions(self, depth: int) -> Query:
        dice = self.dice
        source = self._source(depth)
        moments = [name for name, kind in source.scope if kind == "ts"]
        if not moments:
            return self._project(depth)
        window = dice.pick(
            [
                f"session_window({moments[0]}, '1 hour')",
                f"session_window({moments[0]}, '20000 days')",
                f"window({moments[0]}, '1 hour')",
                f"window({moments[0]}, '1 hour', '30 minutes')",
            ]
        )
        keys = dice.some([c for c in source.scope if c[1] in ("int", "str", "bool")], 0, 1)
        names = "".join(f", {name}" for name, _ in keys)
        ends = dice.pick(["min", "max", "count"])
        of = expression(dice, "int", source.scope, 1)
        listed, columns = self._named([("w.start", "ts"), ("w.end", "ts"), ("n", "int"), ("m", "int")])
        made = f"{window} AS w, count(*) AS n, {ends}({of}) AS m"
        inner = f"SELECT {made} FROM {source.sql} GROUP BY {window}{names}"
        return Query(f"SELECT {listed} FROM ({inner})", columns, source.rows, False, source.recomputed)

    def _recursive(self) -> Query:
        """What can only be recomputed."""
        source = self._source(0)
        start, end = expression(self.dice, "int", source.scope, 1), self.dice.number(1, 4)
        seed = f"SELECT CAST({start} AS BIGINT) AS n FROM {source.sql}"
        step = f"SELECT n + 1 FROM r WHERE n < {end} AND n > -5"
        sql = f"WITH RECURSIVE r AS ({seed} UNION ALL {step}) SELECT n AS a0 FROM r"
        return Query(sql, (("a0", "int"),), source.rows * 5, False, recomputed=True)
