"""What a text says once its disguises are off, with the way back to where each letter stood.

Three readings of the same text: `plain` is lower case without accents, look-alike letters, widths and
invisible characters; `dense` has only the letters of that, digits read as the letters they resemble,
so that spaces, dots and line ends hide nothing; `native` has the letters of other scripts as they are.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

_PIECE = 512
_FILLER = "\u200b"  # keeps the length where an escape was read; no reading shows it
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|%([2-7][0-9a-fA-F])")
_HEAD = re.compile(
    r"^[ \t]*[->*+#]?[ \t>*+#-]{0,16}(?:\d{1,3}[.)][ \t])?(?:\[[ xX]\][ \t]?)?(?:\[\d\d:\d\d\])?",
    re.MULTILINE,
)
_OUR_MARK = re.compile(r"<!-- agentd: [\w=:, .-]{1,200} -->")
# Pairs: a letter of another alphabet (or a fancy one), and the Latin letters it passes for.
_PAIRS = (
    "аa бb вb гr дd еe ёe зz иu іi їi јj кk мm нh оo рp сc ԁd тt уy хx ѕs һh ӏl ԛq ԝw ґr ьb αa βb γy "
    "εe ηn ιi κk νv οo ρp τt υu χx ωw ϲc ѵv սu օo հh ցg ոn øo łl đd ðd ıi ßss æae œoe ɡg ɑa ʟl ɴn ʀr "
    "ᴀa ᴇe ᴏo ᴛt ᴜu ɪi ɢg ᴅd ᴄc ᴍm ᴘp ᴠv ᴡw ʙb ʜh ᴊj ᴋk ꜱs ʏy ᴢz ꜰf"
)
_LOOKALIKES = {pair[0]: pair[1:] for pair in _PAIRS.split()}
# As digits and signs stand for letters; l counts as i, since 1 stands for both.
_STANDS_FOR = {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t"}
_STANDS_FOR |= {"@": "a", "$": "s", "|": "i", "!": "i", "l": "i"}
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_TAGS = range(0xE0020, 0xE007F)


class View:
    """One reading. `where` leads from an index in `text` to the index in the source."""

    def __init__(self, source: str, fold: Fold) -> None:
        self._source = source
        self._fold = fold
        pieces = [source[i : i + _PIECE].translate(fold) for i in range(0, len(source), _PIECE)]
        self._starts = [0]
        for piece in pieces:
            self._starts.append(self._starts[-1] + len(piece))
        self.text = "".join(pieces)

    def where(self, index: int) -> int:
        """Where in the source the character at `index` stands."""
        piece = min(bisect_right(self._starts, index), len(self._starts) - 1) - 1
        at, left = max(piece, 0) * _PIECE, index - self._starts[max(piece, 0)]
        while at < len(self._source):
            left -= len(self._fold[ord(self._source[at])])
            if left < 0:
                return at
            at += 1
        return max(0, len(self._source) - 1)


class Fold(dict[int, str]):
    """A table for `str.translate` that works out each character once."""

    def __init__(self, work: Callable[[str], str]) -> None:
        super().__init__()
        self._work = work

    def __missing__(self, code: int) -> str:
        self[code] = made = self._work(chr(code))
        return made


def opened(text: str) -> str:
    """The text, as long as before, with escapes read and without what begins lines of lists and
    notes: a sentence may go on in the next entry.
    """
    if "<!-- agentd:" in text:
        text = _OUR_MARK.sub(lambda m: " " * len(m[0]), text)
    if "&" in text:
        text = _ENTITY.sub(lambda m: _padded(html.unescape(m[0]), m[0]), text)
    if "\\" in text or "%" in text:
        text = _ESCAPE.sub(lambda m: _padded(chr(int(m[1] or m[2] or m[3], 16)), m[0]), text)
    return text


def without_heads(text: str) -> str:
    """The text, as long as before, without bullets, numbers, boxes and times at line starts."""
    return _HEAD.sub(lambda m: " " * len(m[0]), text)


def plainly(text: str) -> str:
    """The `plain` reading of words."""
    return text.translate(PLAIN)


def densely(text: str) -> str:
    """The `dense` reading of words."""
    return text.translate(DENSE)


def natively(text: str) -> str:
    """The `native` reading of words."""
    return text.translate(NATIVE)


def _plain(char: str) -> str:
    if ord(char) in _TAGS:
        char = chr(ord(char) - 0xE0000)
    kept = [c for c in unicodedata.normalize("NFKD", char).casefold() if not _is_invisible(c)]
    return "".join(_LOOKALIKES.get(c, c) for c in kept)


def _dense(char: str) -> str:
    letters = (_STANDS_FOR.get(c, c) for c in PLAIN[ord(char)])
    return "".join(c for c in letters if c.isalpha())


def _native(char: str) -> str:
    parts = unicodedata.normalize("NFKD", char).casefold()
    return "".join(c for c in parts if c.isalpha())


def _is_invisible(char: str) -> bool:
    return char in _BLANK or (
        char not in "\n\t" and unicodedata.category(char) in {"Cf", "Mn", "Me", "Cc"}
    )


def _padded(char: str, instead_of: str) -> str:
    return char + _FILLER * (len(instead_of) - len(char))


PLAIN = Fold(_plain)
DENSE = Fold(_dense)
NATIVE = Fold(_native)
