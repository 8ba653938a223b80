"""Reading a prompt: which words are the user's own, and what this turn's tools have answered. Pure.

The user's words are the last text block of the last user message that has one. Blocks before it may
be fenced data (a summary, an alert) or the line with the time; they are never taken for the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from agentd.domain.message import Message, Role, Text, ToolResult, ToolUse
from agentd.domain.prompt import Prompt

_CLOCK = re.compile(r"\[Now: \w+ (\d{4}-\d{2}-\d{2} \d{2}:\d{2})[^\]\n]{0,40}\]\s*\Z")
_FENCE = '<data source="'


@dataclass(frozen=True, slots=True)
class Done:
    """A tool call of this turn and what came of it."""

    use: ToolUse
    result: ToolResult


def own_words(prompt: Prompt) -> str:
    """What the user said in this turn; "" if nothing."""
    at = _start(prompt)
    texts = [b.text for b in prompt.messages[at].blocks if isinstance(b, Text)] if at >= 0 else []
    return texts[-1] if texts and not _CLOCK.fullmatch(texts[-1]) else ""


def done(prompt: Prompt) -> tuple[Done, ...]:
    """The calls of this turn that have been answered, in order."""
    return tuple(_pairs(prompt.messages[max(0, _start(prompt)) :]))


def written(prompt: Prompt) -> tuple[str, ...]:
    """What successful `memory_write` calls anywhere in the conversation have stored."""
    pairs = _pairs(prompt.messages)
    return tuple(
        str(p.use.input.get("content", ""))
        for p in pairs
        if p.use.name == "memory_write" and not p.result.is_error
    )


def said_before(prompt: Prompt) -> tuple[str, ...]:
    """The user's own words of earlier turns, oldest first; no fences, no tool results."""
    at = _start(prompt)
    texts = [
        block.text
        for message in prompt.messages[: at + 1]
        if message.role is Role.USER
        for block in message.blocks
        if isinstance(block, Text)
    ]
    return tuple(t for t in texts[:-1] if not t.startswith(_FENCE) and not _ends_in_clock(t))


def has_answered(prompt: Prompt) -> bool:
    """Whether the assistant has said anything in this conversation yet."""
    return any(m.role is Role.ASSISTANT and m.text for m in prompt.messages)


def now(prompt: Prompt) -> datetime | None:
    """The owner's wall time as the prompt tells it, without a zone."""
    at = _start(prompt)
    texts = [b.text for b in prompt.messages[at].blocks if isinstance(b, Text)] if at >= 0 else []
    for text in reversed(texts[:-1] or texts):  # the last one is the user's, who may write anything
        if match := _CLOCK.search(text[-200:]):
            return _parsed(match[1])
    return None


def _ends_in_clock(text: str) -> bool:
    return _CLOCK.search(text[-200:]) is not None


def _parsed(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _start(prompt: Prompt) -> int:
    """Where this turn begins: the last user message with words; -1 if there is none."""
    for index in range(len(prompt.messages) - 1, -1, -1):
        message = prompt.messages[index]
        if message.role is Role.USER and any(isinstance(b, Text) for b in message.blocks):
            return index
    return -1


def _pairs(messages: tuple[Message, ...]) -> Iterator[Done]:
    uses: dict[str, ToolUse] = {}
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                uses[block.id] = block
            elif isinstance(block, ToolResult) and block.tool_use_id in uses:
                yield Done(uses.pop(block.tool_use_id), block)
