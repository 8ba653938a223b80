"""What must not become a fact, whoever says it."""

from __future__ import annotations

from collections.abc import Callable

from agentd.domain.erasure import MASK
from agentd.domain.fact import Refusal
from agentd.redaction import tells_secret
from agentd.screening.scanner import scan

Screen = Callable[[str], Refusal | None]


def objection(text: str) -> Refusal | None:
    """Why the text must not become a fact; None if it may. What is left of something that was forgotten
    is EMPTY.
    """
    if text.strip() == MASK:
        return Refusal.EMPTY
    if tells_secret(text):
        return Refusal.CREDENTIAL
    return Refusal.SUSPICIOUS if any(suspicion.is_high for suspicion in scan(text)) else None
