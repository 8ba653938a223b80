"""Text from outside in conversations and files: finds it, and removes it. Pure.

Removed text is replaced by a line that says where to find it, and a tool's result is never kept
without its call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from agentd.core.message import (
    BY_AGENT,
    BY_OWNER,
    Block,
    Image,
    Text,
    TextSource,
    ToolResult,
    ToolUse,
    Writer,
)
from agentd.core.spans import Span, unite_spans
from agentd.core.transcript import Row, RowRole, opens_turn
from agentd.core.turn import SessionKey

_ORIGIN = re.compile(r"<!--\s*agentd\s*:\s*origin=[\w-]+\s*-->", re.IGNORECASE)
_MARK = re.compile(r"<!--\s*agentd\s*:\s*origin=untrusted\b", re.IGNORECASE)
_MARK_OF_LINE = re.compile(_MARK.pattern.replace(r"\s", r"[^\S\n]"), re.IGNORECASE)
_ATTACHED = "[left out: text from outside that came with the message]"
_OTHERS = "[left out: what somebody else said]"  # no place named, so that no summary keeps it


def without_outside_text(
    session: SessionKey, rows: Sequence[Row], upto: int | None = None
) -> tuple[Row, ...]:
    """Return the rows of a session without the text from outside in rows up to number `upto` (None:
    in all). The owner's own words in his messages stay.
    """
    if not any(row.source.tainted and _is_meant(row, upto) for row in rows):
        return tuple(rows)
    kept: list[Row] = []
    gone: set[str] = set()  # removed calls: their results are removed, too
    for row in rows:
        now: Row | None = row
        if row.source.tainted and _is_meant(row, upto):
            if row.role is RowRole.ASSISTANT:
                gone |= {block.id for block in row.blocks if isinstance(block, ToolUse)}
                if kept and _is_left_out(kept[-1]):
                    continue
            now = _clean_row(session, row)
        if now is not None and (now := _without_results(now, gone)) is not None:
            kept.append(now)
    return tuple(kept)


def from_outside(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows of every turn that contains text from outside, whole turns."""
    turns: list[list[Row]] = []
    for row in rows:
        if not turns or opens_turn(row):
            turns.append([])
        turns[-1].append(row)
    held = (turn for turn in turns if any(row.source.tainted for row in turn))
    return tuple(row for turn in held for row in turn)


def is_marked(text: str) -> bool:
    """Whether the text of a file has a line marked as from outside."""
    return _MARK.search(text) is not None


def marks_in(text: str) -> tuple[Span, ...]:
    """Return the spans of the markers that state the origin of a file's lines; they are nobody's
    words.
    """
    return tuple(found.span() for found in _ORIGIN.finditer(text))


def outside_line_numbers(text: str) -> list[int]:
    """Return the numbers, from 1, of the lines marked as from outside; as fast as one regex
    search.
    """
    numbers: list[int] = []
    line, at = 1, 0
    for found in _MARK_OF_LINE.finditer(text):
        line += text.count("\n", at, found.start())
        at = found.start()
        if line not in numbers[-1:]:
            numbers.append(line)
    return numbers


def replace_spans(text: str, outside: Sequence[Span], filling: str = _ATTACHED) -> str:
    """Return the text with each span replaced by `filling`."""
    parts: list[str] = []
    at = 0
    for start, end in unite_spans(outside, len(text)):
        parts += text[at:start], filling
        at = end
    return "".join((*parts, text[at:]))


def removal_notice(session: SessionKey, seq: int, what: str) -> str:
    """Return the line that replaces removed text of a conversation."""
    return f"[left out: {what}; it stands at line {seq} of sessions/{session}.jsonl]"


def _is_meant(row: Row, upto: int | None) -> bool:
    return upto is None or row.seq <= upto


def _clean_row(session: SessionKey, row: Row) -> Row | None:
    if row.role is RowRole.ASSISTANT:
        words = removal_notice(session, row.seq, "what was made of text from outside")
        return replace(row, blocks=(Text(words),), source=BY_AGENT)
    if row.role is not RowRole.USER:
        return None
    outside = removal_notice(session, row.seq, "text from outside")
    if not opens_turn(row):
        results = [b for b in row.blocks if isinstance(b, ToolResult)]
        told = tuple(replace(result, text=outside) for result in results)
        return replace(row, blocks=told, source=BY_AGENT)
    if row.source.writer is not Writer.OWNER:
        return replace(row, blocks=(Text(_OTHERS),), source=TextSource(Writer.OTHER))
    return replace(row, blocks=tuple(map(_own, row.blocks)), source=BY_OWNER)


def _own(block: Block) -> Block:
    match block:
        case Image():
            return Text(block.left_out("it came from outside"))
        case Text(text, quoted):
            return Text(replace_spans(text, quoted))
    return block


def _without_results(row: Row, gone: set[str]) -> Row | None:
    blocks = tuple(
        b for b in row.blocks if not (isinstance(b, ToolResult) and b.tool_use_id in gone)
    )
    if len(blocks) == len(row.blocks):
        return row
    return replace(row, blocks=blocks) if blocks else None


def _is_left_out(row: Row) -> bool:
    """Whether the row is a placeholder for removed words of the agent."""
    texts = [b.text for b in row.blocks if isinstance(b, Text)]
    return row.role is RowRole.ASSISTANT and len(texts) == 1 and texts[0].startswith("[left out: ")
