"""Sentences of what people type: where they end, and whether they ask, order or state. Pure.

Every pattern is matched against a bounded head of the text and has no nested repetition.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_END = re.compile(r"[.!?…](?=\s)|[。！？]|\n")
_ABBREVIATIONS = re.compile(
    r"dr|mr|mrs|ms|st|no|nr|prof|vs|eg|ie|etc|approx|str|ca|bzw|jr|sr|[^\W\d_]", re.IGNORECASE
)
_HEAD = 400
_POLITE = re.compile(
    r"\s*(?:(?:hey|hi|hello|ok|okay|well|so|and|also|now|agentd|please|pls|bitte)[\s,.!:]{1,5}){0,4}"
    r"(?:(?:can|could|would|will) you |i(?:['’]d like| want| need) you to )?(?:please )?(?:kindly )?",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"(?:remember|note|memori[sz]e|keep in mind|(?:don['’]?t|do not|never) forget"
    r"|(?:make|take) a note|(?:write|note|jot) (?:this |that |it )?down|for the record"
    r"|(?:save|store)(?= this| that)"
    r"|merke? dir|notiere?|vergiss nicht|souviens-toi|rappelle-toi|retiens|recuerda|anota|apunta)"
    r"(?:,?\s{1,5}(?:of |down )?(?:this|that|the following|to self|for me|dass|que|qu['’]))?"
    r"(?![^\W_])[\s:,–-]{0,10}",
    re.IGNORECASE,
)
_NOT_AN_ORDER = re.compile(
    # “Remember, I keep it in the shed” reminds of what was said; it asks for nothing.
    r"(?:remember|note) (?:when|what|who|whom|where|which|how|why|whether|if|me)\b"
    r"|remember,\s+(?!that\b|this\b|the following\b)",
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


def split(text: str) -> Iterator[str]:
    """The sentences and lines of a text, without blanks around them."""
    start = 0
    for match in _END.finditer(text):
        if match[0] == "." and _goes_on(text, match.start()):
            continue
        if piece := text[start : match.end()].strip():
            yield piece
        start = match.end()
    if piece := text[start:].strip():
        yield piece


def is_question(text: str) -> bool:
    """Whether the text asks something."""
    tail = text[-_HEAD:].rstrip(_TRAILING)
    if tail.endswith(("?", "？", "؟")):
        return True
    head = bare(text)[:_HEAD].lstrip("¿ ")
    return _ASKS.match(head) is not None and _AS_CLAUSE.match(tail[-_HEAD:]) is None


def order(text: str) -> str | None:
    """What is to be remembered, in its own words; None if the text is no such order."""
    head = bare(text)
    match = _ORDER.match(head[:_HEAD])
    if match is None or _NOT_AN_ORDER.match(head[:_HEAD]):
        return None
    is_polite = _asked_politely(text)
    first = next(split(head[:_HEAD]), "")
    if first.endswith("?") and not is_polite:
        return None
    fact = head[match.end() :].strip()
    if fact.rstrip(".!? ").casefold() in {"", "it", "this", "that"}:
        return ""
    if fact[:3].casefold() == "to ":
        return f"Remember {fact}"
    return _without_questions(fact).rstrip("? ") if is_polite else _without_questions(fact)


def without_order(text: str) -> str:
    """The text without a leading “remember that”."""
    return order(text) or text


def bare(text: str) -> str:
    """The text without greetings and polite words before it."""
    text = text.strip()
    match = _POLITE.match(text[:_HEAD])
    rest = text[match.end() :] if match else text
    return rest or text


def _without_questions(fact: str) -> str:
    """The fact without the questions that follow it."""
    for question in reversed(list(split(fact[-_HEAD:]))[1:]):
        if not question.endswith("?") or not fact.endswith(question):
            break
        fact = fact.removesuffix(question).rstrip()
    return fact


def _asked_politely(text: str) -> bool:
    return (
        re.match(r"[^?]{0,60}\b(?:can|could|would|will) you\b", text[:_HEAD], re.IGNORECASE)
        is not None
    )


def _goes_on(text: str, dot: int) -> bool:
    """Whether the full stop ends a short form rather than a sentence."""
    words = text[max(0, dot - 12) : dot].split()
    word = words[-1].replace(".", "") if words else ""
    follows = text[dot + 1 : dot + 40].lstrip(" ")[:1]
    return _ABBREVIATIONS.fullmatch(word) is not None or follows.islower()
