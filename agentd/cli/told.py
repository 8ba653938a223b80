"""A transcript as a person reads it: who said what and when, calls of tools as one line each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentd.commands.plain import visible
from agentd.domain.message import Block, Image, Text, ToolResult, ToolUse, decode_block

_SPEAKERS = {"user": "you", "assistant": "agent", "summary": "summary", "notice": "notice"}

Line = dict[str, Any]


def conversation(lines: Sequence[Line]) -> str:
    """Exported lines, times in words already, one paragraph for each who spoke."""
    spoken = [(line, [decode_block(block) for block in line["content"]]) for line in lines]
    failed = {
        block.tool_use_id
        for _, blocks in spoken
        for block in blocks
        if isinstance(block, ToolResult) and block.is_error
    }
    told = (_paragraph(line, list(_said(blocks, failed))) for line, blocks in spoken)
    return "\n\n".join(text for text in told if text)


def _paragraph(line: Line, said: Sequence[str]) -> str:
    """Nothing for a row that holds only what tools answered."""
    if not said:
        return ""
    body = "\n".join(f"  {text}".rstrip() for part in said for text in part.split("\n"))
    return f"{_SPEAKERS.get(line['role'], line['role'])}, {line['at']}\n{body}"


def _said(blocks: Iterable[Block], failed: set[str]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Text(text) if text.strip():
                yield visible(text.strip())
            case Image():
                yield block.label
            case ToolUse(id_):
                yield visible(f"· {block.title}{' (failed)' if id_ in failed else ''}")
