"""Judges the reply of a silent turn. Pure.

NO_REPLY alone, or HEARTBEAT_OK at the start or end with little else, means that nothing needs the
user. Anywhere else the token is an ordinary word, also if the words next to it negate it. In doubt
the reply is an alert: a false alarm costs a glance, a swallowed alert may cost a disk.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from msgspec import Struct

# What models put around a word: markup, quotes, tags, punctuation, emoji.
_EDGE = r"(?:<[^<>]{0,40}>|[^\w<]|_)"
_ACK = r"(?<![^\W_])heartbeat\\?_ok(?![^\W_])"
_START = re.compile(rf"{_EDGE}*{_ACK}", re.IGNORECASE)
_END = re.compile(rf"{_ACK}{_EDGE}*\Z", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_DENIALS = re.compile(
    r"not|non|never|cannot|unable|without|instead|than|nicht|keine?|nie|ohne|pas|sans|jamais|sin"
    r"|nunca|não|nem|niet|geen|inte|ikke|не|нет|.*n't"
)
_ADJACENT_DENIALS = re.compile(r"no|of")
_PREDICATES = re.compile(r"not|never|cannot|(?:is|was|would|will|can|does)(?:n't)?|won't|can't")
_NO_REPLY = re.compile(r"[\W_]*no(?:\\?_|[ -])reply[\W_]*", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][a-z0-9]*>", re.IGNORECASE)
_OPENED = re.compile(r"<[^/<>][^<>]{0,40}>\Z")
_LONGEST_TAG = 43  # longest match of _OPENED, in characters
_OPENING = "-—–*_`\"'“‘("
_MOST = 16  # tokens that are stripped; a reply with hundreds is no all-clear
_SENTENCE_END = ".!?…:;,\n()[]—–-"


class Quiet(Struct, frozen=True):
    """Nothing needs the user. `text` are the words beside HEARTBEAT_OK; `tainted` as in Alarm."""

    text: str = ""
    tainted: bool = False


class Told(Struct, frozen=True):
    """The model told the user `text` itself, with the notify tool; its reply is dropped.
    `is_repetition`: each alert had been told within 24 hours, so none was sent.
    """

    text: str = ""
    tainted: bool = False
    is_repetition: bool = False


class Alarm(Struct, frozen=True):
    """The reply is for the user; `tainted` if text from outside had a part in it."""

    text: str
    tainted: bool = False


class Empty(Struct, frozen=True):
    """The model said nothing at all, which does not count as an all-clear."""


class Failed(Struct, frozen=True):
    """The turn gave no reply. `is_cut`: somebody ended the turn; it did not fail. `is_over_budget`:
    a limit of [budget] would have been exceeded.
    """

    text: str = ""
    is_cut: bool = False
    is_over_budget: bool = False


ReplyVerdict = Quiet | Told | Alarm | Empty
Verdict = ReplyVerdict | Failed


def judge(reply: str, ack_max_chars: int, *, notified: Sequence[str] = ()) -> ReplyVerdict:
    """Return the verdict on a reply. `notified` are the alerts sent with the notify tool in this
    turn; `ack_max_chars` is how many characters may stand beside HEARTBEAT_OK in a quiet reply.
    """
    if notified:
        return Told("\n\n".join(notified))
    rest, acknowledged = _strip(html.unescape(reply))
    if acknowledged and len(rest) <= ack_max_chars:
        return Quiet(rest)
    if is_no_reply(reply):
        return Quiet()
    text = rest if acknowledged else reply.strip()
    return Alarm(text) if _WORD.search(text) or _has_symbol(text) else Empty()


def is_no_reply(text: str) -> bool:
    """Whether the whole text is NO_REPLY, ignoring case, markup and punctuation."""
    return _NO_REPLY.fullmatch(_TAG.sub("", text)) is not None


def _strip(text: str) -> tuple[str, bool]:
    """Strip the acknowledgements at both ends; return the rest, and whether there was one."""
    found = False
    for _ in range(_MOST):
        if (match := _START.match(text)) and not _denied_after(text[match.end() :]):
            text, found = text[match.end() :], True
        elif (match := _END.search(text)) and not _denied_before(text[: match.start()]):
            text, found = text[: match.start()], True
        else:
            break
    return (_trim(text) if found else text), found


def _denied_before(text: str) -> bool:
    """Whether the words directly before the token negate it."""
    words = _words(re.split(f"[{re.escape(_SENTENCE_END)}]", text)[-1])[-3:]
    if not words:
        return False
    denied = any(_DENIALS.fullmatch(word) for word in words)
    return denied or _ADJACENT_DENIALS.fullmatch(words[-1]) is not None


def _denied_after(text: str) -> bool:
    """Whether the token is the subject of a negation (`HEARTBEAT_OK is not what I can say`)."""
    words = _words(re.split(f"[{re.escape(_SENTENCE_END)}]", text)[0])[:1]
    return bool(words) and _PREDICATES.fullmatch(words[0]) is not None


def _words(text: str) -> list[str]:
    return [word.lower().replace("’", "'") for word in _WORD.findall(text)]


def _trim(text: str) -> str:
    """Strip what the token leaves behind at the edges, but keep complete markup of the rest."""
    text = re.sub(r"\A(?:</[^<>]{0,40}>|[\s.,:;!?—–\-*_`\"'”’])+", "", text)
    text = text[: _end(text)]
    return text if _WORD.search(text) or _has_symbol(text) else ""


def _end(text: str) -> int:
    """Return the offset at which trailing punctuation and opening markup begin."""
    end = len(text)
    while end:
        if text[end - 1].isspace() or text[end - 1] in _OPENING:
            end -= 1
        elif tag := _OPENED.search(text, max(end - _LONGEST_TAG, 0), end):
            end = tag.start()
        else:
            break
    return end


def _has_symbol(text: str) -> bool:
    """Whether the text has a symbol such as an emoji, which alone is a message."""
    return any(ord(char) > 0x2FFF for char in text)
