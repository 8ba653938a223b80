"""The arguments of a tool call, out of the text that a model wrote."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from agentd.providers.faults import failure


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object in `text`; a blank text has no arguments.

    Raises ProviderError `bad_tool_json` for anything else: no tool may run on a guess.
    """
    try:
        value = json.loads(text, parse_constant=_refuse) if text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise failure("bad_tool_json")
    return value


def _refuse(constant: str) -> NoReturn:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)
