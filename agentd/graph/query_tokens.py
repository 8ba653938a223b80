"""A question to the graph in words, numbers and signs, each with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from agentd.errors import QueryError

MAX_LENGTH = 8_000  # characters of a question
KEYWORDS: Final = frozenset(("FIND", "WHERE", "FROM", "BY", "DEPTH", "LIMIT", "AND", "OR", "NOT"))

_CURE = 'ask for example: FIND concept WHERE predicate = needs FROM "my agent" DEPTH 2 LIMIT 10'
_TOKEN = re.compile(
    r"""\s+
    | (?P<quoted> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' )
    | (?P<sign> [!<>]= | [=<>(),] )
    | (?P<number> (?:[0-9]+(?:\.[0-9]+)? | \.[0-9]+) (?![^\s"=!<>(),]) )
    | (?P<word> [^\s"'=!<>(),][^\s"=!<>(),]* )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class TokenKind(Enum):
    """What a token is."""

    WORD = auto()
    NUMBER = auto()
    QUOTED = auto()
    SIGN = auto()
    END = auto()


_KINDS = {
    "word": TokenKind.WORD,
    "number": TokenKind.NUMBER,
    "quoted": TokenKind.QUOTED,
    "sign": TokenKind.SIGN,
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a question: `text` as it stands there, `word` without its quotes. Places count from 1."""

    kind: TokenKind
    text: str
    word: str
    line: int
    column: int

    @property
    def keyword(self) -> str:
        """The keyword that it is, in capitals, or nothing."""
        word = self.text.upper()
        return word if self.kind is TokenKind.WORD and word in KEYWORDS else ""

    def error(self, message: str) -> QueryError:
        """The error that tells of this place."""
        return QueryError(message, cure=_CURE, line=self.line, column=self.column)

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end"
        short = self.text if len(self.text) <= 40 else f"{self.text[:40]}…"
        return repr(short)


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a question, and then the one that is its end. Raises QueryError for a sign that
    begins none, for a quote that is never closed, and for a text that is too long.
    """
    if len(text) > MAX_LENGTH:
        message = f"a question has at most {MAX_LENGTH} characters, not {len(text)}"
        raise QueryError(message, cure=_CURE, line=1, column=1)
    at, line, begin = 0, 1, 0  # where we are, its line, where that line begins
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _stray(text[at], line, at - begin + 1)
        if (kind := found.lastgroup) is not None:
            yield Token(_KINDS[kind], found[0], _word(kind, found[0]), line, at - begin + 1)
        if newlines := found[0].count("\n"):
            line += newlines
            begin = at + found[0].rindex("\n") + 1
        at = found.end()
    yield Token(TokenKind.END, "", "", line, at - begin + 1)


def _word(kind: str, text: str) -> str:
    return _ESCAPED.sub(r"\1", text[1:-1]) if kind == "quoted" else text


def _stray(sign: str, line: int, column: int) -> QueryError:
    if sign in "\"'":
        message = f"the quote {sign} is never closed"
    else:
        message = f"the sign {sign!r} has no meaning here"
    return QueryError(message, cure=_CURE, line=line, column=column)
