"""Lines of transcripts, ours and other programs', as rows. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Any

from agentd.domain.message import Block, Text, decode_block
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
    `zone`; a `name` is put before the words; what an export calls tainted stays so. Raises InvalidRequest, naming the line.
    """
    role = _ROLES.get(str(line.get("role")))
    if role is None:
        raise InvalidRequest(
            f"line {number}: the role is not one of {', '.join(sorted(_ROLES))}",
            cure="leave such lines out",
        )
    try:
        blocks = _blocks(line.get("content"))
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


def _blocks(content: Any) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, list) and all(isinstance(item, dict) for item in content):
        return tuple(decode_block(item) for item in content)
    raise ValueError


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
