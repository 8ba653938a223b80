"""Messages and their blocks, the sources of texts, and their JSON form.

The JSON follows the Messages API where that has a form: `text`, `tool_use`, `tool_result`. An
`image` is a reference: its bytes are stored elsewhere, under their digest. Blocks that only their
provider understands (thinking, redacted, unknown) are `opaque` and kept verbatim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self, assert_never

from msgspec import Struct

from agentd.core.spans import Span, Spans, unite_spans

_TAINT = "tainted"


class Writer(StrEnum):
    """Who wrote a text."""

    OWNER = "owner"
    AGENT = "agent"  # the model, a tool, or agentd itself
    OTHER = "other"  # another member of a group, or a stranger


class TextSource(Struct, frozen=True):
    """Who wrote a text. `tainted` means that it holds text from outside (a tool's output, an
    attachment, words of others), or was made from such text.
    """

    writer: Writer
    tainted: bool = False

    @property
    def is_owners_own(self) -> bool:
        """Whether the owner wrote the text himself, so that it can prove facts about him. Quoted
        material in his message may taint it without changing that.
        """
        return self.writer is Writer.OWNER

    def __str__(self) -> str:
        """Return the stored form, for example `owner` or `agent tainted`."""
        return f"{self.writer} {_TAINT}" if self.tainted else str(self.writer)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the stored form that `str` returns. Raises ValueError for anything else."""
        writer, space, taint = text.partition(" ")
        if space and taint != _TAINT:
            msg = f"not a source of text: {text!r}"
            raise ValueError(msg)
        return cls(Writer(writer), bool(space))


BY_OWNER = TextSource(Writer.OWNER)
BY_AGENT = TextSource(Writer.AGENT)
BY_OTHERS = TextSource(Writer.OTHER, tainted=True)


_MARKS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def image_type(data: bytes) -> str | None:
    """Detect the type of an image from its first bytes, ignoring what the sender claims; None for
    anything but PNG, JPEG, GIF and WebP.
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((name for mark, name in _MARKS if data.startswith(mark)), None)


JsonObject = Mapping[str, Any]

_ABOUT = ("path", "target", "query", "url", "tool")  # arguments shown to people in a call's title
_LONGEST_TITLE = 120
_DIGEST = re.compile(r"[0-9a-f]{64}")  # checked, because it becomes a file name


class Role(StrEnum):
    """The author of a message in a prompt."""

    USER = "user"
    ASSISTANT = "assistant"


class Text(Struct, frozen=True):
    """A block of words. `quoted` are the spans of a user's message that its sender marked as not
    his own words: resources, attachments, pastes.
    """

    text: str
    quoted: Spans = ()


class ToolUse(Struct, frozen=True):
    """A tool call by the model. A non-empty `refused` says why this call must not run, and is its
    result.
    """

    id: str
    name: str
    input: JsonObject
    refused: str = ""

    @property
    def title(self) -> str:
        """The call as people see it: the tool's name and what the call is about."""
        about = next((self.input[key] for key in _ABOUT if self.input.get(key)), "")
        return f"{self.name} {about}".strip()[:_LONGEST_TITLE]


class ToolResult(Struct, frozen=True):
    """The result of a tool call, as the model reads it."""

    tool_use_id: str
    text: str
    is_error: bool = False


class Image(Struct, frozen=True):
    """A picture that the user sent. `sha256` is the digest of its bytes, in hexadecimal."""

    media_type: str
    sha256: str
    size: int  # bytes

    @property
    def label(self) -> str:
        """The words that replace the image where only text can be shown."""
        return f"[{self._name}]"

    def left_out(self, why: str) -> str:
        """Return the words that replace the image in a prompt that does not include it."""
        return f"[{self._name}, not sent: {why}]"

    @property
    def _name(self) -> str:
        return f"image {self.media_type}, {max(1, round(self.size / 1000))} kB"


class OpaqueBlock(Struct, frozen=True):
    """A block that only `provider` understands, kept as it came."""

    provider: str
    raw: JsonObject


Block = Text | Image | ToolUse | ToolResult | OpaqueBlock


class Message(Struct, frozen=True):
    """One message of a conversation."""

    role: Role
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """All words of the message, joined."""
        return "".join(b.text for b in self.blocks if isinstance(b, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """The message's tool calls, in order."""
        return tuple(b for b in self.blocks if isinstance(b, ToolUse))


def user(text: str) -> Message:
    """Return a user's message of one text block."""
    return Message(Role.USER, (Text(text),))


def spoken(text: str, images: tuple[Image, ...] = (), quoted: Spans = ()) -> tuple[Block, ...]:
    """Return the blocks of a user's message as it is stored: the images, then the words."""
    words = (Text(text, quoted),) if text or not images else ()
    return (*images, *words)


def assistant(text: str, *tool_uses: ToolUse) -> Message:
    """Return an assistant's message of a text block (if any) and tool calls."""
    words: tuple[Block, ...] = (Text(text),) if text else ()
    return Message(Role.ASSISTANT, (*words, *tool_uses))


def encode_block(block: Block) -> dict[str, Any]:
    """Return the block as a JSON object."""
    match block:
        case Text(text, quoted):
            words: dict[str, Any] = {"type": "text", "text": text}
            return {**words, "quoted": [list(span) for span in quoted]} if quoted else words
        case Image(media_type, sha256, size):
            return {"type": "image", "media_type": media_type, "sha256": sha256, "size": size}
        case ToolUse(id_, name, arguments, refused):
            call: dict[str, Any] = {"type": "tool_use", "id": id_, "name": name}
            call["input"] = dict(arguments)
            return {**call, "refused": refused} if refused else call
        case ToolResult(id_, text, is_error):
            return {
                "type": "tool_result",
                "tool_use_id": id_,
                "content": text,
                "is_error": is_error,
            }
        case OpaqueBlock(provider, raw):
            return {"type": "opaque", "provider": provider, "raw": dict(raw)}
        case _:
            assert_never(block)


def decode_block(data: JsonObject) -> Block:
    """Parse a block that `encode_block` wrote. Raises ValueError for anything else."""
    match data:
        case {"type": "text", "text": str(text)}:
            return Text(text, unite_spans(decode_spans(data.get("quoted", [])), len(text)))
        case {
            "type": "image",
            "media_type": str(media_type),
            "sha256": str(sha256),
            "size": int(size),
        } if _DIGEST.fullmatch(sha256):
            return Image(media_type, sha256, size)
        case {
            "type": "tool_use",
            "id": str(id_),
            "name": str(name),
            "input": Mapping() as arguments,
        }:
            return ToolUse(id_, name, arguments, str(data.get("refused", "")))
        case {"type": "tool_result", "tool_use_id": str(id_), "content": str(text)}:
            return ToolResult(id_, text, bool(data.get("is_error", False)))
        case {"type": "opaque", "provider": str(provider), "raw": Mapping() as raw}:
            return OpaqueBlock(provider, raw)
    msg = f"not a content block: {data.get('type')!r}"
    raise ValueError(msg)


def decode_spans(data: Any) -> tuple[Span, ...]:
    """Parse a list of pairs `[start, end]`. Raises ValueError for anything else."""
    if isinstance(data, list) and all(map(_is_pair, data)):
        return tuple((start, end) for start, end in data)
    msg = "not a list of [start, end]"
    raise ValueError(msg)


def _is_pair(data: Any) -> bool:
    if not isinstance(data, list) or [type(number) for number in data] != [int, int]:
        return False
    return bool(0 <= data[0] <= data[1])


def encode_blocks(blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Return all blocks as JSON objects."""
    return [encode_block(b) for b in blocks]


def decode_blocks(data: Iterable[JsonObject]) -> tuple[Block, ...]:
    """Parse all blocks from JSON objects. Raises ValueError."""
    return tuple(decode_block(d) for d in data)
