"""Splits typed text into sentences, and tells apart questions, orders and quoted text. Pure.

Every pattern looks at a bounded stretch of text and repeats nothing inside a repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from agentd.providers.offline.language.calendar import MONTHS

HOLE = "\x00"  # replaces each character taken out; no statement contains one

_END = re.compile(r"[.!?…]{1,9}[\"'”’»)\]]{0,3}(?=\s|\Z)|[。！？]{1,9}[”』」]?|\n")
_SHORT = re.compile(
    r"dr|mr|mrs|ms|st|no|nr|prof|vs|eg|ie|etc|approx|str|ca|bzw|jr|sr|inc|ltd|co|dept|fig|vol"
    r"|ave|tel|evtl|ggf|inkl|mio|usw|zb|dh|ua|\w{0,20}str|[^\W\d_]"
)
_BULLET = re.compile(r"\s*(?:[-*+•–]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_MONTH_WORD = re.compile(rf"(?:{'|'.join(MONTHS)})\b", re.IGNORECASE)
_LOOKS_BACK = 24

_FENCE = re.compile(
    r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_TAIL = re.compile(
    r"^[ \t]*(?:on .{5,80} wrote:|-{2,} ?(?:original|forwarded|weitergeleitete) .{0,40}|-- ?$"
    r"|from: .{1,80}@|am .{5,80} schrieb .{1,60}:)",
    re.IGNORECASE | re.MULTILINE,
)
_PASTED_LINE = re.compile(
    r"^(?:[ \t]{0,3}[>|$#].*| {4,}\S.*|\t.*|<[^>\n]*>.*|[ \t]*\[?\d{1,2}:\d\d(?::\d\d)?\]? .*"
    r"|[ \t]*\d{4}-\d\d-\d\d[T ]\d\d:.*|[{}\[\]();]+.*)$",
    re.MULTILINE,
)
_QUOTED = re.compile(
    r"\"[^\"\n]{0,600}(?:\"|$)|“[^“”\n]{0,600}(?:”|$)|„[^„“”\n]{0,600}(?:[“”]|$)"
    r"|«[^«»\n]{0,600}(?:»|$)"
    r"|(?:(?<=\s)|(?<=^)|(?<=[:(]))['‘](?=\w)[^\n'’]{2,400}[.!?]?['’](?=[\s.,;:!?)]|$)"
    r"|`[^`\n]{0,400}(?:`|$)",
    re.MULTILINE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|my|ich|mein|meine)\b", re.IGNORECASE)
_SHORT_QUOTE = 3  # words at most in a quote that is a name or a value

_HEAD = 400
_POLITE = re.compile(
    r"\s*(?:(?:hey|hi|hello|hallo|ok|okay|well|so|and|also|now|agentd|please|pls|bitte|btw|by the "
    r"way)\b[\s,.!:]{0,5}){0,5}"
    r"(?:(?:can|could|would|will) you |i(?:['’]d like| want| need) you to )?(?:please )?(?:kindly "
    r")?",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:remember|note|memori[sz]e|keep in mind|(?:don['’]?t|do not|never) forget"
    r"|(?:make|take) a note|(?:write|note|jot) (?:this |that |it )?down|for the record"
    r"|(?:save|store)(?= this| that)"
    r"|merke? dir|notiere?|vergiss nicht|denk daran|souviens-toi|rappelle-toi|retiens|recuerda"
    r"|anota|apunta)"
    r"(?:[,:]?\s{1,5}(?:of |down )?(?:this|that|the following|to self|for me|bitte|dass|que"
    r"|qu['’])){0,2}"
    r"(?![^\W_])[\s:,–-]{0,10}",
    re.IGNORECASE,
)
_NOT_AN_ORDER = re.compile(
    # “Remember, I keep it in the shed” is a reminder, not an order.
    r"(?:remember|note) (?:when|what|who|whom|where|which|how|why|whether|if|me)\b"
    r"|remember,\s+(?!that\b|this\b|the following\b)|(?:merke? dir|notiere?) (?:nichts|nie)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:what(?:['’]s)?|which|who(?:['’]s|m|se)?|when|where|why|how"
    r"|(?:do|does|did|is|are|was|were|have|has|had|can|could|will|would|should|am) "
    r"(?:you|i|we|it|he|she|they|the|my|our|there|this|that|any)"
    r"|tell me|remember (?:when|what|who|where|which|how|why)|look up|search|find|any idea"
    r"|was|wer|wen|wem|wessen|wie|wo|wann|warum|wieso|welche[rsnm]?|kennst du|weißt du"
    r"|qui|quel(?:le)?s?|où|quand|comment|combien|pourquoi|est-ce|qu['’]est-ce"
    r"|qué|quién|cuál|cuándo|dónde|cómo|cuánt[oa]s?)(?![^\W_])",
    re.IGNORECASE,
)
_AS_CLAUSE = re.compile(
    r"(?:when|where|what|how|was|who)\b[^?]{0,300},[^?]{0,300}[.!]\Z", re.IGNORECASE
)
_TRAILING = " \t\r\n\"'”’»)*_"


class Sentence(Struct, frozen=True):
    """One sentence: `text[start:end]` of the whole text, without blanks and bullets around it."""

    text: str
    start: int
    end: int


def sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences and lines of a text, in order; those without a letter or digit are left
    out.
    """
    start = 0
    for match in _END.finditer(text):
        if match[0] == "." and _goes_on(text, match.start()):
            continue
        yield from _sentence(text, start, match.end())
        start = match.end()
    yield from _sentence(text, start, len(text))


def split(text: str) -> Iterator[str]:
    """Return the sentences and lines of a text as strings."""
    return (sentence.text for sentence in sentences(text))


def own_words(text: str) -> str:
    """Replace all that is not the writer's own statement (code, quotes, pasted lines) by HOLE; the
    length and every other position stay the same.
    """
    text = re.sub(r"(?<=\w)[’ʼ](?=\w)", "'", text.replace(HOLE, " ")).replace("\u00a0", " ")
    text = _FENCE.sub(_hole, text)
    if match := _TAIL.search(text):
        text = text[: match.start()] + HOLE * (len(text) - match.start())
    return _QUOTED.sub(_quote, _PASTED_LINE.sub(_hole, text))


def bare(text: str) -> str:
    """Return the text without greetings and polite words at its beginning."""
    text = text.strip()
    match = _POLITE.match(text[:_HEAD])
    rest = text[match.end() :] if match else text
    return rest or text


def is_question(text: str) -> bool:
    """Whether the text asks something."""
    tail = text[-_HEAD:].rstrip(_TRAILING)
    if tail.endswith(("?", "？", "؟")):
        return True
    head = bare(text)[:_HEAD].lstrip("¿ ")
    return _ASKS.match(head) is not None and _AS_CLAUSE.match(tail) is None


def order(text: str) -> str | None:
    """Return the text that an order like “remember that …” wants kept; "" if the order refers to
    something said before, None if the text is no such order.
    """
    head = bare(text)
    match = _ORDER.match(head[:_HEAD])
    if match is None or _NOT_AN_ORDER.match(head[:_HEAD]):
        return None
    is_polite = re.match(r"[^?]{0,60}\b(?:can|could|would|will) you\b", text[:_HEAD], re.IGNORECASE)
    if next(split(head[:_HEAD]), "").endswith("?") and not is_polite:
        return None
    fact = head[match.end() :].strip()
    if fact.rstrip(".!? ").casefold() in {"", "it", "this", "that", "es", "das"}:
        return ""
    if fact[:3].casefold() == "to ":
        return f"Remember {fact}"
    for question in reversed(list(split(fact[-_HEAD:]))[1:]):  # a question after the order
        if not question.endswith("?") or not fact.endswith(question):
            break
        fact = fact.removesuffix(question).rstrip()
    return fact.rstrip("? ") if is_polite else fact


def without_order(text: str) -> str:
    """Return the text without “remember that” at its beginning."""
    return order(text) or text


def _sentence(text: str, start: int, end: int) -> Iterator[Sentence]:
    piece = text[start:end]
    bullet = _BULLET.match(piece)
    body = piece[bullet.end() :] if bullet else piece
    start = end - len(body.lstrip())
    body = body.strip()
    if any(map(str.isalnum, body)):
        yield Sentence(body, start, start + len(body))


def _goes_on(text: str, dot: int) -> bool:
    """Whether the full stop belongs to an abbreviation, an initial or a number, so that the
    sentence goes on.
    """
    head = text[max(0, dot - _LOOKS_BACK) : dot]
    words = head.split()
    word = words[-1].replace(".", "").casefold().lstrip("(\"'") if words else ""
    if head.endswith("\n") or (word.isdigit() and head.strip(" \n") == word):
        return True
    if word != "i" and _SHORT.fullmatch(word):
        return True
    follows = text[dot + 1 : dot + 40].split()
    if word.isdigit() and len(word) <= 2 and follows and _MONTH_WORD.match(follows[0]):
        return True
    return bool(follows) and follows[0][0].islower()


def _hole(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", HOLE, match[0])


def _quote(match: re.Match[str]) -> str:
    inside = match[0][1:-1]
    is_closed = len(match[0]) > 2 and not match[0][-1].isalnum()
    if is_closed and len(inside.split()) <= _SHORT_QUOTE and not _FIRST_PERSON.search(inside):
        return f" {inside} "
    return _hole(match)
