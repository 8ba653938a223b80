"""Finds the words that state a fact to be forgotten, for a request of the eraser. Pure.

The request lists facts as `[k3f9] sentence` and texts that may state them as `[1
memory/2026-05-04.md:3] text`; the answer is a JSON array of `{n, span}`. Matching is strict: a span
repeats the fact's words, claims the same of the same subject, or has all the fact's telling words
in their order and no other name. Of a sentence that states more than the fact, only the clause with
the fact is marked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct

from agentd.core.fact import Triple
from agentd.core.prompt import Prompt
from agentd.providers.offline.conversation import (
    FinalText,
    Reply,
    entries,
    fence_content,
    own_words,
)
from agentd.providers.offline.language.claims import claims_of
from agentd.providers.offline.language.clauses import is_same, saying, triples_claimed
from agentd.providers.offline.language.sentences import order, sentences
from agentd.providers.offline.language.word_forms import telling, terms

FACTS, CANDIDATES = "facts to forget", "candidates"
_FACT = re.compile(r"\[(?P<id>[^\s\[\]]{1,40})(?: since [\d-]{10})?\]\s?(?P<text>.*)")
_CANDIDATE = re.compile(r"\A\[(?P<n>\d{1,9}) (?P<where>[^\]]{1,500})\]\s?(?P<text>.*)")
_CHARS = 20_000  # looked at in a candidate
_SENTENCES, _SENTENCE_CHARS = 400, 500
# Prefixes of lines in notes and transcripts.
_STAMP = re.compile(r"\A\[(?:\d\d:\d\d|user|assistant)\] ")
_ASKED = re.compile(r"\?[\"'”’)]{0,3}\Z")
_NEGATED = re.compile(
    r"n['’]t\b|\b(?:no|not|never|no longer|neither|nicht|nie|kein\w{0,2}|ohne|used to)\b",
    re.IGNORECASE,
)
_FIRST_WORD = re.compile(
    r"(?:the )?(?:user|my|our|your|i|you|we)(?:['’](?:s|m|re|ve))?\b\s*", re.IGNORECASE
)
_PERSONS = re.compile(
    r"\b(?:user|i|my|me|we|our|you|your|ich|mein\w{0,2}|wir|unser\w{0,2}|du|dein\w{0,2})\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:he|she|they|his|her|their|it|its|er|sie|ihr\w{0,2}|sein\w{0,2})\b", re.IGNORECASE
)
_NAME = re.compile(r"(?<=[\w,;:] )[A-ZÀ-Þ][\w-]+")
_MORE_WORDS = 3  # telling words that a sentence may have besides the fact's


class _Fact(Struct, frozen=True):
    text: str
    words: re.Pattern[str]
    triples: tuple[Triple, ...]
    telling: tuple[str, ...]
    is_negated: bool
    kin: bool  # about a person or thing of the user's, such as a sister

    def says(self, other: Triple) -> bool:
        """Whether one of the fact's triples says the same as `other`."""
        return any(is_same(other, triple) for triple in self.triples)


def reply(prompt: Prompt) -> Reply:
    """Return a JSON array of the spans that state one of the facts."""
    text = own_words(prompt)
    facts = [_fact(body) for _, body in entries(fence_content(text, FACTS), _FACT) if body.strip()]
    found = [
        {"n": int(head["n"]), "span": span}
        for head, body in entries(fence_content(text, CANDIDATES), _CANDIDATE)
        for span in dict.fromkeys(_spans(body[:_CHARS], facts))
    ]
    return FinalText(json.dumps(found, ensure_ascii=False))


def _fact(text: str) -> _Fact:
    text = " ".join(text.split())
    spoken = _FIRST_WORD.sub("", text, count=1).rstrip(".!")
    words = r"\s+".join(map(re.escape, text.rstrip(".!").split()[:100]))
    return _Fact(
        text,
        re.compile(rf"(?<!\w){words}(?!\w)[.!]?", re.IGNORECASE),
        tuple(claim.triple for claim in claims_of(text)),
        telling(spoken),
        _NEGATED.search(text) is not None,
        re.match(r"(?:the user['’]s|my|our)\b", text, re.IGNORECASE) is not None,
    )


def _spans(text: str, facts: Sequence[_Fact]) -> Iterator[str]:
    for fact in facts:
        yield from (match[0] for match in islice(fact.words.finditer(text), _SENTENCES))
    for sentence in islice(sentences(text), _SENTENCES):
        words = sentence.text
        if len(words) > _SENTENCE_CHARS or _ASKED.search(words):
            continue
        words = _STAMP.sub("", words)
        asked = order(words)
        said = asked if asked and asked in words else words
        for fact in facts:
            if fact.words.search(said) is None:
                yield from _clauses(said, fact) or ([said] if _says(said, fact) else [])


def _clauses(said: str, fact: _Fact) -> list[str]:
    """Return the shortest parts of the sentence that state the fact by themselves."""
    names = {term for triple in fact.triples for term in terms(triple.value)}
    if not fact.triples or (names and names.isdisjoint(terms(said))):
        return []
    return [clause for clause, _ in saying(said, fact.says)]


def _says(said: str, fact: _Fact) -> bool:
    triples = triples_claimed(said)
    if fact.triples and triples:
        return any(map(fact.says, triples))
    return _has_its_words(said, fact)


def _has_its_words(said: str, fact: _Fact) -> bool:
    """Whether the sentence has all telling words of the fact in their order, is negated exactly if
    the fact is, and mentions nobody else.
    """
    if len(fact.telling) < 2 or (_NEGATED.search(said) is not None) != fact.is_negated:
        return False
    mine = telling(_FIRST_WORD.sub("", said, count=1))
    rest = iter(mine)
    if len(mine) > len(fact.telling) + _MORE_WORDS or not all(w in rest for w in fact.telling):
        return False
    if fact.triples and not fact.kin and not _PERSONS.search(said):
        return False
    if _OTHERS.search(said) and not _OTHERS.search(fact.text):
        return False
    known = fact.text.casefold()
    names = {match[0].casefold() for match in _NAME.finditer(said)}
    return all(name in known for name in names) and _subject(said) in ("", *_subjects(fact))


def _subject(said: str) -> str:
    """Return the noun after a “my” at the beginning of the sentence; "" for any other beginning."""
    match = re.match(
        r"(?:my|your|our|the user's|mein\w{0,2}|dein\w{0,2}) ([^\W\d_]+)", said, re.IGNORECASE
    )
    return match[1].casefold() if match else ""


def _subjects(fact: _Fact) -> tuple[str, ...]:
    return (_subject(fact.text.replace("The user's", "my").replace("the user's", "my")),)
