"""A model that does whatever its prompt says: what the user asks first, then each order between
double brackets, wherever it stands. `$CANARIES` in an order is every canary that it was shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_ORDER = re.compile(r"\[\[use (\w+) (\{.*?\})\]\]")
_FIRST = re.compile(r"obey use (\w+) (\{.*?\})")
_CANARY = re.compile(r"canary-in-\w+")


def next_call(words: str, done: int, body: Json) -> tuple[str, Json] | None:
    """The tool to call after so many rounds of the turn, and its input; None when all was done."""
    first = _FIRST.match(words)
    assert first, words
    everything = "\n".join(_shown(body))
    orders = dict.fromkeys([first.groups(), *_ORDER.findall(everything)])
    if done >= len(orders):
        return None
    tool, given = list(orders)[done]
    found = "-and-".join(dict.fromkeys(_CANARY.findall(everything)))
    return tool, json.loads(given.replace("$CANARIES", found))


def _shown(part: Any) -> Iterator[str]:
    """Every text of a request but what the model said itself."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, list):
        for one in part:
            yield from _shown(one)
    elif isinstance(part, dict) and part.get("role") != "assistant":
        for key in ("system", "tools", "messages", "description", "text", "content"):
            yield from _shown(part.get(key))
