"""Takes the tokens of one statement apart, word by word, and says what it expected instead."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from evert.errors import BadStatement
from evert.plan.tokens import Token, failed

_UNITS = ("SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MILLISECOND", "MICROSECOND")


class Parser:
    """The tokens of one statement, and how far they are read."""

    def __init__(self, text: str, tokens: Sequence[Token], source: str | None = None) -> None:
        self.text = text
        self._source = source
        self._tokens = tokens
        self._next = 0
        self._last = Token("end", "", tokens[-1].end)

    def peek(self, ahead: int = 0) -> Token:
        at = self._next + ahead
        return self._tokens[at] if at < len(self._tokens) else self._last

    def is_next(self, *words: str) -> bool:
        """Whether these keywords or signs come next."""
        return all(_is(self.peek(i), word) for i, word in enumerate(words))

    def take(self, *words: str) -> bool:
        """Go past these keywords or signs if all of them come next."""
        if not self.is_next(*words):
            return False
        self._next += len(words)
        return True

    def need(self, word: str, *, wanted: str | None = None) -> None:
        if not self.take(word):
            raise self.unexpected(wanted or (word if word.isalpha() else f"'{word}'"), choices=(word,))

    def end(self) -> None:
        """Nothing may follow."""
        if self.peek().kind != "end":
            raise self.unexpected("the end of the statement, a ';'")

    def name(self, what: str) -> str:
        """A name: a word or `anything` in backquotes, or several of them joined by dots."""
        parts = [self._part(f"the name of a {what}")]
        while self.take("."):
            parts.append(self._part(f"the rest of the name of a {what}"))
        return ".".join(parts)

    def names(self, what: str) -> tuple[str, ...]:
        """`(a, b)`."""
        self.need("(")
        found = [self._part(what)]
        while self.take(","):
            found.append(self._part(what))
        self.need(")")
        return tuple(found)

    def quoted(self, what: str) -> str:
        token = self.peek()
        if token.kind != "text":
            raise self.unexpected(what)
        self._next += 1
        return token.value

    def interval(self) -> str:
        """What follows INTERVAL: `10 MINUTES` or `'10' MINUTE` or `'10 minutes'`."""
        token = self.peek()
        if token.kind not in ("number", "text"):
            raise self.unexpected("a number and a unit, as in 10 MINUTES")
        self._next += 1
        unit = self.peek().upper
        if unit.removesuffix("S") in _UNITS:
            self._next += 1
            return f"{token.value} {unit.lower()}"
        if token.kind == "number":
            raise self.unexpected("a unit, as in 10 MINUTES")
        return token.value

    def options(self) -> dict[str, str | int | float | bool | None]:
        """`(name = value, …)`: texts, numbers, TRUE, FALSE and NULL; a bare word is a text."""
        self.need("(")
        found: dict[str, str | int | float | bool | None] = {}
        while True:
            at = self.peek()
            name = self._part("the name of an option").lower()
            if name in found:
                raise self.failed(f"the option {name} is given twice", at=at)
            self.need("=")
            found[name] = self._value()
            if not self.take(","):
                break
        self.need(")", wanted="',' or ')'")
        return found

    def columns(self) -> tuple[str, tuple[str, ...]]:
        """The columns up to the closing parenthesis, and those that PRIMARY KEY names.

        The columns are the text as it stands, with all before it, and PRIMARY KEY, blanked out.
        """
        start = self.peek().start
        key: tuple[str, ...] = ()
        blanked: list[tuple[int, int]] = []
        depth = 0
        column: str | None = None
        while True:
            token = self.peek()
            if token.kind == "end":
                raise self.unexpected("')' after the columns")
            if depth == 0 and self.is_next("PRIMARY", "KEY"):
                if key:
                    raise self.failed("PRIMARY KEY is given twice")
                key = self._primary_key(column, start, blanked)
                continue
            if depth == 0 and token.text == ")":
                break
            column = token.value if column is None else column
            if depth == 0 and token.text == ",":
                column = None
            depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(token.text, 0) if token.kind == "sign" else 0
            self._next += 1
        end = self.peek().start
        self._next += 1
        letters = list("".join(c if c == "\n" else " " for c in self.text[:start]) + self.text[start:end])
        for first, after in blanked:
            letters[first:after] = (c if c == "\n" else " " for c in letters[first:after])
        return "".join(letters).rstrip(), key

    def _primary_key(self, column: str | None, start: int, blanked: list[tuple[int, int]]) -> tuple[str, ...]:
        """`PRIMARY KEY` behind a column, or `PRIMARY KEY (a, b)` as an entry of its own."""
        first = self.peek()
        before = self._tokens[self._next - 1]
        self.take("PRIMARY", "KEY")
        if column is not None:
            blanked.append((first.start, self.peek(-1).end))
            return (column,)
        key = self.names("a column of the key")
        end = self.peek(-1).end
        if before.text == "," and before.start >= start:
            blanked.append((before.start, end))
        elif self.is_next(","):
            blanked.append((first.start, self.peek().end))
            self._next += 1
        else:
            blanked.append((first.start, end))
        return key

    def rest(self, what: str) -> tuple[str, int]:
        """All that is left, as it was written, and where it begins."""
        first = self.peek()
        if first.kind == "end":
            raise self.unexpected(what)
        self._next = len(self._tokens)
        return self.text[first.start : self._last.start], first.start

    def unexpected(self, wanted: str, *, choices: Sequence[str] = ()) -> BadStatement:
        """The error that something else was expected here; `choices` may have what was meant."""
        token = self.peek()
        found = "the end of the statement" if token.kind == "end" else f"'{token.text}'"
        close = get_close_matches(token.upper, choices, n=1) if token.upper else []
        hint = f"did you mean {close[0]}?" if close else None
        if hint is None and len(choices) > 3:
            hint = f"there are {', '.join(choices)}"
        return self.failed(f"expected {wanted}, found {found}", hint=hint)

    def failed(self, reason: str, *, at: Token | None = None, hint: str | None = None) -> BadStatement:
        return failed(self.text, (at or self.peek()).start, reason, source=self._source, hint=hint)

    def _part(self, what: str) -> str:
        token = self.peek()
        if token.kind not in ("word", "name"):
            hint = "names are not quoted, or stand in `backquotes`" if token.kind == "text" else None
            error = self.unexpected(what)
            error.hint = hint
            raise error
        self._next += 1
        return token.value

    def _value(self) -> str | int | float | bool | None:
        negative = self.take("-")
        token = self.peek()
        if token.kind == "number":
            self._next += 1
            number = float(token.text) if "." in token.text else int(token.text)
            return -number if negative else number
        if negative or token.kind not in ("word", "text"):
            raise self.unexpected("a value: a text in quotes, a number, TRUE, FALSE or NULL")
        self._next += 1
        constants = {"TRUE": True, "FALSE": False, "NULL": None, "NONE": None}
        return constants.get(token.upper, token.value) if token.kind == "word" else token.value


def _is(token: Token, word: str) -> bool:
    return token.upper == word or (token.kind == "sign" and token.text == word)
