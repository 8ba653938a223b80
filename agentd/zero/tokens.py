"""Splits text into tokens, and turns offsets into lines and columns."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from agentd.zero.faults import BadSyntax, LimitReached, NotText

MAX_TEXT = 16 * 1024 * 1024  # characters
Token: TypeAlias = tuple[str, str, int]  # its kind, its text, where it begins
_TOKEN = re.compile(
    r"""(?:[ \t\r\n]++|\#[^\n]*+)*+  # white space and comments
    (?:(?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")
    |(?P<number>-?[0-9]++(?:\.[0-9]++)?+(?:[eE][+-]?[0-9]++)?+(?![\w.]))
    |(?P<word>[^\W\d][\w-]*+)
    |(?P<mark>[{}\[\]():,])
    |(?P<end>\Z)
    |(?P<bad>"(?:[^"\\\n]|\\.)*+|.))""",
    re.VERBOSE | re.DOTALL,
)
_STRING, _MARK, _BAD = (_TOKEN.groupindex[kind] for kind in ("string", "mark", "bad"))
_KINDS = {group: kind for kind, group in _TOKEN.groupindex.items()}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|(.))", re.DOTALL)
_ESCAPES = {
    '"': '"',
    "\\": "\\",
    "/": "/",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
}


class SourceText:
    """A text with lines and columns for its offsets; `first` is the number of its first line. A
    byte order mark is dropped. Raises NotText and LimitReached.
    """

    def __init__(self, data: str | bytes, first: int = 1) -> None:
        self.text = _decode(data) if isinstance(data, bytes) else data.removeprefix("\ufeff")
        _refuse_binary(self.text[:16].encode(errors="replace"), line=first)
        if len(self.text) > MAX_TEXT:
            raise LimitReached(
                f"the text has {len(self.text)} characters, and {MAX_TEXT} is the most",
                line=first,
                column=1,
            )
        self._first = first
        self._starts = array("Q", [0])
        self._starts.extend(match.end() for match in re.finditer("\n", self.text))
        try:
            self.text.encode()
        except UnicodeEncodeError as error:
            line, column = self.place(error.start)
            raise NotText("half of a surrogate pair", line=line, column=column) from error

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column, from 1, of an offset."""
        line = bisect_right(self._starts, offset)
        return self._first + line - 1, offset - self._starts[line - 1] + 1

    def fault(self, message: str, offset: int, cure: str = "") -> BadSyntax:
        """Return an error with the place of an offset."""
        line, column = self.place(offset)
        return BadSyntax(message, cure=cure, line=line, column=column)

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens, the last one of kind `end`. The kind of a punctuation mark is the mark
        itself; the text of a `string` is its value. Raises BadSyntax.
        """
        for match in _TOKEN.finditer(self.text):
            group = match.lastindex
            assert group is not None
            found, at = match[group], match.start(group)
            if group == _MARK:
                yield found, found, at
            elif group == _STRING:
                inner = found[1:-1]
                yield "string", self._unescaped(inner, at + 1) if "\\" in inner else inner, at
            elif group == _BAD:
                raise self._bad(found, at)
            else:
                yield _KINDS[group], found, at

    def _unescaped(self, inner: str, start: int) -> str:
        def letter(match: re.Match[str]) -> str:
            high, low, plain = match.groups()
            if plain is not None:
                if plain not in _ESCAPES:
                    raise self.fault(
                        f"the escape \\{plain} has no meaning",
                        start + match.start(),
                        'known are \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u with four digits',
                    )
                return _ESCAPES[plain]
            pair = high + low if low else high
            if (0xD800 <= int(high, 16) < 0xDC00) != bool(low) or 0xDC00 <= int(high, 16) < 0xE000:
                raise self.fault("half of a surrogate pair", start + match.start())
            raw = bytes.fromhex(pair)
            return raw.decode("utf-16-be")

        return _ESCAPE.sub(letter, inner)

    def _bad(self, found: str, at: int) -> BadSyntax:
        if found.startswith('"'):
            return self.fault("the string is not closed on its line", at, 'close it with "')
        if found.isdigit() or found == "-":
            return self.fault("this is no number", at, "put other words between quotation marks")
        return self.fault(f"the character {found!r} has no meaning here", at)


def _decode(data: bytes) -> str:
    _refuse_binary(data[:16], data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        begin = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[begin : error.start].decode(errors="replace")) + 1
        raise NotText("the text is not UTF-8", line=line, column=column) from error


def _refuse_binary(head: bytes, data: bytes = b"", line: int = 1) -> None:
    if _is_capnp(data):
        raise NotText(
            "this is a compiled Cap'n Proto graph, which has the same extension",
            cure="give the text it was compiled from",
            line=1,
            column=1,
        )
    if 0 in head:
        raise NotText(
            "this is binary data, such as a compiled Cap'n Proto graph, and not text",
            cure="give the text of the graph",
            line=line,
            column=1 + head.index(0),
        )


def _is_capnp(data: bytes) -> bool:
    """Whether the segment table at the beginning of a Cap'n Proto stream fits the data: the number
    of segments less one, then the size of each in words, as little-endian numbers of four bytes,
    padded to a whole word (https://capnproto.org/encoding.html#serialization-over-a-stream).
    """
    if len(data) < 8 or len(data) % 8:
        return False
    segments = int.from_bytes(data[:4], "little") + 1
    table = 4 * (segments + 1 + (segments + 1) % 2)
    if segments > 512 or table > len(data):
        return False
    words = sum(int.from_bytes(data[at : at + 4], "little") for at in range(4, 4 + 4 * segments, 4))
    return table + 8 * words == len(data)
