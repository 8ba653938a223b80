"""What the owner asks to be remembered, as a statement. Pure."""

from __future__ import annotations

from datetime import date, datetime

from agentd.domain.fact import Category, FactSource, Provenance, Statement
from agentd.statements.claims import Claim, claims
from agentd.statements.telling import share_said, telling_words

_SAME = 0.75  # of the telling words: a claim with fewer leaves something out
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
    read = claims(text, said_on=today)
    told = [claim for claim in read if not claim.is_negated] if len(read) > 1 else read
    claim = told[0] if len(told) == 1 else None
    is_all = claim is not None and _is_all(claim, text)
    return Statement(
        claim.text if claim and is_all else text,
        category or (claim.category if claim else _category(text)),
        FactSource.EXPLICIT,
        at,
        origin,
        claim.triple if claim else None,
    )


def explicit_denials(
    text: str, at: datetime, today: date, origin: Provenance
) -> tuple[Statement, ...]:
    """What such words say to hold no longer beside the statement that they are kept as: “I switched
    from A to B”. To be learnt first.
    """
    read = claims(text, said_on=today)
    denied = [claim for claim in read if claim.is_negated] if len(read) > 1 else ()
    return tuple(
        Statement(c.text, c.category, FactSource.EXPLICIT, at, origin, c.triple) for c in denied
    )


def _is_all(claim: Claim, text: str) -> bool:
    """Whether the claim leaves nothing of the text out."""
    start, end = claim.span
    beside = telling_words(f"{text[:start]} {text[end:]}")
    return not beside and share_said(text, claim.text) >= _SAME


def _category(text: str) -> Category:
    is_order = text.strip().casefold().startswith(_ORDERS)
    return Category.INSTRUCTION if is_order else Category.PERSONAL
