"""A few things that attackers write to models, in English. Pure.

They are worth a warning and no more: who knows the list writes something else, and it speaks one
language. docs/security.md says how much of other people's attacks it finds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from agentd.screening.ignorable import IGNORABLE
from agentd.screening.lookalikes import passes_for

_PHRASES = tuple(
    (reason, re.compile(pattern))
    for reason, pattern in (
        (
            "asks to set aside what it was told before",
            (
                r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?]{0,40}\b(?:previous|prior|above|earlier|all|any|your)\b"
                r"[^.!?]{0,20}\b(?:instruct|prompt|rule|guideline|direct)"
            ),
        ),
        (
            "speaks in the role of the system",
            (
                r"<\|(?:im_start|system)|</?system>|\[/?inst\]|<</?sys>>"
                r"|\b(?:system|admin|developer) (?:prompt|message|override|notice|instructions?) ?:"
            ),
        ),
        (
            "asks to be kept from the user",
            (
                r"\b(?:not|never|don't|without) (?:tell|inform|mention|notify|alert|ask|warn)(?:ing)?\b"
                r"[^.!?]{0,30}\b(?:users?|owner|human|anyone)\b"
            ),
        ),
        (
            "gives the agent another role or other orders",
            (
                r"\byou are (?:now|no longer)\b|\b(?:new|updated|real|true) instructions?\b|\bfrom now on,? you\b"
                r"|\bpretend (?:to be|you are)\b"
            ),
        ),
        (
            "wants secrets to be sent",
            (
                r"\b(?:send|post|upload|forward|e-?mail|exfiltrate|leak)\b[^.!?]{0,60}"
                r"\b(?:passwords?|api keys?|access tokens?|credentials|private keys?|\.env)\b"
            ),
        ),
    )
)


_IGNORED = re.compile(f"[{IGNORABLE}]")


class _Folding(dict[int, str]):
    """A table for `str.translate` that works out each character once."""

    def __missing__(self, code: int) -> str:
        self[code] = made = _folded(chr(code))
        return made


def phrases(text: str) -> Iterator[tuple[str, int]]:
    """What stands there, and where: reason and index."""
    folded = text.translate(_FOLDING)
    found = sorted((m.start(), reason) for reason, p in _PHRASES for m in p.finditer(folded))
    at = length = 0  # one walk leads from the folded text back to the places in the source
    for start, reason in found:
        while length + len(_FOLDING[ord(text[at])]) <= start:
            length += len(_FOLDING[ord(text[at])])
            at += 1
        yield reason, at


def _folded(char: str) -> str:
    if char.isspace():
        return " "
    if unicodedata.category(char) in {"Cf", "Mn", "Me", "Cc"} or _IGNORED.match(char):
        return ""
    plain = passes_for(char) or unicodedata.normalize("NFKC", char)
    return plain.casefold().replace("’", "'")


_FOLDING = _Folding()
