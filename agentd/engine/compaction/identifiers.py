"""Names in a text that must not be lost: paths, URLs, UUIDs, hashes, numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONGEST = 100_000  # characters of a text that are looked at
_MOST = 60  # identifiers in one text; with more it is pasted data
_ENDS = 20  # those that then count at either end
_FIGURES = re.compile(r"[\d/]+")
_GROUPED = re.compile(r"(?P<whole>\d{1,3}(?:[.,_']\d{3})+)(?:[.,]\d{1,2})?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_SEPARATOR = re.compile(r"(?<=\d)[.,' \u00a0\u202f](?=\d{3}(?!\d))")
_IDENTIFIER = re.compile(
    r"""(?P<url>https?://[^\s<>"'`)\]]{1,2000})
      | (?P<uuid>\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b)
      | (?P<hash>\b(?=[a-f]{0,64}\d)(?=\d{0,64}[a-f])[0-9a-f]{7,64}\b)
      | (?P<root>(?<![\w/])~?(?:\.{0,2}/)[\w.@-]{1,200}(?:/[\w.@-]{1,200}){0,40}/?)
      | (?P<path>(?<![\w/.@-])[\w.@-]{1,200}(?:/[\w.@-]{1,200}){1,40})
      | (?P<number>(?<![\w.])\d[\d_,.']{0,60}\d(?!\w))
    """,
    re.VERBOSE,
)


def identifiers(text: str) -> tuple[str, ...]:
    """Paths, URLs, UUIDs, hashes and numbers of four digits or more, each once, in order."""
    found: dict[str, None] = {}
    for match in _IDENTIFIER.finditer(text[:_LONGEST]):
        name = match.group().rstrip(".,;:!?")
        if match.lastgroup == "number" or _FIGURES.fullmatch(name):
            found.update(dict.fromkeys(_numbers(name)))
        elif match.lastgroup == "path":
            if name.count("/") > 1 or "." in name.rsplit("/", 1)[-1]:
                found[name] = None
        elif len(name) > 3:
            found[name] = None
    return tuple(found)


def needed(texts: Iterable[str], room: int) -> tuple[str, ...]:
    """The identifiers of the texts, the newest first, that fit `room` bytes when listed.

    Of a text that is full of them, a pasted log, only the first and the last ones count.
    """
    found: dict[str, None] = {}
    for text in texts:
        names = identifiers(text)
        for name in names if len(names) <= _MOST else (*names[:_ENDS], *names[-_ENDS:]):
            size = len(name.encode(errors="replace")) + len(", ")
            if name not in found and size <= room:
                found[name] = None
                room -= size
    return tuple(found)


def absent(names: Iterable[str], text: str) -> list[str]:
    """Those of the names that the text does not have, however either groups its figures."""
    there = _bare(text)
    return [name for name in names if _bare(name) not in there]


def _numbers(text: str) -> list[str]:
    """The numbers of four digits or more in figures that may be a price, a date, a time or a version.

    Whoever retells these writes them in another way: 1.299,00 as 1,299, 21.11.2026 as November 21,
    2026. So the thousands count as one number, and otherwise each run of digits for itself.
    """
    if match := _GROUPED.fullmatch(text):
        return [match["whole"]]
    if _ADDRESS.fullmatch(text):
        return [text]
    return [run for run in re.findall(r"\d+", text) if len(run) >= 4]


def _bare(text: str) -> str:
    """Without the separators that people and models put into numbers."""
    return _SEPARATOR.sub("", text.replace("_", ""))
