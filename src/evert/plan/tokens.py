"""A text of SQL as tokens, cut where Spark's own lexer cuts it, so that no `;` inside a query ends a statement."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from evert.errors import BadStatement

Kind = Literal["word", "name", "text", "number", "sign", "end"]

_TOKEN = re.compile(
    r"(?P<space>\s+|--(?:\\\n|[^\r\n])*)"
    r"|(?P<name>`(?:[^`]|``)*`)"
    r"|(?P<text>[rR](?:'[^']*'|\"[^\"]*\")|'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<number>\d+(?:\.\d+)?(?!\w))"
    r"|(?P<word>\w+)"
    r"|(?P<sign>.)",
    re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_OPENED = {"`": "name", "'": "text", '"': "text"}


class Unfinished(BadStatement):
    """A quote or a comment that is never closed: more text may close it."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a `name`, a 'text', a number or a sign, and where it stands in the text."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def upper(self) -> str:
        """The word in capitals; nothing for what is quoted, which is never a keyword."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """What a quoted token says.

        >>> Token("text", "'it''s'", 0).value, Token("name", "`a b`", 0).value
        ("it's", 'a b')
        """
        if self.kind not in ("text", "name"):
            return self.text
        if self.text[0] in "rR":
            return self.text[2:-1]
        quote, body = self.text[0], self.text[1:-1]
        if self.kind == "text":
            return re.sub(rf"\\(.)|{quote}{quote}", lambda found: found[1] or quote, body, flags=re.DOTALL)
        return body.replace("``", "`")


def scan(text: str, source: str | None = None) -> list[Token]:
    """The tokens of a text, without spaces and comments.

    >>> [token.text for token in scan("SELECT ';' -- all; of it")]
    ['SELECT', "';'"]
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = _after_comment(text, at, source)
            continue
        match = _TOKEN.match(text, at)
        assert match is not None, "every character is at least a sign"
        kind = match.lastgroup
        if kind == "sign" and match[0] in _OPENED:
            what = "name in backquotes" if match[0] == "`" else "text in quotes"
            raise failed(text, at, f"this {what} is never closed", source=source, kind=Unfinished)
        if kind != "space":
            tokens.append(Token(kind, match[0], at))  # type: ignore[arg-type]
        at = match.end()
    return tokens


def failed(
    text: str,
    at: int,
    reason: str,
    *,
    source: str | None = None,
    hint: str | None = None,
    kind: type[BadStatement] = BadStatement,
) -> BadStatement:
    """The error for a place in the text."""
    line, column = place(text, at)
    where = f"{source}, line {line}" if source else f"line {line}"
    return kind(f"{where}, column {column}: {reason}", hint=hint, file=source, line=line, column=column)


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character, both counted from 1.

    >>> place("one\\ntwo", 5)
    (2, 2)
    """
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _after_comment(text: str, start: int, source: str | None) -> int:
    """Where a comment ends; comments nest, as in Spark."""
    level, at = 1, start + 2
    while level:
        mark = _COMMENT_MARK.search(text, at)
        if mark is None:
            raise failed(text, start, "this comment is never closed", source=source, kind=Unfinished)
        level += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at
