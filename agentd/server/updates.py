"""Events and stored rows as `session/update` objects of the Agent Client Protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

from agentd.domain.event import (
    AnswerRetracted,
    Noticed,
    TextChunk,
    ThoughtChunk,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from agentd.domain.message import Block, Opaque, Text, ToolResult, ToolUse
from agentd.domain.transcript import Row, RowRole
from agentd.domain.turn import Usage

Update = dict[str, Any]

_PIECE = 128 * 1024  # characters; what fits a frame in any script
_TOOL_TEXT = 64 * 1024
_KINDS = frozenset(
    ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")
)


def event_updates(event: TurnEvent) -> Iterator[Update]:
    """What watching clients are shown of an event."""
    match event:
        case TurnStarted():
            yield from text_updates("user_message_chunk", event.text)
        case TextChunk():
            yield from text_updates("agent_message_chunk", event.text)
        case ThoughtChunk():
            yield from text_updates("agent_thought_chunk", event.text)
        case ToolCallStarted():
            yield _tool_call(event.call_id, event.title, event.kind, dict(event.input))
        case ToolCallEnded():
            yield _tool_result(event.call_id, event.text, is_error=event.is_error)
        case AnswerRetracted():
            text = f"\n\n[This answer was cut and is not kept: {event.reason}]\n\n"
            yield from text_updates("agent_message_chunk", text, {"agentd/retracted": True})
        case Noticed():
            yield from notice_updates(event.text, event.tag)
        case TurnEnded(turn=turn):
            failure = turn.failure.code if turn.failure else None
            yield {
                "sessionUpdate": "session_info_update",
                "_meta": {
                    "agentd/turnEnded": turn.message_id,
                    "agentd/stopReason": turn.stop_reason,
                    "agentd/failure": failure,
                },
            }
        case _:
            assert_never(event)


def row_updates(row: Row, kinds: Mapping[str, str]) -> Iterator[Update]:
    """What a client that loads a session is shown of a stored row; nothing for a summary. `kinds`
    are those of the tools, by name.
    """
    match row.role:
        case RowRole.NOTICE:
            yield from notice_updates(row.text, row.tag)
        case RowRole.USER:
            for block in row.blocks:
                yield from _block_updates("user_message_chunk", block, kinds)
        case RowRole.ASSISTANT:
            for block in row.blocks:
                yield from _block_updates("agent_message_chunk", block, kinds)


def text_updates(kind: str, text: str, meta: dict[str, Any] | None = None) -> Iterator[Update]:
    """Chunks that join to `text`."""
    for start in range(0, len(text), _PIECE):
        update: Update = {
            "sessionUpdate": kind,
            "content": {"type": "text", "text": text[start : start + _PIECE]},
        }
        if meta:
            update["_meta"] = meta
        yield update


def notice_updates(text: str, tag: str) -> Iterator[Update]:
    """A notice of ours, told apart from the model's words by its `_meta`."""
    return text_updates("agent_message_chunk", text, {"agentd/notice": tag or "notice"})


def usage_json(usage: Usage) -> dict[str, int]:
    """Tokens as `session/prompt` answers them."""
    return {
        "totalTokens": usage.total_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedReadTokens": usage.cache_read_tokens,
        "cachedWriteTokens": usage.cache_write_tokens,
    }


def join_chunks(events: Iterable[tuple[int, TurnEvent]]) -> Iterator[tuple[int, TurnEvent]]:
    """The same numbered events with runs of words put together under their last number."""
    parts: list[str] = []
    held: tuple[int, TextChunk | ThoughtChunk] | None = None
    for seq, event in events:
        if held is not None and type(event) is type(held[1]):
            assert isinstance(event, TextChunk | ThoughtChunk)
            parts.append(event.text)
            held = (seq, held[1])
            continue
        if held is not None:
            yield held[0], type(held[1])(held[1].session, "".join(parts))
        held = None
        if isinstance(event, TextChunk | ThoughtChunk):
            held, parts = (seq, event), [event.text]
        else:
            yield seq, event
    if held is not None:
        yield held[0], type(held[1])(held[1].session, "".join(parts))


def _block_updates(kind: str, block: Block, kinds: Mapping[str, str]) -> Iterator[Update]:
    match block:
        case Text(text):
            yield from text_updates(kind, text)
        case ToolUse(id_, name, arguments):
            yield _tool_call(id_, block.title, kinds.get(name, ""), dict(arguments))
        case ToolResult(id_, text, is_error):
            yield _tool_result(id_, text, is_error=is_error)
        case Opaque():
            return
        case _:
            assert_never(block)


def _tool_call(call_id: str, title: str, kind: str, arguments: dict[str, Any]) -> Update:
    clipped = {
        key: _clip(value) if isinstance(value, str) else value for key, value in arguments.items()
    }
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": title,
        "kind": kind if kind in _KINDS else "other",
        "status": "in_progress",
        "rawInput": clipped,
    }


def _tool_result(call_id: str, text: str, *, is_error: bool) -> Update:
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": "failed" if is_error else "completed",
        "content": [{"type": "content", "content": {"type": "text", "text": _clip(text)}}],
    }


def _clip(text: str) -> str:
    if len(text) <= _TOOL_TEXT:
        return text
    return f"{text[:_TOOL_TEXT]}\n[{len(text) - _TOOL_TEXT} more characters are not shown]"
