"""Reads Spark's text form of a column list, without a JVM.

    session STRING NOT NULL COMMENT 'who', at TIMESTAMP, items ARRAY<STRUCT<sku: STRING, n: INT NOT NULL>>

What Spark 4.2 reads is read the same way, with these differences: `name: TYPE` is also taken at the top
level, a STRUCT needs a field, types nest at most `MAX_DEPTH` deep, and types that Arrow or Parquet cannot
carry are refused. The rules for names and for names given twice are those of `schema.check_names`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from evert.errors import BadSchema
from evert.schema.types import (
    DAY_TIME_UNITS,
    MAX_DEPTH,
    MAX_PRECISION,
    Array,
    Atom,
    Column,
    DataType,
    Decimal,
    Interval,
    Map,
    Struct,
    Text,
    Time,
)

_ATOM_WORDS = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "BYTE": "TINYINT",
    "SMALLINT": "SMALLINT",
    "SHORT": "SMALLINT",
    "INT": "INT",
    "INTEGER": "INT",
    "BIGINT": "BIGINT",
    "LONG": "BIGINT",
    "FLOAT": "FLOAT",
    "REAL": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BINARY": "BINARY",
    "DATE": "DATE",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ",
    "VOID": "VOID",
}
_DECIMAL_WORDS = ("DECIMAL", "DEC", "NUMERIC")
_OTHER_WORDS = (
    "STRING",
    "CHAR",
    "CHARACTER",
    "VARCHAR",
    "TIME",
    "TIMESTAMP",
    "INTERVAL",
    "ARRAY",
    "MAP",
    "STRUCT",
)
_KNOWN_WORDS = (*_ATOM_WORDS, *_DECIMAL_WORDS, *_OTHER_WORDS)

_NOT_CARRIED = {
    "VARIANT": "store it as STRING (JSON text) and read it with parse_json in the view",
    "GEOMETRY": "store it as BINARY (WKB)",
    "GEOGRAPHY": "store it as BINARY (WKB)",
    "OBJECT": "store it as a STRUCT, or as STRING (JSON text)",
}
_SAID_ELSEWHERE = {
    "TEXT": "STRING",
    "BOOL": "BOOLEAN",
    "JSON": "STRING",
    "UUID": "STRING",
    "BLOB": "BINARY",
    "BYTES": "BINARY",
    "VARBINARY": "BINARY",
    "NUMBER": "DECIMAL",
    "INT8": "TINYINT",
    "INT16": "SMALLINT",
    "INT32": "INT",
    "INT64": "BIGINT",
    "FLOAT32": "FLOAT",
    "FLOAT64": "DOUBLE",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMPTZ": "TIMESTAMP",
    "LIST": "ARRAY",
}

_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\r\n]*)"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<text>[rR]?(?:'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"))"
    r"|(?P<word>[A-Za-z0-9_]+)"
    r"|(?P<sign>[<>(),:.])",
    re.DOTALL,
)
_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


def parse_columns(text: str) -> tuple[Column, ...]:
    """The columns of a DDL text; a place that cannot be read is named by line and column of the text."""
    return _Parser(text).columns()


def _unescape(literal: str) -> str:
    if literal[0] in "rR":
        return literal[2:-1]
    quote = literal[0]
    parts = []
    body = literal[1:-1]
    at = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[at : match.start()].replace(quote * 2, quote))
        code = match[1]
        if len(code) > 1:
            number = int(code, 8) if code[0] not in "uU" else int(code[1:], 16)
            parts.append(chr(number) if number < 0x110000 else match[0])
        else:
            parts.append(_ESCAPES.get(code, code))
        at = match.end()
    parts.append(body[at:].replace(quote * 2, quote))
    return "".join(parts)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._next = 0
        self._path: list[str] = []
        self._depth = 0
        self._tokens = self._scan()

    def columns(self) -> tuple[Column, ...]:
        if self._peek().kind == "end":
            raise BadSchema("the schema has no columns", hint="for example: id BIGINT NOT NULL, note STRING")
        found = [self._column()]
        while self._take(","):
            found.append(self._column())
        if self._peek().kind != "end":
            self._unexpected("',' or the end of the schema")
        return tuple(found)

    # The text as tokens

    def _scan(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while at < len(self._text):
            if self._text.startswith("/*", at):
                at = self._after_comment(at)
                continue
            match = _TOKEN.match(self._text, at)
            if match is None:
                self._fail(at, f"{self._text[at]!r} has no meaning here; odd names go in `backquotes`")
            if match.lastgroup != "space":
                tokens.append(_Token(str(match.lastgroup), match[0], at))
            at = match.end()
        tokens.append(_Token("end", "", len(self._text)))
        return tokens

    def _after_comment(self, start: int) -> int:
        level, at = 1, start + 2
        while level:
            mark = re.compile(r"/\*|\*/").search(self._text, at)
            if mark is None:
                self._fail(start, "this comment is never closed")
            level += 1 if mark[0] == "/*" else -1
            at = mark.end()
        return at

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self, sign: str) -> bool:
        token = self._peek()
        if token.kind == "sign" and token.text == sign:
            self._next += 1
            return True
        return False

    def _take_word(self, word: str) -> bool:
        if self._peek().upper == word:
            self._next += 1
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            self._unexpected(f"'{sign}'")

    def _need_words(self, *words: str) -> None:
        for word in words:
            if not self._take_word(word):
                self._unexpected(word)

    # Columns and their types

    def _column(self) -> Column:
        token = self._peek()
        if token.kind == "name":
            name = token.text[1:-1].replace("``", "`")
        elif token.kind == "word" and not token.text.isdigit():
            name = token.text
        else:
            self._unexpected("a column name")
        self._next += 1
        self._path.append(name)
        self._take(":")
        kind = self._type()
        nullable = True
        if self._take_word("NOT"):
            self._need_words("NULL")
            nullable = False
        comment = self._comment() if self._take_word("COMMENT") else None
        self._path.pop()
        return Column(name, kind, nullable, comment)

    def _comment(self) -> str:
        parts = []
        while self._peek().kind == "text":
            parts.append(_unescape(self._peek().text))
            self._next += 1
        if not parts:
            self._unexpected("the comment's text in quotes")
        return "".join(parts)

    def _type(self) -> DataType:
        token = self._peek()
        if token.kind != "word":
            self._unexpected("a type")
        self._next += 1
        word = token.upper
        if word in ("ARRAY", "MAP", "STRUCT"):
            return self._nested(word, token)
        if word in _ATOM_WORDS:
            return Atom(_ATOM_WORDS[word])
        if word in _DECIMAL_WORDS:
            return self._decimal(token)
        if word == "STRING":
            return Text(collation=self._collation() if self._take_word("COLLATE") else None)
        if word in ("CHAR", "CHARACTER", "VARCHAR"):
            return self._sized("CHAR" if word != "VARCHAR" else word, token)
        if word == "TIME":
            return self._time(token)
        if word == "TIMESTAMP":
            return self._timestamp()
        if word == "INTERVAL":
            return self._interval(token)
        return self._refuse_type(token)

    def _nested(self, word: str, token: _Token) -> DataType:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail(token.at, f"types nest deeper than {MAX_DEPTH} levels", hint="split it into columns")
        self._need("<")
        kind: DataType
        if word == "ARRAY":
            self._path.append("element")
            kind = Array(self._type())
            self._path.pop()
            self._refuse_not_null("the elements of an ARRAY")
        elif word == "MAP":
            self._path.append("key")
            key = self._type()
            self._need(",")
            self._path[-1] = "value"
            kind = Map(key, self._type())
            self._path.pop()
            self._refuse_not_null("the values of a MAP")
        else:
            if self._peek().text == ">":
                self._fail(token.at, "a STRUCT needs at least one field; Parquet cannot hold an empty one")
            fields = [self._column()]
            while self._take(","):
                fields.append(self._column())
            kind = Struct(tuple(fields))
        self._need(">")
        self._depth -= 1
        return kind

    def _refuse_not_null(self, what: str) -> None:
        if self._peek().upper == "NOT":
            self._fail(
                self._peek().at,
                f"NOT NULL cannot be said of {what}",
                hint="only STRUCT fields can be NOT NULL",
            )

    def _number(self) -> int:
        token = self._peek()
        if token.kind != "word" or not token.text.isdigit() or len(token.text) > 9:
            self._unexpected("a number")
        self._next += 1
        return int(token.text)

    def _decimal(self, token: _Token) -> DataType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number()
            if self._take(","):
                scale = self._number()
            self._need(")")
        if not 1 <= precision <= MAX_PRECISION:
            self._fail(token.at, f"DECIMAL has 1 to {MAX_PRECISION} digits, not {precision}")
        if scale > precision:
            self._fail(token.at, f"DECIMAL({precision},{scale}) has more digits after the point than in all")
        return Decimal(precision, scale)

    def _collation(self) -> str | None:
        names = []
        while True:
            token = self._peek()
            if token.kind not in ("word", "name"):
                self._unexpected("the name of a collation")
            names.append(token.text.strip("`"))
            self._next += 1
            if not self._take("."):
                break
        name = names[-1].upper()
        if not re.fullmatch(r"\w+", name):
            self._fail(token.at, f"{names[-1]!r} is not the name of a collation")
        return None if name == "UTF8_BINARY" else name

    def _sized(self, kind: str, token: _Token) -> DataType:
        if not self._take("("):
            self._fail(token.at, f"{kind} needs a length", hint=f"write {kind}(20), or STRING for any length")
        length = self._number()
        self._need(")")
        if length < 1:
            self._fail(token.at, f"{kind}({length}) can hold nothing")
        return Text(kind, length)

    def _time(self, token: _Token) -> DataType:
        precision = 6
        if self._take("("):
            precision = self._number()
            self._need(")")
        if precision > 6:
            self._fail(
                token.at, f"TIME({precision}) is finer than microseconds", hint="the finest is TIME(6)"
            )
        if self._take_word("WITHOUT"):
            self._need_words("TIME", "ZONE")
        return Time(precision)

    def _timestamp(self) -> DataType:
        if self._take_word("WITHOUT"):
            self._need_words("TIME", "ZONE")
            return Atom("TIMESTAMP_NTZ")
        if self._take_word("WITH"):
            self._need_words("LOCAL", "TIME", "ZONE")
        return Atom("TIMESTAMP")

    def _interval(self, token: _Token) -> DataType:
        start = self._peek().upper
        if start not in DAY_TIME_UNITS:
            said = f"INTERVAL {start}" if start in ("YEAR", "MONTH") else "INTERVAL without units"
            self._not_carried(said, "use INTERVAL DAY TO SECOND, or count months in an INT column")
        self._next += 1
        end = start
        if self._take_word("TO"):
            end = self._peek().upper
            finer = DAY_TIME_UNITS[DAY_TIME_UNITS.index(start) + 1 :]
            if end not in finer:
                self._unexpected(" or ".join(finer) if finer else "no TO after SECOND")
            self._next += 1
        return Interval(start, end)

    def _refuse_type(self, token: _Token) -> NoReturn:
        word = token.upper
        if word in _NOT_CARRIED:
            self._not_carried(word, _NOT_CARRIED[word])
        close = (
            [_SAID_ELSEWHERE[word]] if word in _SAID_ELSEWHERE else get_close_matches(word, _KNOWN_WORDS, n=1)
        )
        hint = f"did you mean {close[0]}?" if close else "known types: " + ", ".join(sorted(_KNOWN_WORDS))
        self._fail(
            token.at, f"column {self._here()}: there is no type {token.text}", hint=hint, type=token.text
        )

    def _not_carried(self, kind: str, way_out: str) -> NoReturn:
        raise BadSchema(
            f"column {self._here()}: {kind} cannot be carried by Arrow and Parquet",
            hint=way_out,
            column=self._here(),
            type=kind,
        )

    # Saying where

    def _here(self) -> str:
        return ".".join(self._path)

    def _unexpected(self, wanted: str) -> NoReturn:
        token = self._peek()
        found = "the end of the text" if token.kind == "end" else repr(token.text)
        hint = None
        if token.upper in ("DEFAULT", "GENERATED", "PRIMARY", "CHECK", "UNIQUE", "NULL"):
            hint = "after its type a column has only NOT NULL and then COMMENT 'text'"
        self._fail(token.at, f"expected {wanted}, found {found}", hint=hint)

    def _fail(self, at: int, reason: str, *, hint: str | None = None, type: str | None = None) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        place = at - (self._text.rfind("\n", 0, at) + 1) + 1
        around = self._text[max(0, at - 20) : at + 20].replace("\n", " ")
        raise BadSchema(
            f"the schema cannot be read at line {line}, character {place} (near {around!r}): {reason}",
            hint=hint,
            line=line,
            character=place,
            column=self._here() or None,
            type=type,
        )
