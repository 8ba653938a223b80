"""What the owner asks to be remembered, as a statement. Pure."""

from __future__ import annotations

from datetime import date, datetime

from agentd.domain.fact import Category, FactSource, Provenance, Statement
from agentd.statements.claims import Claim, claims
from agentd.statements.named import is_by_the_way, of_the_user
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
    claim, besides = _read(text, today)
    is_all = claim is not None and _is_all(claim, text)
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
    switched from A to B”, and the name in “my dog Max is ill”. Nobody asked to keep the name: it is as
    sure as what is read out of a conversation, and a rename may replace it. To be learnt first.
    """
    _, besides = _read(text, today)
    return tuple(
        Statement(
            claim.text,
            claim.category,
            FactSource.EXPLICIT if claim.is_negated else FactSource.EXTRACTED,
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
    return (told[0] if len(told) == 1 else None), (*denied, *names)


def _is_name(claim: Claim, text: str) -> bool:
    return claim.triple is not None and is_by_the_way(claim.triple, text[slice(*claim.span)])


def _is_all(claim: Claim, text: str) -> bool:
    """Whether the claim leaves nothing of the text out."""
    return not _beside(claim, text) and share_said(text, claim.text) >= _SAME


def _beside(claim: Claim, text: str) -> tuple[str, ...]:
    """What the text tells outside the sentence of the claim."""
    start, end = claim.span
    return telling_words(f"{text[:start]} {text[end:]}")


def _category(text: str) -> Category:
    is_order = text.strip().casefold().startswith(_ORDERS)
    return Category.INSTRUCTION if is_order else Category.PERSONAL
