"""The arguments of a tool call, out of the text that a model wrote."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from agentd.providers.faults import failure


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object in `text`; a blank text has no arguments.

    Raises ProviderError `bad_tool_json` for anything else, a key that is named twice included: no tool
    may run on a guess.
    """
    try:
        value = (
            json.loads(text, parse_constant=_refuse, object_pairs_hook=_object)
            if text.strip()
            else {}
        )
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise failure("bad_tool_json")
    return value


def _refuse(constant: str) -> NoReturn:
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        msg = "an object names a key twice"
        raise ValueError(msg)
    return value
