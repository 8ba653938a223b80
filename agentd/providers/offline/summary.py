"""A summary without a model: the user's own words, shortened, and every identifier. Pure."""

from __future__ import annotations

from agentd.domain.prompt import Prompt
from agentd.engine.compaction.summary import identifiers
from agentd.providers.offline.conversation import own_words
from agentd.providers.offline.reply import Reply, Say

_HEAD = (
    "Extract of the conversation, made without a language model: the user's words, and identifiers."
)


def reply(prompt: Prompt) -> Reply:
    """The summary."""
    text = own_words(prompt)
    return Say(f"{_HEAD}\n{' '.join(identifiers(text))}\n{text[:2000]}")
