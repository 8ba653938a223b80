"""Lines of transcripts, ours and other programs', as rows. Pure."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any

from agentd.domain.message import Block, Image, Text, decode_block
from agentd.domain.picture import media_type
from agentd.domain.transcript import TAINTED, NewRow, RowRole
from agentd.errors import InvalidRequest

_ROLES = {
    "user": RowRole.USER,
    "human": RowRole.USER,
    "assistant": RowRole.ASSISTANT,
    "summary": RowRole.SUMMARY,
    "notice": RowRole.NOTICE,
    "system": RowRole.NOTICE,
}


def read_line(
    line: dict[str, Any], number: int, now: datetime, zone: tzinfo
) -> tuple[NewRow, datetime]:
    """The row of one line and its time, `now` where it names none. A time without offset is read in
    `zone`; a `name` is put before the words; what an export calls tainted stays so. Raises
    InvalidRequest, naming the line.
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
    name = line.get("name")
    if isinstance(name, str) and name:
        blocks = _named(name, blocks)
    tag = TAINTED if line.get("tainted") is True else ""
    return NewRow(role, blocks, tag="import" if role is RowRole.NOTICE else tag), at


def pictures_of(line: dict[str, Any]) -> list[bytes]:
    """The images whose bytes stand in the line itself, which `read_line` makes references of."""
    content = line.get("content")
    found = [_bytes(item) for item in content] if isinstance(content, list) else []
    return [data for data in found if data is not None and media_type(data)]


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
            kind = media_type(data)
            return Image(kind, sha256(data).hexdigest(), len(data)) if kind else Text("[image]")
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return Text(f"[image at {url}]")
    return decode_block(item)


def _shown(block: Block, *, is_user: bool) -> Block:
    """Models are shown images of users only."""
    return Text(block.label) if isinstance(block, Image) and not is_user else block


def _bytes(item: Any) -> bytes | None:
    """The bytes of an image as the Messages API takes it; None for anything else."""
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
    at = datetime.fromisoformat(str(value))
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)


def _named(name: str, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    for place, block in enumerate(blocks):
        if isinstance(block, Text):
            return (*blocks[:place], Text(f"{name}: {block.text}"), *blocks[place + 1 :])
    return blocks
