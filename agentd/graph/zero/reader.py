"""Tokens to values: the part of the grammar that knows nothing of graphs."""

from __future__ import annotations

from collections.abc import Callable

from agentd.errors import ZeroError
from agentd.graph.zero.faults import LimitReached
from agentd.graph.zero.plain import real, whole
from agentd.graph.zero.tokens import Source
from agentd.graph.zero.values import MAX_DEPTH, Array, Confidence, Hash32, Map, Value

MAX_ITEMS = 1_000_000  # values in one text
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None}
_OPENING = ("string", "number", "word", "{", "[")


class Reader:
    """Reads values one after the other. `kind`, `word` and `at` are those of the next token."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._next = source.tokens().__next__
        self._left = MAX_ITEMS
        self.kind, self.word, self.at = self._next()

    def advance(self) -> None:
        """Go on to the next token."""
        self.kind, self.word, self.at = self._next()

    def expect(self, kind: str, where: str) -> None:
        """Step over a token of this kind. Raises BadSyntax if the next one is another."""
        if self.kind != kind:
            raise self.source.fault(f"{kind} is missing {where}; here is {self.found()}", self.at)
        self.advance()

    def found(self) -> str:
        """The next token as messages name it."""
        if self.kind == "end":
            return "the end of the text"
        return f"the string {self.word[:40]!r}" if self.kind == "string" else self.word[:40]

    def entries(self, closing: str, read: Callable[[], None]) -> None:
        """Read what stands between the next token and `closing`, with commas between and perhaps
        behind.
        """
        opened = self.at
        self.advance()
        while self.kind != closing:
            self._left -= 1
            if self._left < 0:
                raise self._limit(f"the text holds more than {MAX_ITEMS} values")
            read()
            if self.kind == ",":
                self.advance()
            elif self.kind != closing:
                line, column = self.source.place(opened)
                raise self.source.fault(
                    f"a comma or {closing} is missing before {self.found()}",
                    self.at,
                    f"what it closes begins in line {line}, column {column}",
                )
        self.advance()

    def key(self) -> str:
        """A key, in quotation marks or not, and its colon."""
        if self.kind not in ("string", "word"):
            raise self.source.fault(f"a key is missing; here is {self.found()}", self.at)
        name = self.word
        self.advance()
        self.expect(":", f"behind the key {name[:40]!r}")
        return name

    def value(self, depth: int = 0) -> Value:
        """The value that begins here. Raises BadSyntax and LimitReached."""
        kind, word, at = self.kind, self.word, self.at
        if kind == "string":
            self.advance()
            return word
        if kind == "number":
            self.advance()
            return self._number(word, at)
        if kind not in _OPENING:
            raise self.source.fault(f"a value is missing; here is {self.found()}", at)
        if depth >= MAX_DEPTH:
            raise self._limit(f"values are nested deeper than {MAX_DEPTH}")
        if kind == "{":
            return self._map(depth)
        return self._array(depth) if kind == "[" else self._named(depth)

    def at_place(self, make: Callable[[], Value], at: int) -> Value:
        """What `make` returns; its errors get the place."""
        try:
            return make()
        except ZeroError as error:
            line, column = self.source.place(at)
            kind = type(error)
            raise kind(error.message, cure=error.cure, line=line, column=column) from error

    def _map(self, depth: int, tag: str = "") -> Map:
        items: dict[str, Value] = {"type": tag} if tag else {}

        def read() -> None:
            at = self.at
            name = self.key()
            if name in items:
                raise self.source.fault(f"the key {name[:40]!r} is there twice", at)
            items[name] = self.value(depth + 1)

        opened = self.at
        self.entries("}", read)
        made = self.at_place(lambda: Map(items), opened)
        assert isinstance(made, Map)
        return made

    def _array(self, depth: int) -> Array:
        items: list[Value] = []
        opened = self.at
        self.entries("]", lambda: items.append(self.value(depth + 1)))
        made = self.at_place(lambda: Array(items), opened)
        assert isinstance(made, Array)
        return made

    def _named(self, depth: int) -> Value:
        word, at = self.word, self.at
        self.advance()
        if self.kind == "(":
            return self._literal(word, at)
        if self.kind == "{":
            return self._map(depth, tag=word)
        return _WORDS.get(word, word)

    def _literal(self, name: str, at: int) -> Value:
        self.advance()
        inner, text = self.kind, self.word
        if inner not in ("string", "number"):
            raise self.source.fault(f"{name}(…) holds a string or a number", self.at)
        self.advance()
        self.expect(")", f"behind {name}(…")
        try:
            if inner == "number" and name == "Confidence":
                return Confidence(float(text))
            if inner == "string" and name == "Hash32":
                return Hash32.from_hex(text)
            if inner == "string" and name == "Bytes":
                return bytes.fromhex(text)
        except ValueError as error:
            raise self.source.fault(f"this is no {name}: {error}", at) from error
        raise self.source.fault(
            f"{name[:40]}(…) is no value",
            at,
            'known are Bytes("hex digits"), Hash32("64 hex digits") and Confidence(0 to 1)',
        )

    def _number(self, word: str, at: int) -> Value:
        if word.lstrip("-").isdigit():
            if len(word) > 20:
                raise self.source.fault("a whole number does not fit into 64 bits", at)
            return self.at_place(lambda: whole(int(word)), at)
        return self.at_place(lambda: real(float(word)), at)

    def _limit(self, message: str) -> LimitReached:
        line, column = self.source.place(self.at)
        return LimitReached(message, line=line, column=column)
