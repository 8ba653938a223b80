"""What a service sent of an answer, as values that can be stored, shown and sent back.

Models write halves of surrogate pairs, services count oddly, and an id may be one that the same service
refuses later. What went through here has none of it: nothing behind this edge looks again.

The ids and names of tool calls are kept as they came: from another service, from another program's
transcripts, or from a model that made a name up. A service that refuses one of them refuses every later
request of that conversation, so they are spelled anew on the way out, always in the same way.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

from agentd.core import strict
from agentd.core.message import ToolUse
from agentd.engine.tokens import of_bytes
from agentd.providers.faults import failure

_STRICT_ID = re.compile(r"[A-Za-z0-9_-]+")
_ID = re.compile(r"[A-Za-z0-9_.:|=+-]+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_LONGEST_ID = 40  # the shortest limit of a service


def call_id(id_: str, *, strict: bool) -> str:
    """The id, or one made from it if it is too long or not of letters, digits, `_` and `-` alone, to
    which come `.:|=+` unless `strict`. A call and its result stay a pair.
    """
    allowed = _STRICT_ID if strict else _ID
    if len(id_) <= _LONGEST_ID and allowed.fullmatch(id_):
        return id_
    return "call_" + hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def call_name(name: str) -> str:
    """The name of a tool that was called; what cannot stand in one is replaced."""
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unnamed"


def tool_name(name: str) -> str:
    """The name of a tool that may be called: of those of other programs, `SERVER__TOOL`."""
    return call_name(name.replace(".", "__", 1))


NOT_UNICODE = (
    "Not run: the call held half of a surrogate pair, which is no character. Make it again without."
)
TOO_LARGE = "Not run: the arguments of the call are larger than any tool takes. Make several calls with less."
MOST_WRITTEN = 8 * 1024 * 1024  # characters of one answer, many times what any model may write
_MOST_ARGUMENTS = 256 * 1024  # characters of JSON of one call, twice what a tool takes
_MOST_VALUES = 10_000  # in the arguments of one call
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


class Arguments:
    """The arguments of one call, which arrive as pieces of JSON. More than any tool takes are not kept."""

    def __init__(self) -> None:
        self.is_empty = True
        self.is_too_large = False
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, piece: str, written: WrittenAnswer) -> None:
        """Take a piece; as long as it is kept, it counts as `written`."""
        self.is_empty = False
        self._size += len(piece)
        self.is_too_large = self._size > _MOST_ARGUMENTS
        if self.is_too_large:
            self._pieces.clear()
        else:
            written.add(piece)
            self._pieces.append(piece)

    def parsed(self) -> dict[str, Any]:
        """The JSON object; a blank text and `null` have no arguments, and neither have those that are not kept.
        Raises ProviderError `bad_tool_json`.
        """
        found = parse_arguments(strict.join_pieces(self._pieces))
        if not _has_at_most(found, _MOST_VALUES):
            self.is_too_large = True
            return {}
        return found


class WrittenAnswer:
    """How much a service has sent of one answer."""

    def __init__(self) -> None:
        self.size = 0  # characters
        self._bytes = 0

    @property
    def tokens(self) -> int:
        """About how many it is."""
        return of_bytes(self._bytes)

    def add(self, piece: str) -> None:
        """Count a piece. Raises ProviderError once there is more than any model may write."""
        self.size += len(piece)
        self._bytes += len(piece) if piece.isascii() else len(piece.encode(errors="replace"))
        if self.size > MOST_WRITTEN:
            raise failure("bad_stream", "an answer without an end")


def tool_call(
    id_: str, name: str, arguments: dict[str, Any], *, any_id: bool, too_large: bool = False
) -> ToolUse:
    """The call, with an id of ours if the service would not take its own back. One that is no Unicode
    is kept in readable form, one whose arguments were `too_large` without them; both say that they are
    not to be run.
    """
    refused = "" if strict.is_unicode([name, arguments]) else NOT_UNICODE
    fitting = call_id(id_, strict=not any_id)
    return ToolUse(
        fitting,
        strict.as_unicode(name),
        strict.as_unicode(arguments),
        TOO_LARGE if too_large else refused,
    )


def parse_arguments(text: str) -> dict[str, Any]:
    """The JSON object in the text; a blank text and `null` have no arguments.

    Raises ProviderError `bad_tool_json` for anything else, read as strictly as a client's frame: no
    tool may run on a guess.
    """
    try:
        value = strict.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        raise failure("bad_tool_json") from None
    if not isinstance(value, dict | None):
        raise failure("bad_tool_json")
    return value or {}


def _has_at_most(value: object, most: int) -> bool:
    """Whether a JSON value consists of no more values than that, itself and keys left out."""
    waiting: list[object] = [value]
    count = 0
    while waiting and count <= most:
        inner = waiting.pop()
        if isinstance(inner, dict):
            count += len(inner)
            waiting.extend(inner.values())
        elif isinstance(inner, list):
            count += len(inner)
            waiting.extend(inner)
    return count <= most


def token_count(value: object) -> int:
    """A count of tokens as one call can have it; 0 for what is no number."""
    return min(max(value, 0), _MOST_TOKENS) if isinstance(value, int) else 0


def model_name(value: object, otherwise: str) -> str:
    """The name of the model that a service says has answered, if it says one."""
    named = isinstance(value, str) and value
    return strict.as_unicode(value)[:_LONGEST_MODEL] if named else otherwise
