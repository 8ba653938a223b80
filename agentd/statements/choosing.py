"""Which of several things an answer names: “2”, “the second one”, “both”, “Rex”. Pure."""

from __future__ import annotations

import re

from agentd.statements.normal import normalised
from agentd.statements.telling import is_same_word, telling_words

LONGEST = 100  # characters of an answer: a longer text is about something else

_ORDINALS = {
    word: place
    for place, words in enumerate(
        (
            "first erste ersten erstes", "second zweite zweiten zweites",
            "third dritte dritten drittes", "fourth vierte vierten viertes",
            "fifth fünfte fünften fünftes",
        )
    )
    for word in words.split()
}  # fmt: skip
_LAST = frozenset({"last", "letzte", "letzten", "letztes"})
_EACH = re.compile(r"(?:(?:all|both)(?: of (?:them|these|those))?|alle(?: \w+)?|beide)")
_NONE = re.compile(
    r"(?:no(?:ne|thing|pe)?|neither|keep .{1,30}|stop|cancel|never ?mind|nein|nichts|kein(?:e[nrs]?)?)"
    r"(?: of (?:them|these|those)|,? .{0,20})?"
)
_PLAIN = re.compile(r"#?(\d{1,3})\.?")
_NUMBER = re.compile(r"\b(?:number |nummer |no\. ?|nr\.? ?)(?=\d)")
_FILLER = frozenset(
    [
        "the",
        "a",
        "an",
        "one",
        "ones",
        "of",
        "them",
        "these",
        "those",
        "my",
        "our",
        "please",
        "that",
        "is",
        "it",
        "about",
        "with",
        "called",
        "named",
        "forget",
        "das",
        "der",
        "die",
        "den",
        "mit",
        "mein",
        "meine",
        "meinen",
        "bitte",
        "vergiss",
        "and",
        "und",
        "i",
        "mean",
        "meant",
        "meine",
        "ich",
        "user",
        "user's",
    ]
)
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")


def places(text: str, count: int) -> tuple[int, ...]:
    """The places in a list of `count` that the text names and nothing else, from 0; () if it names
    none.
    """
    words = _bare(text)
    if not words:
        return ()
    if _EACH.fullmatch(" ".join(words)):
        return tuple(range(count))
    named = [word for word in words if word not in _FILLER]
    if len(named) != 1:
        return ()
    word = named[0]
    plain = _PLAIN.fullmatch(word)
    place = int(plain[1]) - 1 if plain else count - 1 if word in _LAST else _ORDINALS.get(word, -1)
    return (place,) if 0 <= place < count else ()


def is_none(text: str) -> bool:
    """Whether the answer is that none of them is meant."""
    return len(text) <= LONGEST and _NONE.fullmatch(normalised(text)) is not None


def says_only(text: str, sentence: str) -> bool:
    """Whether an answer names a sentence by nothing but words of it."""
    if len(text) > LONGEST or "?" in text:
        return False
    there = _WORD.findall(normalised(sentence))
    words = [word for word in _WORD.findall(normalised(text)) if word not in _FILLER]
    held = all(any(is_same_word(word, other) for other in there) for word in words)
    return held and bool(telling_words(" ".join(words)))


def _bare(text: str) -> list[str]:
    if len(text) > LONGEST or "?" in text:
        return []
    return _NUMBER.sub("", normalised(text)).replace(",", "").split()
