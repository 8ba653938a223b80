"""Parts of an answer as they arrive, turned into values that can be stored, shown and sent back.

Models write lone surrogates, services report odd counts, and an id may be one that another service
refuses. Values that passed through this module have none of these defects, so later code does not
check for them.

The ids and names of tool calls are stored as they came: from another service, from another
program's transcripts, or from a model that invented a name. A service that refuses one of them
refuses every later request of that conversation, so unacceptable ones are rewritten in each
request, always in the same way.
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
    """Return the id, or a hash of it where it is too long or has other characters than letters,
    digits, `_`, `-` and, unless `strict`, `.:|=+`. A call and its result keep equal ids.
    """
    allowed = _STRICT_ID if strict else _ID
    if len(id_) <= _LONGEST_ID and allowed.fullmatch(id_):
        return id_
    return "call_" + hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def short_id(id_: str) -> str:
    """Return a digest of the id as nine letters and digits, which every service takes."""
    return hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def call_name(name: str) -> str:
    """Return the name of a called tool, shortened, and with `_` for characters that services refuse
    in names.
    """
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME] or "unnamed"


def tool_name(name: str) -> str:
    """Return the name under which a tool is offered. `SERVER.TOOL`, the name of another program's
    tool, becomes `SERVER__TOOL`.
    """
    return call_name(name.replace(".", "__", 1))


NOT_UNICODE = (
    "Not run: the call held half of a surrogate pair, which is no character. Make it again without."
)
TOO_LARGE = (
    "Not run: the arguments of the call are larger than any tool takes. Make "
    "several calls with less."
)
MOST_WRITTEN = 8 * 1024 * 1024  # characters of one answer, many times what any model may write
_MOST_ARGUMENTS = 256 * 1024  # characters of JSON in one call, twice what any tool accepts
_MOST_VALUES = 10_000  # in the arguments of one call
_MOST_TOKENS = 10**9  # of one call, far beyond any window; sums of such figures fit every column
_LONGEST_MODEL = 200  # characters


class TextStream:
    """Text that arrives in pieces, returned as it can be shown and stored. The first half of a
    surrogate pair waits for the next piece; a half that stays alone becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Take a piece and return the text that is complete now."""
        text, self._held = self._held + piece, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._held = text[:-1], text[-1]
        return str(strict.as_unicode(text))

    def end(self) -> str:
        """Return what was held back, once the stream has ended."""
        held, self._held = self._held, ""
        return str(strict.as_unicode(held))


class Arguments:
    """The arguments of one tool call, which arrive as pieces of JSON. Arguments larger than any
    tool accepts are dropped.
    """

    def __init__(self) -> None:
        self.is_empty = True
        self.is_too_large = False
        self._pieces: list[str] = []
        self._size = 0

    def feed(self, piece: str, written: WrittenAnswer) -> None:
        """Add a piece, and count it in `written` unless the arguments are too large. Raises
        ProviderError.
        """
        self.is_empty = False
        self._size += len(piece)
        self.is_too_large = self._size > _MOST_ARGUMENTS
        if self.is_too_large:
            self._pieces.clear()
        else:
            written.add(piece)
            self._pieces.append(piece)

    @property
    def is_whole(self) -> bool:
        """Whether the pieces so far are a JSON object."""
        if not (self._pieces and self._pieces[-1].rstrip().endswith("}")):
            return False
        try:
            return isinstance(strict.loads(strict.join_pieces(self._pieces)), dict)
        except (ValueError, RecursionError):
            return False

    def parsed(self) -> dict[str, Any]:
        """Return the JSON object; {} for blank text, `null`, and arguments that are too large.
        Raises ProviderError `bad_tool_json`.
        """
        found = parse_arguments(strict.join_pieces(self._pieces))
        if not _has_at_most(found, _MOST_VALUES):
            self.is_too_large = True
            return {}
        return found


class WrittenAnswer:
    """Counts how much a service has sent of one answer."""

    def __init__(self) -> None:
        self.size = 0  # characters
        self._bytes = 0

    @property
    def tokens(self) -> int:
        """The estimated tokens of what has arrived."""
        return of_bytes(self._bytes)

    def add(self, piece: str) -> None:
        """Count a piece. Raises ProviderError `bad_stream` beyond MOST_WRITTEN characters."""
        self.size += len(piece)
        self._bytes += len(piece) if piece.isascii() else len(piece.encode(errors="replace"))
        if self.size > MOST_WRITTEN:
            raise failure("bad_stream", "an answer without an end")


def tool_call(
    id_: str, name: str, arguments: dict[str, Any], *, any_id: bool, too_large: bool = False
) -> ToolUse:
    """Return the tool call, with an id that the service accepts in later requests. A call with lone
    surrogates is kept in readable form, one whose arguments were `too_large` without them; in both,
    `refused` says why it is not run.
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
    """Parse the text as a JSON object; blank text and `null` give {}.

    Raises ProviderError `bad_tool_json` for anything else. Parsing is as strict as for a client's
    frame, because no tool may run on a guess.
    """
    try:
        value = strict.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        raise failure("bad_tool_json") from None
    if not isinstance(value, dict | None):
        raise failure("bad_tool_json")
    return value or {}


def _has_at_most(value: object, most: int) -> bool:
    """Whether a JSON value contains at most `most` values at all levels, keys and the value itself
    not counted.
    """
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
    """Return the count limited to what one call can have; 0 for anything but an integer."""
    return min(max(value, 0), _MOST_TOKENS) if isinstance(value, int) else 0


def model_name(value: object, otherwise: str) -> str:
    """Return the model that a service reports as the answer's, or `otherwise` where it reports
    none.
    """
    named = isinstance(value, str) and value
    return strict.as_unicode(value)[:_LONGEST_MODEL] if named else otherwise
