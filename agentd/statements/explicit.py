"""Messages that ask outright to keep something in mind, or to forget it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["remember", "forget"]

_HEAD = 300  # characters that hold the request's own words
_POLITE = re.compile(
    r"\s*(?:(?:hey|hi|hello|hallo|ok|okay|well|so|and|also|now|agentd|please|pls|bitte|oh|ah|yes|btw"
    r"|by the way|good (?:morning|evening)|guten (?:morgen|tag|abend))\b[\s,.!:-]{0,5}){0,5}"
    r"(?:(?:can|could|would|will) you (?:please )?|i(?:['’]d like| want| need) you to )?",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"(?:please )?(?:"
    r"(?:remember|note|memori[sz]e|keep in mind)(?: for (?:later|me|the future))?"
    r"(?:(?: this| that| the following)?\s{0,2}(?::|\s[-–—]\s)|,? that\b|(?=\s+(?:my|i|i['’]m|our|we)\b))"
    r"|(?:don['’]?t|do not|never) forget(?:,? that\b|(?: this| that)?\s{0,2}:)"
    r"|(?:make a|take a) note(?: of this| of that)?(?:,? that\b|\s{0,2}:)"
    r"|merke? dir(?:,? bitte)?(?:\s{0,2}:|,?\s+(?:dass|daß)\b)"
    r"|(?:vergiss nicht|denk daran)(?:\s{0,2}:|,?\s+(?:dass|daß)\b)"
    r"|notiere?(?: dir)?(?:,? bitte)?(?:\s{0,2}:|,?\s+(?:dass|daß)\b)"
    r")(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(
    r"(?:forget|vergiss)(?:,? bitte)?"
    r"(?:\s{0,2}:|(?:,? that| (?:all |everything )?about| what (?:i|you) (?:said|know|told you) about"
    r"| everything (?:i told you|you know) about|,? (?:dass|daß|alles über|alles|das mit))(?!\w))?"
    r"(?P<text>\s*\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_NOTHING = re.compile(
    r"(?:it|that|this|them|never ?mind|about it|that one|all|everything|me|you|the rest|about that|about this"
    r"|what i (?:just )?said|i (?:said|asked|mentioned)(?: \w+)?|es|das|me not)?(?:[,!. ].{0,30})?",
    re.IGNORECASE,
)
_ALWAYS_NOTHING = re.compile(
    r"(?:to|how|when|why|whether|where|who|if|the (?:fact|idea) that|nicht|nie|zu|wie|wann)\b",
    re.IGNORECASE,
)
_AROUND = " \t\r\n:,–—-"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked, and of what: the words after “remember that”."""

    kind: Kind
    text: str


def requested(text: str) -> Request | None:
    """The request a message begins with, after a greeting or a please; None if it begins with none.

    “Don't forget to …” is a reminder and “do you remember …?” a question: they are none.
    """
    body = text.strip()
    polite = _POLITE.match(body[:_HEAD])
    asked = polite is not None and re.search(r"\byou\b", polite[0], re.IGNORECASE) is not None
    body = body[polite.end() :] if polite else body
    if match := _REMEMBER.match(body):
        return _request("remember", match["text"], asked=asked)
    if match := _FORGET.match(body):
        return _forget(match["text"], asked=asked)
    return None


def _request(kind: Kind, words: str, *, asked: bool) -> Request | None:
    led = words.lstrip(_AROUND)
    kept = led.rstrip(_AROUND)
    if led[len(kept) :].startswith("-") and not led[len(kept) :].startswith("--"):
        kept += "-"  # a minus sign: blood type A-
    if asked:
        kept = kept.removesuffix("?").rstrip()
    if not any(map(str.isalnum, kept)) or _only_points(kept) or _is_question(kept):
        return None
    return Request(kind, kept)


def _forget(words: str, *, asked: bool) -> Request | None:
    if words[:1].isalnum() and not words[:1].isspace():  # “forgetting”, “forgetful”
        return None
    request = _request("forget", words.rstrip(" .!\n"), asked=asked)
    if request is None or _ALWAYS_NOTHING.match(request.text):
        return None
    return request


def _only_points(words: str) -> bool:
    """Whether the words name nothing by themselves: “forget it”, “forget that, never mind”."""
    return len(words) < 40 and _NOTHING.fullmatch(words) is not None


def _is_question(words: str) -> bool:
    return words.endswith("?") and "\n" not in words and words.count("?") == 1 and "." not in words
