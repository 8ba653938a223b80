"""The language of questions to the graph: text to a Query.

    FIND concept WHERE predicate = needs AND confidence > 0.5 FROM agent DEPTH 2 LIMIT 10

    query      = "FIND" kind { clause }             each clause at most once, in any order
    kind       = "concept" | "concepts" | "fact" | "facts" | "path" | "paths"
    clause     = "WHERE" condition | "FROM" name { "," name } | "BY" way
               | "DEPTH" number | "LIMIT" number
    way        = "paths" | "breadth" | "activation"
    condition  = conjunct { "OR" conjunct }
    conjunct   = term { "AND" term }
    term       = "NOT" term | "(" condition ")" | comparison
    comparison = text-field ( "=" | "!=" ) name
               | number-field ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) number
    name       = word | number | quoted

Keywords, ways and fields are read without case. A word has no blanks and none of `" = ! < > ( ) ,`
in it; any other name stands in double or single quotes, in which a backslash takes the next
character as it is. A keyword that is meant as a name is quoted too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import Enum, StrEnum, auto
from typing import Final, TypeAlias

from msgspec import Struct

from agentd.core.errors import QueryError
from agentd.memory.graph.paths import DEPTH, MAX_RESULTS, TraversalMode

MAX_LENGTH = 8_000  # longest question, in characters
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
    """The kind of a token."""

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


class Token(Struct, frozen=True):
    """A token of a question: `text` as written, `word` without quotes. Line and column count from
    1.
    """

    kind: TokenKind
    text: str
    word: str
    line: int
    column: int

    @property
    def keyword(self) -> str:
        """The keyword in capitals; "" if the token is none."""
        word = self.text.upper()
        return word if self.kind is TokenKind.WORD and word in KEYWORDS else ""

    def error(self, message: str) -> QueryError:
        """Return an error that points to this token."""
        return QueryError(message, cure=_CURE, line=self.line, column=self.column)

    def __str__(self) -> str:
        if self.kind is TokenKind.END:
            return "the end"
        short = self.text if len(self.text) <= 40 else f"{self.text[:40]}…"
        return repr(short)


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a question, then an END token. Raises QueryError for an unexpected sign,
    an unclosed quote, and a text that is too long.
    """
    if len(text) > MAX_LENGTH:
        message = f"a question has at most {MAX_LENGTH} characters, not {len(text)}"
        raise QueryError(message, cure=_CURE, line=1, column=1)
    at, line, begin = 0, 1, 0  # offset, its line, offset of that line
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


MAX_NESTING = 32  # most nested NOTs and parentheses
MAX_NAMES = 20
LIMIT = 10
CLAUSES: Final = ("WHERE", "FROM", "BY", "DEPTH", "LIMIT")

TEXT_FIELDS: Final = {
    "label": "the concept, or one of its aliases",
    "predicate": "of the last fact",
    "subject": "of the last fact",
    "object": "of the last fact",
    "start": "the concept of FROM that the path begins at",
    "direction": "out: the last fact was walked from its subject to its object; in: back",
}
NUMBER_FIELDS: Final = {
    "confidence": "of the path, for FIND fact of the fact, 0 to 1",
    "score": "what it is worth to the way of BY, 0 to 1",
    "depth": "the number of facts in the path",
    "episodes": "how often the last fact was said",
}


class QuestionKind(StrEnum):
    """The kind of result a question asks for."""

    CONCEPT = "concept"
    FACT = "fact"
    PATH = "path"


_QUERY_KINDS = {kind.value: kind for kind in QuestionKind}
_WAYS = {way.value: way for way in TraversalMode}


class Comparison(Struct, frozen=True):
    """A field compared with a name (`value` is a str) or with a number (a float)."""

    field: str
    operator: str
    value: str | float


class Negation(Struct, frozen=True):
    """A condition that must be false."""

    condition: Condition


class Conjunction(Struct, frozen=True):
    """Conditions that must all be true."""

    conditions: tuple[Condition, ...]


class Disjunction(Struct, frozen=True):
    """Conditions of which at least one must be true."""

    conditions: tuple[Condition, ...]


Condition: TypeAlias = Comparison | Negation | Conjunction | Disjunction


class GraphQuery(Struct, frozen=True):
    """A parsed question; `names` are as written. Without names it asks about all facts with the
    predicate that `where` demands. Raises QueryError for a way that finds no results of this kind,
    or needs names.
    """

    kind: QuestionKind = QuestionKind.CONCEPT
    where: Condition | None = None
    names: tuple[str, ...] = ()
    depth: int = DEPTH
    limit: int = LIMIT
    by: TraversalMode = TraversalMode.PATHS

    def __post_init__(self) -> None:
        if wrong := _unfit(self.by, self.kind, self.names):
            raise QueryError(wrong, cure="leave BY out, or ask BY paths")


def parse(text: str) -> GraphQuery:
    """Parse a question. Raises QueryError, with line and column, for any other text."""
    return _Parser(tokens(text)).query()


class _Parser:
    """A recursive-descent parser with one token of lookahead."""

    def __init__(self, found: Iterator[Token]) -> None:
        self._found = found
        self._next = next(found)
        self._nesting = 0

    def query(self) -> GraphQuery:
        self._keyword("FIND")
        kind = self._kind()
        places: dict[str, Token] = {}  # by clause: the token after its keyword
        where: Condition | None = None
        names: tuple[str, ...] = ()
        by, limit = TraversalMode.PATHS, LIMIT
        while self._next.kind is not TokenKind.END:
            clause = self._clause(places)
            places[clause] = self._next
            match clause:
                case "WHERE":
                    where = self._condition()
                case "FROM":
                    names = self._names()
                case "BY":
                    by = self._way()
                case "DEPTH":
                    self._whole("DEPTH")
                case _:
                    limit = _within(self._whole("LIMIT"), "LIMIT", MAX_RESULTS)
        if wrong := _unfit(by, kind, names):
            raise places["BY"].error(wrong)
        far = places.get("DEPTH")  # the maximum depends on the way
        depth = _within(far, "DEPTH", by.most) if far else by.depth
        return GraphQuery(kind, where, names, depth, limit, by)

    def _kind(self) -> QuestionKind:
        token = self._take()
        word = token.word.lower().removesuffix("s")
        if token.kind is TokenKind.WORD and word in _QUERY_KINDS:
            return _QUERY_KINDS[word]
        raise token.error(f"concept, fact or path is expected after FIND, not {token}")

    def _way(self) -> TraversalMode:
        token = self._take()
        word = token.word.lower()
        if token.kind is TokenKind.WORD and word in _WAYS:
            return _WAYS[word]
        raise token.error(f"paths, breadth or activation is expected after BY, not {token}")

    def _clause(self, seen: Collection[str]) -> str:
        token = self._take()
        word = token.keyword
        if word not in CLAUSES:
            raise token.error(f"{_expected_words(seen)} is expected, not {token}{_blanks(token)}")
        if word in seen:
            raise token.error(f"{word} stands here a second time")
        return word

    def _condition(self) -> Condition:
        parts = [self._conjunct()]
        while self._next.keyword == "OR":
            self._take()
            parts.append(self._conjunct())
        return parts[0] if len(parts) == 1 else Disjunction(tuple(parts))

    def _conjunct(self) -> Condition:
        parts = [self._term()]
        while self._next.keyword == "AND":
            self._take()
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Conjunction(tuple(parts))

    def _term(self) -> Condition:
        token = self._take()
        if token.keyword != "NOT" and token.text != "(":
            return self._comparison(token)
        if self._nesting == MAX_NESTING:
            raise token.error(f"more than {MAX_NESTING} conditions stand inside each other")
        self._nesting += 1
        inner: Condition
        if token.keyword == "NOT":
            inner = Negation(self._term())
        else:
            inner = self._condition()
            end = self._take()
            if end.text != ")":
                raise end.error(f"AND, OR or ) is expected, not {end}{_blanks(end)}")
        self._nesting -= 1
        return inner

    def _comparison(self, field: Token) -> Comparison:
        name = field.word.lower() if field.kind is TokenKind.WORD else ""
        if name not in TEXT_FIELDS and name not in NUMBER_FIELDS:
            known = ", ".join([*TEXT_FIELDS, *NUMBER_FIELDS])
            raise field.error(f"a field ({known}), NOT or ( is expected, not {field}")
        operator = self._take()
        allowed = ("=", "!=") if name in TEXT_FIELDS else ("=", "!=", "<", "<=", ">", ">=")
        if operator.text not in allowed:
            raise operator.error(
                f"one of {' '.join(allowed)} is expected after {name}, not {operator}"
            )
        if name in NUMBER_FIELDS:
            return Comparison(name, operator.text, self._number(f"{name} {operator.text}"))
        value = self._take()
        if name == "direction" and value.word.lower() not in ("in", "out"):
            raise value.error(f"the direction is in or out, not {value}")
        return Comparison(name, operator.text, _name(value))

    def _names(self) -> tuple[str, ...]:
        names = [_name(self._take())]
        while self._next.text == ",":
            self._take()
            if len(names) == MAX_NAMES:
                raise self._next.error(f"a question has at most {MAX_NAMES} names")
            names.append(_name(self._take()))
        return tuple(dict.fromkeys(names))

    def _number(self, after: str) -> float:
        token = self._take()
        if token.kind is not TokenKind.NUMBER:
            raise token.error(f"a number is expected after {after}, not {token}")
        return float(token.word)

    def _whole(self, clause: str) -> Token:
        token = self._take()
        if token.kind is not TokenKind.NUMBER or not token.word.isdecimal():
            raise token.error(f"a whole number is expected after {clause}, not {token}")
        return token

    def _keyword(self, word: str) -> None:
        token = self._take()
        if token.keyword != word:
            raise token.error(f"a question begins with {word}, not with {token}")

    def _take(self) -> Token:
        token = self._next
        if token.kind is not TokenKind.END:
            self._next = next(self._found)
        return token


def _within(token: Token, clause: str, most: int) -> int:
    if not 1 <= float(token.word) <= most:
        raise token.error(f"{clause} is a number from 1 to {most}, not {token}")
    return int(float(token.word))


def _unfit(by: TraversalMode, kind: QuestionKind, names: Collection[str]) -> str:
    """Return why a question cannot be asked in this way; "" if it can."""
    if by is not TraversalMode.PATHS and not names:
        return f"BY {by} goes on from names, and the question has no FROM"
    if by is TraversalMode.ACTIVATION and kind is QuestionKind.PATH:
        return "activation goes along all facts at once and finds concepts and facts, no paths"
    return ""


def _name(token: Token) -> str:
    if token.keyword or token.kind not in (TokenKind.WORD, TokenKind.NUMBER, TokenKind.QUOTED):
        hint = "; in quotes it would be one" if token.keyword else ""
        raise token.error(f"a name is expected, not {token}{hint}")
    if not token.word.strip():
        raise token.error("a name has at least one letter")
    return token.word


def _expected_words(seen: Collection[str]) -> str:
    left = [word for word in CLAUSES if word not in seen]
    return ", ".join([*left, "or the end"]) if left else "the end"


def _blanks(token: Token) -> str:
    """Return a hint for names of several words; "" if it does not apply."""
    if token.kind in (TokenKind.WORD, TokenKind.NUMBER) and not token.keyword:
        return "; a name of several words stands in quotes"
    return ""
