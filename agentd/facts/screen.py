"""What must not become a fact, whoever says it."""

from __future__ import annotations

from agentd.domain.erasure import MASK
from agentd.screening.scanner import scan
from agentd.secrets import tells_secret


def objection(text: str) -> str:
    """Why the text must not become a fact: `secret` for what looks like a key or tells a password,
    `suspicious` for what reads like orders to the agent, `empty` for what is left of something that
    was forgotten, "" for anything else.
    """
    if text.strip() == MASK:
        return "empty"
    if tells_secret(text):
        return "secret"
    return "suspicious" if any(suspicion.is_high for suspicion in scan(text)) else ""
