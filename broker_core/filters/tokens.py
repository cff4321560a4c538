"""The words of an SQL92 filter, read one by one as RocketMQ's grammar cuts them.

Tokens are made when they are asked for: text after a whole expression is never looked at, because
Apache's parser does not look at it either. Comments (`-- to the end of the line`, `/* ... */`) are
blanks; a line comment without a line end is none.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rocketpy.broker_core.errors import FilterSyntaxError

NUMBER, FLOAT, STRING, NAME, END = "a number", "a fraction", "a text", "a name", "the end"
WORDS = frozenset(
    [
        *("NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"),
        *("CONTAINS", "STARTSWITH", "ENDSWITH"),
    ]
)

_BLANK = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*(?:\r\n|\n|\r)|/\*.*?\*/)*", re.DOTALL)
_EXPONENT = r"(?:[eE][+-]?[0-9]+)"
_TOKEN = re.compile(
    rf"(?P<float>[0-9]+\.[0-9]*{_EXPONENT}?|\.[0-9]+{_EXPONENT}?|[0-9]+{_EXPONENT})"
    r"|(?P<number>[1-9][0-9]*[lL]?|0)"
    r"|(?P<string>'(?:''|[^'])*')"
    r"|(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)"
    r"|(?P<symbol><>|<=|>=|[=<>(),+-])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {"float": FLOAT, "number": NUMBER, "string": STRING, "name": NAME}


class Token(NamedTuple):
    """One word: its kind (a reserved word or a symbol is its own kind), its text, its index."""

    kind: str
    text: str
    at: int


class Tokens:
    """Hands out the tokens of a text."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self._ahead: list[Token] = []
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        """Return a token that comes, 0 being the next, and leave it there."""
        while len(self._ahead) <= ahead:
            self._ahead.append(self._read())
        return self._ahead[ahead]

    def next(self) -> Token:
        """Return the next token and go past it."""
        token = self.peek()
        del self._ahead[0]
        return token

    def _read(self) -> Token:
        blank = _BLANK.match(self.sql, self._at)
        at = blank.end() if blank else self._at
        if at == len(self.sql):
            return Token(END, "", at)
        match = _TOKEN.match(self.sql, at)
        if match is None:
            raise FilterSyntaxError(self.sql, at, _oddity(self.sql, at))
        if _SURROGATE.search(match.group()):
            raise FilterSyntaxError(self.sql, at, "the text is not valid Unicode")
        self._at = match.end()
        text = match.group()
        if match.lastgroup == "symbol":
            return Token(text, text, at)
        if match.lastgroup == "name" and text.upper() in WORDS:
            return Token(text.upper(), text, at)
        return Token(_KINDS[match.lastgroup or ""], text, at)


def _oddity(sql: str, at: int) -> str:
    """Say what is wrong at an index where no token begins."""
    if sql[at] == "'":
        return "the text that begins here has no closing quote"
    if sql.startswith("/*", at):
        return "the comment that begins here has no */"
    if sql[at] == '"':
        return "texts stand in single quotes, names in none"
    if sql.startswith("!=", at):
        return "write <> for not equal"
    return f"{sql[at]!r} does not belong here; names have letters, digits, _ and $"
