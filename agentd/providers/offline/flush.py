"""Saving what the user stated, before it leaves the context. Pure."""

from __future__ import annotations

from agentd.domain.prompt import Prompt
from agentd.providers.offline.conversation import done
from agentd.providers.offline.reply import Reply, Say

NOTHING = "NO_REPLY"


def reply(prompt: Prompt) -> Reply:
    """One write of the statements that no note holds yet, then silence."""
    failed = [d.result.text for d in done(prompt) if d.result.is_error]
    return Say(f"Nothing was saved: {failed[-1]}" if failed else NOTHING)
