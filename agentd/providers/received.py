"""What a service sent of an answer, as values that can be stored, shown and sent back.

Models write halves of surrogate pairs, services count oddly, and an id may be one that the same service
refuses later. What went through here has none of it: nothing behind this edge looks again.
"""

from __future__ import annotations

from typing import Any

from agentd.domain import strict
from agentd.domain.message import ToolUse
from agentd.providers.faults import failure
from agentd.providers.labels import call_id

NOT_UNICODE = (
    "Not run: the call held half of a surrogate pair, which is no character. Make it again without."
)
_MOST_TOKENS = 10**9  # of one call, far beyond any window; sums of such figures fit every column
_LONGEST_MODEL = 200  # characters


class TextStream:
    """A text that arrives in pieces: each comes back as it can be shown and stored. The first half of a
    surrogate pair waits for the piece behind it; a half that stays alone becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """What of the text so far has not come back yet."""
        text, self._held = self._held + piece, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return str(strict.as_unicode(text))

    def end(self) -> str:
        """What was held back, once nothing more comes."""
        held, self._held = self._held, ""
        return str(strict.as_unicode(held))


def tool_call(id_: str, name: str, arguments: dict[str, Any], *, any_id: bool) -> ToolUse:
    """The call, with an id of ours if the service would not take its own back. One that is no Unicode
    is kept in readable form and says that it is not to be run.
    """
    refused = "" if strict.is_unicode([name, arguments]) else NOT_UNICODE
    fitting = call_id(id_, strict=not any_id)
    return ToolUse(fitting, strict.as_unicode(name), strict.as_unicode(arguments), refused)


def parse_arguments(pieces: list[str]) -> dict[str, Any]:
    """The JSON object in the text that was sent in `pieces`; a blank text has no arguments.

    Raises ProviderError `bad_tool_json` for anything else, read as strictly as a client's frame: no
    tool may run on a guess.
    """
    text = strict.joined(pieces)
    try:
        value = strict.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise failure("bad_tool_json")
    return value


def token_count(value: object) -> int:
    """A count of tokens as one call can have it; 0 for what is no number."""
    return min(max(value, 0), _MOST_TOKENS) if isinstance(value, int) else 0


def model_name(value: object, otherwise: str) -> str:
    """The name of the model that a service says has answered, if it says one."""
    named = isinstance(value, str) and value
    return strict.as_unicode(value)[:_LONGEST_MODEL] if named else otherwise
