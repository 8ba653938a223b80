"""The user's secrets in conversations: never put into a request or a fact, but the user can have
them forgotten. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import sha256

from msgspec import Struct

from agentd.core.erasure import sentences_in
from agentd.core.fact import Category, Evidence, Fact, FactSource, Triple
from agentd.core.redaction import SecretSpan, tellings
from agentd.core.spans import Spans
from agentd.core.transcript import Row, opens_turn
from agentd.core.turn import SessionKey
from agentd.memory.facts.known import fold_text

_WORD = re.compile(r"\w+")
_USER = "user"


class WithheldSecret(Struct, frozen=True):
    """A secret and the places where the user told it. `fact` describes it in the form of a fact,
    but is never stored.
    """

    fact: Fact
    evidence: tuple[Evidence, ...]


def secret_spans(text: str) -> Spans:
    """Return the spans of the sentences in a text that reveal a secret."""
    around = _Sentences(text)
    return tuple(dict.fromkeys(span for told in tellings(text) for span in around(told)))


def secrets_told(session: SessionKey, rows: Iterable[Row]) -> Iterator[WithheldSecret]:
    """Yield the secrets that the user reveals in these rows of a conversation."""
    for row in rows:
        if not (opens_turn(row) and row.source.is_owners_own):
            continue
        around = _Sentences(row.text)
        for told in tellings(row.text):
            spans = around(told)
            said = [Evidence(row.at, session, row.seq, *span) for span in spans]
            words = " ".join(row.text[start:end] for start, end in spans)
            yield WithheldSecret(_fact(told, words, row), tuple(said))


def without_repeats(several: Iterable[WithheldSecret]) -> tuple[WithheldSecret, ...]:
    """Merge equal secrets: the fact of the first time, with all evidence."""
    found: dict[str, WithheldSecret] = {}
    for one in sorted(several, key=lambda one: one.fact.noted_at):
        before = found.get(one.fact.id)
        said = before.evidence if before is not None else ()
        found[one.fact.id] = WithheldSecret(
            before.fact if before else one.fact, tuple(dict.fromkeys((*said, *one.evidence)))
        )
    return tuple(found.values())


def match_secrets(query: str, several: Sequence[WithheldSecret]) -> tuple[WithheldSecret, ...]:
    """Return the secrets that a request to forget means: those whose value it contains, else those
    whose name it contains.
    """
    asked = set(_WORD.findall(fold_text(query)))

    def says(words: str) -> bool:
        own = set(_WORD.findall(fold_text(words)))
        return bool(own) and own <= asked

    by_value = tuple(one for one in several if one.fact.triple and says(one.fact.triple.value))
    return by_value or tuple(
        one for one in several if one.fact.triple and says(one.fact.triple.relation)
    )


def _fact(told: SecretSpan, words: str, row: Row) -> Fact:
    """Build the fact; its id is the same wherever the same secret is told."""
    name = f"{fold_text(told.name)}\0{told.value}".encode(errors="replace")
    return Fact(
        sha256(name).hexdigest()[:8],
        words,
        Category.PERSONAL,
        FactSource.EXTRACTED,
        FactSource.EXTRACTED.confidence,
        row.at,
        row.at,
        triple=Triple(_USER, told.name, told.value),
    )


class _Sentences:
    """The sentences of a text, split at the first use."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _spans(self) -> Spans:
        return sentences_in(self._text)

    def __call__(self, told: SecretSpan) -> Spans:
        """Return the sentences that the secret lies in."""
        first = bisect_right(self._spans, told.start, key=lambda span: span[1])
        last = bisect_left(self._spans, told.end, key=lambda span: span[0])
        return self._spans[first:last]
