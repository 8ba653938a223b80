"""What the offline provider says to a job's question. Pure.

Without a model nobody can do what a job asks; its words, told at their time, still remind the owner.
"""

from __future__ import annotations

from agentd.core.prompt import Prompt
from agentd.providers.offline.conversation import Reply, Say, own_words

_HEADING = "## Job\n\n"
_TIME = "\n\nCurrent time: "


def reply(prompt: Prompt) -> Reply:
    """The job's own words."""
    head, _, _ = own_words(prompt).rpartition(_TIME)
    _, _, text = head.partition(_HEADING)
    return Say(text.strip() or "HEARTBEAT_OK")
