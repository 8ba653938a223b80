"""Parses the lines of transcripts, of agentd and of other programs, into rows. Pure."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import InvalidRequest
from agentd.core.message import (
    BY_OTHERS,
    BY_OWNER,
    Block,
    Image,
    Text,
    TextSource,
    ToolResult,
    ToolUse,
    Writer,
    decode_block,
    image_type,
)
from agentd.core.spans import shift_spans
from agentd.core.times import read_instant
from agentd.core.transcript import NewRow, RowRole, holds_attachments, opens_turn

_CLIP = 2000  # characters kept of a tool call or result that is replaced by text

_NOTHING = (Text(""),)  # of a row without blocks: its prompt says that the message is empty

Group = list[Block]  # of adjacent rows of one role: the service reads them as one message
_ROLES = {
    "user": RowRole.USER,
    "human": RowRole.USER,
    "assistant": RowRole.ASSISTANT,
    "summary": RowRole.SUMMARY,
    "notice": RowRole.NOTICE,
    "system": RowRole.NOTICE,
}


def read_lines(
    lines: Sequence[dict[str, Any]], now: datetime, zone: tzinfo, *, has_owner: bool
) -> Transcript:
    """Parse all lines with `read_line`. If the session `has_owner`, the user messages under
    `own_name` count as the owner's; otherwise none do. Raises InvalidRequest.
    """
    owner = own_name(lines) if has_owner else None
    dated = [
        read_line(line, number, now, zone, owner) for number, line in enumerate(lines, start=1)
    ]
    return Transcript(dated, [picture for line in lines for picture in pictures_of(line)])


def read_line(
    line: dict[str, Any], number: int, now: datetime, zone: tzinfo, owner: str | None = ""
) -> tuple[NewRow, datetime]:
    """Parse one line into its row and time (`now` if the line has none; a time without offset is in
    `zone`). A `name` in the line is put before the text. User messages whose name is `owner` ("":
    those without a name; None: no message) have the owner as writer, unless the line is an export
    that marks the message as tainted: then its writer is the owner only if the line says so and the
    message has attachments, and it stays tainted. All other rows are tainted. Raises
    InvalidRequest, naming the line by `number`.
    """
    role = _ROLES.get(str(line.get("role")))
    if role is None:
        raise InvalidRequest(
            f"line {number}: the role is not one of {', '.join(sorted(_ROLES))}",
            cure="leave such lines out",
        )
    try:
        blocks = _blocks(line.get("content"), is_user=role is RowRole.USER)
        at = _time(line.get("at", line.get("timestamp")), now, zone)
    except (ValueError, OverflowError, OSError):
        raise InvalidRequest(
            f"line {number}: content or time cannot be read",
            cure="content is text or a list of blocks, a time ISO 8601 or seconds since 1970",
        ) from None
    if name := _name(line):
        blocks = _named(name, blocks)
    row = NewRow(role, blocks, tag="import" if role is RowRole.NOTICE else "")
    return replace(row, source=_source(row, line, owner)), at


class Transcript(Struct, frozen=True):
    """A parsed transcript: rows with their times, and the bytes of the images in them."""

    dated: list[tuple[NewRow, datetime]]
    pictures: list[bytes]


def own_name(lines: Iterable[dict[str, Any]]) -> str:
    """Return the name that all user messages of a transcript have, tool results left out; "" if
    some have none or the names differ: then every named writer is somebody other than the owner.
    """
    said = (line for line in lines if _ROLES.get(str(line.get("role"))) is RowRole.USER)
    names = {_name(line) for line in said if not _holds_results(line.get("content"))}
    return names.pop() if len(names) == 1 else ""


def pictures_of(line: dict[str, Any]) -> list[bytes]:
    """Return the bytes of a line's images, which `read_line` replaces by references."""
    content = line.get("content")
    found = [_bytes(item) for item in content] if isinstance(content, list) else []
    return [data for data in found if data is not None and image_type(data)]


def paired(rows: Sequence[NewRow]) -> list[NewRow]:
    """Return the rows with each tool call or result that has no counterpart replaced by text, so
    that the imported conversation can be continued: a model's service refuses a call without its
    result in the next message, and a result without its call.
    """
    spoken = [row for row in rows if row.role.is_spoken]
    groups = [
        (role, [block for row in group for block in row.blocks or _NOTHING])
        for role, group in groupby(spoken, key=lambda row: row.role)
    ]
    kept = _pairs(groups)
    return [replace(row, blocks=tuple(_as_words(b, kept) for b in row.blocks)) for row in rows]


def _pairs(groups: Sequence[tuple[RowRole, Group]]) -> frozenset[str]:
    """Return the ids of tool calls that occur once and whose only result is in the next message."""
    calls = Counter(b.id for _, group in groups for b in group if isinstance(b, ToolUse))
    answers = Counter(
        b.tool_use_id for _, group in groups for b in group if isinstance(b, ToolResult)
    )
    kept: set[str] = set()
    for (role, asked), (_, told) in pairwise(groups):
        if role is not RowRole.ASSISTANT:
            continue
        ids = {b.id for b in asked if isinstance(b, ToolUse) and calls[b.id] == 1}
        # Results must come first in a message: a result behind another block does not count.
        for block in told:
            if not isinstance(block, ToolResult):
                break
            id_ = block.tool_use_id
            if id_ not in ids or answers[id_] != 1:
                break
            kept.add(id_)
    return frozenset(kept)


def _as_words(block: Block, kept: frozenset[str]) -> Block:
    match block:
        case ToolUse(id_, name, arguments) if id_ not in kept:
            given = json.dumps(dict(arguments), ensure_ascii=False)
            return Text(f"[called {name}: {_clipped(given)}]")
        case ToolResult(id_, text, _) if id_ not in kept:
            return Text(f"[a tool answered: {_clipped(text)}]")
    return block


def _clipped(text: str) -> str:
    return text if len(text) <= _CLIP else text[:_CLIP] + "…"


def _source(row: NewRow, line: dict[str, Any], owner: str | None) -> TextSource:
    if not opens_turn(row):
        return TextSource(Writer.AGENT, tainted=True)
    if _name(line) != owner:
        return BY_OTHERS
    if line.get("tainted") is True:  # the owner's own words can be tainted only by attachments
        came_along = line.get("writer") == Writer.OWNER and holds_attachments(row.blocks)
        return TextSource(Writer.OWNER, tainted=True) if came_along else BY_OTHERS
    return BY_OWNER


def _name(line: dict[str, Any]) -> str:
    name = line.get("name")
    return name if isinstance(name, str) else ""


def _holds_results(content: Any) -> bool:
    items = content if isinstance(content, list) else []
    return any(isinstance(item, dict) and item.get("type") == "tool_result" for item in items)


def _blocks(content: Any, *, is_user: bool) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list) and all(isinstance(item, dict) for item in content):
        return tuple(_shown(_block(item), is_user=is_user) for item in content)
    raise ValueError


def _block(item: dict[str, Any]) -> Block:
    match item:
        case {"type": "image", "source": {"type": "base64"}}:
            data = _bytes(item) or b""
            kind = image_type(data)
            return Image(kind, sha256(data).hexdigest(), len(data)) if kind else Text("[image]")
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return Text(f"[image at {url}]")
    return decode_block(item)


def _shown(block: Block, *, is_user: bool) -> Block:
    """Replace an image by its label unless it is in a user message: prompts show no others."""
    return Text(block.label) if isinstance(block, Image) and not is_user else block


def _bytes(item: Any) -> bytes | None:
    """Return the bytes of a base64 image block of the Messages API; None for any other block."""
    match item:
        case {"type": "image", "source": {"type": "base64", "data": str(data)}}:
            try:
                return base64.b64decode(data, validate=True)
            except ValueError:
                return None
    return None


def _time(value: Any, now: datetime, zone: tzinfo) -> datetime:
    if value is None:
        return now
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    return read_instant(str(value), zone)


def _named(name: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    for place, block in enumerate(blocks):
        if isinstance(block, Text):
            said = f"{name}: "
            text = Text(said + block.text, shift_spans(block.quoted, len(said)))
            return (*blocks[:place], text, *blocks[place + 1 :])
    return blocks
