"""A conversation, and what a careful reader would know at its end."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

Keywords = tuple[tuple[str, ...], ...]
"""Alternatives of words: a sentence fits if it has all words of one of them."""


@dataclass(frozen=True, slots=True)
class Expected:
    """A fact that a message says. `quote` is the span of the message that says it; `replaces` are
    the expected facts that it takes the place of.
    """

    id: str
    text: str
    keywords: Keywords
    quote: str
    category: str = "personal"
    triple: tuple[str, str, str] | None = None
    replaces: tuple[str, ...] = ()
    valid_to: str = ""

    def is_said_by(self, sentence: str) -> bool:
        """Whether the sentence says it."""
        return fits(sentence, self.keywords)


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of the user and all that belongs to it. `tool` is what a tool puts out before the
    agent answers, `attached` a document beside the message, `beat` what the checklist says before a
    heartbeat. `ends`, `repeats` and `forgets` name expected facts; `never` are words that no fact
    may have.
    """

    user: str = ""
    agent: str = ""
    tool: str = ""
    attached: str = ""
    beat: str = ""
    knows: tuple[Expected, ...] = ()
    asks_to_keep: bool = False
    ends: tuple[str, ...] = ()
    repeats: tuple[str, ...] = ()
    forgets: tuple[str, ...] = ()
    canary: str = ""
    never: Keywords = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Sessions of one user, one after the other, each with a rest behind it."""

    name: str
    sessions: tuple[tuple[Turn, ...], ...]
    facts: dict[str, Expected] = field(init=False)

    def __post_init__(self) -> None:
        facts = {fact.id: fact for turn in self.turns() for fact in turn.knows}
        object.__setattr__(self, "facts", facts)

    def turns(self) -> Iterator[Turn]:
        """All turns in order."""
        for session in self.sessions:
            yield from session

    def replaced(self) -> dict[str, str]:
        """The facts that others took the place of, each with the one that did."""
        return {old: fact.id for fact in self.facts.values() for old in fact.replaces}

    def ended(self) -> set[str]:
        """The facts that hold no longer, with nothing in their place."""
        return {old for turn in self.turns() for old in turn.ends}

    def forgotten(self) -> set[str]:
        """The facts that were to be erased."""
        return {old for turn in self.turns() for old in turn.forgets}

    def active(self) -> tuple[Expected, ...]:
        """What holds at the end."""
        gone = self.replaced().keys() | self.ended() | self.forgotten()
        return tuple(fact for fact in self.facts.values() if fact.id not in gone)

    def asked_to_keep(self) -> set[str]:
        """The facts that the user asked the agent to remember."""
        return {fact.id for turn in self.turns() if turn.asks_to_keep for fact in turn.knows}


def normal(text: str) -> str:
    """The text as it is compared: compatible characters as one, no case, single blanks."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text).casefold()).strip()


def fits(sentence: str, keywords: Keywords) -> bool:
    """Whether the sentence has all words of one alternative."""
    text = normal(sentence)
    return any(all(_has(text, normal(word)) for word in words) for words in keywords)


def _has(text: str, word: str) -> bool:
    """A number stands only where it is a number of its own; anything else may be part of a word."""
    if not word[0].isdigit():
        return word in text
    return re.search(rf"(?<![\d.,:/]){re.escape(word)}(?!\d|[.,:]\d)", text) is not None
