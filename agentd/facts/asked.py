"""What the owner asks to be remembered, as a statement. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

from agentd.domain.fact import Category, FactSource, Provenance, Statement
from agentd.statements.claims import Claim, claims
from agentd.statements.named import is_by_the_way, of_the_user
from agentd.statements.shared import each_told
from agentd.statements.telling import share_said, telling_words

_SAME = 0.75  # of the telling words: a claim with fewer leaves something out
_GERMAN = re.compile(r"(?:mein|unser|unsre)", re.IGNORECASE)
_ORDERS = ("always ", "never ", "immer ", "nie ", "niemals ")


def explicit_statement(
    text: str,
    at: datetime,
    today: date,
    origin: Provenance,
    category: Category | None = None,
) -> Statement:
    """The statement for words that were asked to be kept: the claim that they make, or the words
    themselves. `today` is the owner's day, for words like “tomorrow”.
    """
    claim, besides = _read(text, today)
    parts = [one for one in besides if not (one.is_negated or _is_name(one, text))]
    is_all = claim is not None and _are_all((*parts, claim), text)
    is_told = any(_is_name(one, text) and not _beside(one, text) for one in besides)
    return Statement(
        claim.text if claim and is_all else of_the_user(text) if is_told else text,
        category or (claim.category if claim else _category(text)),
        FactSource.EXPLICIT,
        at,
        origin,
        claim.triple if claim else None,
    )


def explicit_besides(
    text: str, at: datetime, today: date, origin: Provenance
) -> tuple[Statement, ...]:
    """What such words say beside the statement that they are kept as: what holds no longer, as in “I
    switched from A to B”, the first thing in “I live in A and work at B”, and the name in “my dog Max is
    ill”. Nobody asked to keep that name: it is as sure as what is read out of a conversation, and a
    rename may replace it. To be learnt first.
    """
    _, besides = _read(text, today)
    return tuple(
        Statement(
            claim.text,
            claim.category,
            FactSource.EXTRACTED if _is_name(claim, text) else FactSource.EXPLICIT,
            at,
            origin,
            claim.triple,
        )
        for claim in besides
    )


def _read(text: str, today: date) -> tuple[Claim | None, tuple[Claim, ...]]:
    """The claim that the words are kept as, and those beside it."""
    read = claims(text, said_on=today)
    names = tuple(claim for claim in read if _is_name(claim, text))
    others = [claim for claim in read if claim not in names]
    denied = tuple(claim for claim in others if claim.is_negated) if len(others) > 1 else ()
    told = [claim for claim in others if claim not in denied]
    if len(told) > 1 and _is_each_another(told) and _are_all(told, text):
        return told[-1], (*denied, *told[:-1], *names)
    return (told[0] if len(told) == 1 else None), (*denied, *names)


def _is_name(claim: Claim, text: str) -> bool:
    return claim.triple is not None and is_by_the_way(claim.triple, text[slice(*claim.span)])


def _is_each_another(told: Sequence[Claim]) -> bool:
    """Whether the claims are about different things: not the members of one list."""
    relations = [claim.triple.relation for claim in told if claim.triple]
    return len(set(relations)) == len(told)


def _are_all(told: Sequence[Claim], text: str) -> bool:
    """Whether the claims, of one sentence, leave nothing of the text out."""
    if len({claim.span for claim in told}) > 1 or _beside(told[0], text):
        return False
    if share_said(text, " ".join(claim.text for claim in told)) >= _SAME:
        return True
    # What is told in English of a German sentence has few of its words, but has all of its parts.
    return _GERMAN.match(text) is not None and 1 < len(told) == len(each_told(text))


def _beside(claim: Claim, text: str) -> tuple[str, ...]:
    """What the text tells outside the sentence of the claim."""
    start, end = claim.span
    return telling_words(f"{text[:start]} {text[end:]}")


def _category(text: str) -> Category:
    is_order = text.strip().casefold().startswith(_ORDERS)
    return Category.INSTRUCTION if is_order else Category.PERSONAL
