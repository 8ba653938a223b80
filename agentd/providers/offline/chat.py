"""One step of a conversation with the user. Pure."""

from __future__ import annotations

import re

from agentd.domain.prompt import Prompt
from agentd.providers.offline import conversation
from agentd.providers.offline.reply import Call, Reply, Say

_REMEMBER = re.compile(r"\s*(?:please )?(?:remember|note)(?: that| this)?[:,]?\s+(.+)", re.I | re.S)


def reply(prompt: Prompt) -> Reply:
    """The next tool call, or the answer."""
    text = conversation.own_words(prompt)
    results = conversation.done(prompt)
    fact = _REMEMBER.match(text)
    if results:
        last = results[-1]
        if last.use.name == "memory_write":
            if last.result.is_error:
                return Say(f"I could not note that: {last.result.text}")
            return Say(f"Noted: {last.use.input['content']}")
        return Say(last.result.text)
    if fact:
        return Call("memory_write", {"content": fact[1].strip()})
    if text.rstrip().endswith("?"):
        return Call("memory_search", {"query": text[:1000], "limit": 10})
    return Say("I am agentd's offline mode, not a language model.")
