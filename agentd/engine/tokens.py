"""How many tokens things take: real usage where there is some, an estimate for the rest.

The estimate is UTF-8 bytes over 3.5, rounded up: a little over what English takes, about right for
code, and safe for scripts whose characters take three bytes and one or two tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import ceil

from agentd.core.message import Block, Image, OpaqueBlock, Text, ToolResult, ToolUse
from agentd.core.prompt import Prompt, ToolSpec
from agentd.core.transcript import History, Row, RowRole

BYTES_PER_TOKEN = 3.5
_PER_MESSAGE = 4  # role and separators
# Claude takes width x height / 750 tokens and scales larger images down to about this many (its
# guide to vision); other services take no more for a usual screenshot. The measured usage replaces
# the estimate after the call.
PER_IMAGE = 1_600


def of_text(text: str) -> int:
    """Return the estimated tokens of a text."""
    return of_bytes(len(text) if text.isascii() else len(text.encode(errors="replace")))


def of_bytes(count: int) -> int:
    """Return the estimated tokens of a text of `count` bytes in UTF-8."""
    return ceil(count / BYTES_PER_TOKEN)


def of_block(block: Block) -> int:
    """Return the estimated tokens of a content block."""
    match block:
        case Text(text):
            return of_text(text)
        case Image():
            return PER_IMAGE
        case ToolUse(_, name, arguments):
            return of_text(name) + of_text(json.dumps(arguments, ensure_ascii=False)) + 8
        case ToolResult(_, text, _):
            return of_text(text) + 8
        case OpaqueBlock(_, raw):
            return of_text(json.dumps(raw, ensure_ascii=False))


def of_row(row: Row) -> int:
    """Return the estimated tokens of a row."""
    return _PER_MESSAGE + sum(of_block(b) for b in row.blocks)


def of_rows(rows: Iterable[Row]) -> int:
    """Return the estimated tokens of rows."""
    return sum(of_row(r) for r in rows)


def of_fixed(system: Sequence[str], tools: Sequence[ToolSpec]) -> int:
    """Return the estimated tokens of the system prompt and the tools, which every call carries."""
    specs = sum(
        of_text(t.name) + of_text(t.description) + of_text(json.dumps(t.input_schema))
        for t in tools
    )
    return sum(of_text(s) for s in system) + specs


def of_prompt(prompt: Prompt) -> int:
    """Return the estimated tokens of a whole model call."""
    words = sum(of_block(block) for message in prompt.messages for block in message.blocks)
    return words + of_fixed(prompt.system, prompt.tools)


def of_next_request(history: History, incoming: Iterable[Block], fixed: int) -> int:
    """Return the tokens of the session's next model call, with `incoming` as the user's new
    message.

    The measured usage of the last call covers everything up to its answer; only the rows after it
    are estimated. Without a usable measurement everything is estimated, `fixed` (system and tools)
    included.
    """
    extra = _PER_MESSAGE + sum(map(of_block, incoming))
    for index in range(len(history.rows) - 1, -1, -1):
        row = history.rows[index]
        if row.seq <= history.swapped_at or history.is_excerpted:
            break
        if row.role is RowRole.ASSISTANT and row.usage is not None and row.usage.total_tokens:
            return row.usage.total_tokens + of_rows(history.rows[index + 1 :]) + extra
    unread = ceil(history.left_out / BYTES_PER_TOKEN)
    return fixed + of_text(history.summary) + unread + of_rows(history.rows) + extra
