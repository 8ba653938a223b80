"""What of a stored message is the user's own statement. Pure.

A transcript keeps what was sent byte for byte, and never what was added for the model alone. So a
user's row holds the user's words and what the user has passed on: files, quotes, mails. What can be
known for somebody else's words is left out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.erasure import MASK
from agentd.domain.transcript import Row, RowRole
from agentd.engine import tokens
from agentd.redaction import tells_secret
from agentd.statements import own_words as statements
from agentd.statements.explicit import Request, requested

_LONGEST = 8_000  # characters of a message that are read: longer ones hold what was pasted
_LEAST_WORDS = 2

_COMMAND = re.compile(r"/[A-Za-z][\w-]*(?=\s|\Z)")
_DATA = re.compile(r"<data\b[^>]{0,200}>.*?(?:</data\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_MEMORIES = re.compile(
    r"^## Relevant Memories[ \t]*\n(?:[ \t]*[-*] [^\n]*\n?|[ \t]*\n)*", re.MULTILINE
)
_FENCE = re.compile(r"[ \t]{0,3}(?P<fence>`{3,}|~{3,})(?P<rest>.*)")
_QUOTED = re.compile(r"\s*>")
_LEFT_OUT = "[…]"
_HOLES = re.compile(f"{statements.HOLE}+")
_EMPTY = re.compile(r"^[ \t]*\[…\][ \t]*(?:\n|\Z)", re.MULTILINE)
_GAPS = re.compile(r"\n\s*\n+")
# An imported message with its author's name before it.
_NAMED = re.compile(r"(?P<name>[^\W\d_][^\s:\[\]]{0,20}(?: [^\W\d_][^\s:\[\]]{0,20}){0,2}): (?=\S)")
_NO_NAMES = frozenset(
    {"note", "update", "todo", "ps", "fyi", "edit", "question", "answer", "reminder", "btw", "tldr"}
    | {"important", "correction", "also", "fact", "facts", "idea", "user", "human", "me", "i"}
)


@dataclass(frozen=True, slots=True)
class Said:
    """What the user said in one message, or asked to be kept or forgotten."""

    seq: int
    at: datetime
    text: str
    request: Request | None = None


def stated(row: Row) -> Said:
    """The user's own words in the row; "" where there are none that facts may be read from. What is
    asked for outright is a request, and nothing else of that message is read.
    """
    if row.role is not RowRole.USER or tells_secret(row.text):
        return Said(row.seq, row.at, "")
    request = requested(row.text)
    if request is not None:
        return Said(row.seq, row.at, "", request)
    if _COMMAND.match(row.text) or (row.turn_id is None and _is_of_another(row.text)):
        return Said(row.seq, row.at, "")
    text = own_words(row.text)
    return Said(row.seq, row.at, text if len(text.split()) >= _LEAST_WORDS else "")


def own_words(text: str) -> str:
    """The text without code, quotes, fenced data, recalled memories and words that were forgotten; what
    was left out within a line is marked.
    """
    text = _MEMORIES.sub("", _DATA.sub("", text)).replace(MASK, "")
    text = "\n".join(_unfenced(text.splitlines())).strip("\n")
    if len(text) > _LONGEST:
        half = _LONGEST // 2
        text = f"{text[:half]}\n{_LEFT_OUT}\n{text[-half:]}"
    text = _HOLES.sub(_LEFT_OUT, statements.own_words(text))
    text = _GAPS.sub("\n\n", _EMPTY.sub("", text)).strip()
    return text if any(map(str.isalpha, text)) else ""


def weight(said: Said) -> int:
    """About how many tokens it takes to show."""
    return tokens.of_text(said.text)


def _is_of_another(text: str) -> bool:
    match = _NAMED.match(text)
    return match is not None and match["name"].casefold() not in _NO_NAMES


def _unfenced(lines: Sequence[str]) -> Iterator[str]:
    """The lines outside of code and quotes; code that does not end goes to the last line."""
    fence = ""
    for line in lines:
        match = _FENCE.match(line)
        if fence:
            is_end = match and match["fence"].startswith(fence) and not match["rest"].strip()
            fence = "" if is_end else fence
        elif match and not (match["fence"][0] == "`" and "`" in match["rest"]):
            fence = match["fence"]
        elif not _QUOTED.match(line):
            yield line
