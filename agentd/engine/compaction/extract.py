"""The identifiers that a summary must keep, and the extract that replaces a missing summary. Pure.

Identifiers are paths, URLs, UUIDs, hashes and numbers. The extract is made by rule, of excerpts of
the conversation. It never has to be checked like a summary: it is short enough, says what it is,
and has every identifier that is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo

from agentd.core.clock import minute
from agentd.core.transcript import Row, opens_turn
from agentd.engine import tokens

_LONGEST = 100_000  # characters of a text that are searched for identifiers
_MOST = 60  # identifiers in one text; with more it is pasted data
_ENDS = 20  # identifiers that then count at either end of the text
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
HEAD = (
    "Excerpts of the conversation so far, word for word and shortened, made by rule because no "
    "summary could be had. The whole of it is kept and found by search."
)
LATEST = 3  # user messages whose identifiers a summary must keep
_NAMES = 3 / 7  # share of a summary that these identifiers may take
_EARLIER = 1 / 2  # share of the rest that the earlier summary may take
_LINE = 400  # bytes of one message
_CUT = " […] "


def identifiers(text: str) -> tuple[str, ...]:
    """Return the paths, URLs, UUIDs, hashes and numbers of four digits or more, each once, in
    order.
    """
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


def needed_identifiers(texts: Iterable[str], room: int) -> tuple[str, ...]:
    """Return the identifiers of the texts, in order, that together fit `room` bytes when listed.
    The texts come newest first.

    Of a text with more than 60 identifiers, such as a pasted log, only the first and the last 20
    count.
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
    """Return the names that the text does not contain; separators between the digits of a number
    are ignored.
    """
    there = _bare(text)
    return [name for name in names if _bare(name) not in there]


def wanted_identifiers(rows: Sequence[Row], longest: int) -> tuple[str, ...]:
    """Return the identifiers that a summary of the rows with at most `longest` tokens must keep:
    those of the last three user messages.
    """
    said = (row.text for row in reversed(rows) if opens_turn(row) and row.text.strip())
    latest = [text for text, _ in zip(said, range(LATEST), strict=False)]
    return needed_identifiers(latest, int(_bytes(longest) * _NAMES))


def extract(rows: Sequence[Row], earlier: str, longest: int, zone: tzinfo = UTC) -> str:
    """Return the extract that replaces `rows` and the summary `earlier` before them, in at most
    `longest` tokens (100 or more).
    """
    names = ", ".join(wanted_identifiers(rows, longest))
    pieces = [HEAD, names and f"Named last: {names}"]
    room = _bytes(longest) - sum(_size(piece) + 2 for piece in pieces)
    if earlier.strip() and room > 0:
        pieces.append(_shorten_to_bytes(f"Before that:\n{earlier.strip()}", int(room * _EARLIER)))
        room -= _size(pieces[-1]) + 2
    lines: list[str] = []
    for row in reversed(rows):
        text = " ".join(row.text.split()) if row.role.is_spoken else ""
        if not text:
            continue
        line = _shorten_to_bytes(f"{row.role.value} ({minute(row.at, zone)}): {text}", _LINE)
        room -= _size(line) + 1
        if room < 0:
            break
        lines.append(line)
    pieces.append("\n".join(reversed(lines)))
    return "\n\n".join(filter(None, pieces))


def shorten_to_tokens(text: str, longest: int) -> str:
    """Return the text, or its beginning and end, in at most `longest` tokens."""
    return _shorten_to_bytes(text, _bytes(longest))


def _numbers(text: str) -> list[str]:
    """Return the numbers of four digits or more in figures that may be a price, a date, a time or a
    version.

    A summary may write them in another way: 1.299,00 as 1,299, 21.11.2026 as November 21, 2026. So
    figures grouped by thousands count as one number, an IPv4 address counts as a whole, and
    otherwise each run of digits counts by itself.
    """
    if match := _GROUPED.fullmatch(text):
        return [match["whole"]]
    if _ADDRESS.fullmatch(text):
        return [text]
    return [run for run in re.findall(r"\d+", text) if len(run) >= 4]


def _bare(text: str) -> str:
    """Return the text without the separators that people and models put into numbers."""
    return _SEPARATOR.sub("", text.replace("_", ""))


def _bytes(count: int) -> int:
    """Return how many bytes surely take no more than `count` tokens."""
    return int((count - 1) * tokens.BYTES_PER_TOKEN)


def _size(text: str) -> int:
    return len(text.encode(errors="replace"))


def _shorten_to_bytes(text: str, room: int) -> str:
    """Return the text, or its beginning and end in at most `room` bytes."""
    if _size(text) <= room:
        return text
    half = max(0, room - len(_CUT.encode())) // 2
    raw = text.encode(errors="replace")
    head, tail = raw[:half].decode(errors="ignore"), raw[len(raw) - half :].decode(errors="ignore")
    return f"{head}{_CUT}{tail}"
