"""Facts by rules, for the prompt that asks which ones the user has stated. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from typing import Any

from agentd.domain.prompt import Prompt
from agentd.providers.offline.conversation import own_words
from agentd.providers.offline.reply import Reply, Say
from agentd.statements.claims import Claim, claims

_MESSAGE = re.compile(
    r'^<data source="message (?P<number>\d+), (?P<day>\d{4}-\d\d-\d\d)">\n(?P<text>.*?)\n</data>$',
    re.DOTALL | re.MULTILINE,
)


def reply(prompt: Prompt) -> Reply:
    """A JSON array, one object for each claim of each message in the request."""
    return Say(json.dumps(list(_found(own_words(prompt))), ensure_ascii=False))


def _found(text: str) -> Iterator[dict[str, Any]]:
    for message in _MESSAGE.finditer(text):
        said_on = date.fromisoformat(message["day"])
        for claim in claims(message["text"], said_on=said_on):
            yield _as_json(claim, int(message["number"]))


def _as_json(claim: Claim, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "message": number,
        "content": claim.text,
        "category": str(claim.category),
    }
    if claim.triple is not None:
        triple = claim.triple
        found |= {"subject": triple.subject, "relation": triple.relation, "value": triple.value}
    return found
