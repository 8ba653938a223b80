"""Events and stored rows as `session/update` objects of the Agent Client Protocol. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import ceil
from typing import Any, assert_never

from agentd.core.event import (
    AnswerDelayed,
    AnswerRetracted,
    AnswerWaits,
    FactsChanged,
    NoticeGiven,
    TextChunk,
    ThoughtChunk,
    ToolCallAdvanced,
    ToolCallEnded,
    ToolCallStarted,
    TurnEnded,
    TurnEvent,
    TurnStarted,
)
from agentd.core.message import Image, Text, ToolResult, ToolUse
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import Turn, Usage

Update = dict[str, Any]

_PIECE = 128 * 1024  # characters; what fits a frame in any script
_WORTH_WORDS = 5.0  # seconds of a wait
_TOOL_TEXT = 64 * 1024
_KINDS = frozenset(
    ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")
)


def event_updates(event: TurnEvent, window: int = 0) -> Iterator[Update]:
    """Yield the updates that watching clients get for an event. `window` is the model's context
    window in tokens; 0: unknown.
    """
    match event:
        case TurnStarted():
            yield from map(image_words, event.images)
            yield from text_updates("user_message_chunk", event.text)
        case TextChunk():
            yield from text_updates("agent_message_chunk", event.text)
        case ThoughtChunk():
            yield from text_updates("agent_thought_chunk", event.text)
        case ToolCallStarted():
            yield _tool_call(event.call_id, event.title, event.kind, dict(event.input))
        case ToolCallAdvanced():
            yield _tool_result(event.call_id, event.text, "in_progress")
        case ToolCallEnded():
            yield _tool_result(event.call_id, event.text, _status(is_error=event.is_error))
        case AnswerDelayed() | AnswerWaits():
            yield from _waits(event)
        case AnswerRetracted() | NoticeGiven() | FactsChanged():
            yield from _beside_answer(event)
        case TurnEnded():
            yield from _end_updates(event.turn, window)
        case _:
            assert_never(event)


def _waits(event: AnswerDelayed | AnswerWaits) -> Iterator[Update]:
    """Yield a delay: as data for programs, and in words if it is long."""
    retry = {
        "reason": event.reason,
        "text": event.text,
        "seconds": round(event.seconds, 1),
        "state": "retrying",
    }
    if isinstance(event, AnswerWaits):
        retry |= {"state": "waiting", "until": event.until.isoformat()}
    yield {"sessionUpdate": "session_info_update", "_meta": {"agentd/retry": retry}}
    if isinstance(event, AnswerWaits):
        if event.is_new:
            yield from notice_updates(event.text, "waiting")
    elif event.seconds >= _WORTH_WORDS:
        words = f"{event.text} The next try comes in {ceil(event.seconds)} s."
        yield from notice_updates(words, "retry")


def _beside_answer(event: AnswerRetracted | NoticeGiven | FactsChanged) -> Iterator[Update]:
    """Yield agentd's own words between those of the model."""
    match event:
        case AnswerRetracted():
            text = f"\n\n[This answer was cut and is not kept: {event.reason}]\n\n"
            return text_updates("agent_message_chunk", text, {"agentd/retracted": True})
        case NoticeGiven():
            return notice_updates(event.text, event.tag)
        case FactsChanged():
            changes = {"agentd/facts": [dict(change) for change in event.changes]}
            return notice_updates(event.text, "facts", changes)


def replay_updates(
    rows: Iterable[Row], kinds: Mapping[str, str]
) -> Iterator[tuple[int, Update | Image]]:
    """Yield what a client that loads a session is shown of its rows: each update with its row's
    number; nothing for a summary. `kinds` are the tools' kinds by name. An Image stands for the
    update that will show it.

    Several calls in one answer come in the order in which they were shown live: after the answer's
    words, each with its result.
    """
    rows = tuple(rows)
    results = {b.tool_use_id: b for row in rows for b in row.blocks if isinstance(b, ToolResult)}
    for row in rows:
        for update in _words(row):
            yield row.seq, update
        for use in (b for b in row.blocks if isinstance(b, ToolUse)):
            yield row.seq, _tool_call(use.id, use.title, kinds.get(use.name, ""), dict(use.input))
            if (result := results.get(use.id)) is not None:
                yield row.seq, _tool_result(use.id, result.text, _status(is_error=result.is_error))


def _words(row: Row) -> Iterator[Update | Image]:
    match row.role:
        case RowRole.NOTICE:
            yield from notice_updates(row.text, row.tag)
        case RowRole.USER | RowRole.ASSISTANT:
            is_user = row.role is RowRole.USER
            kind = "user_message_chunk" if is_user else "agent_message_chunk"
            for block in row.blocks:
                if isinstance(block, Text):
                    yield from text_updates(kind, block.text)
                elif isinstance(block, Image):
                    yield block


def text_updates(kind: str, text: str, meta: dict[str, Any] | None = None) -> Iterator[Update]:
    """Yield chunks that join to `text`."""
    for start in range(0, len(text), _PIECE):
        update: Update = {
            "sessionUpdate": kind,
            "content": {"type": "text", "text": text[start : start + _PIECE]},
        }
        if meta:
            update["_meta"] = meta
        yield update


def image_words(image: Image, why: str = "") -> Update:
    """Return a line of text in place of an image that is not shown; `why` is the reason."""
    reason = f", not shown: {why}]" if why else "]"
    text = f"{image.label.removesuffix(']')}{reason}\n"
    (update,) = text_updates("user_message_chunk", text, {"agentd/image": image.sha256})
    return update


def notice_updates(text: str, tag: str, more: Mapping[str, Any] | None = None) -> Iterator[Update]:
    """A notice of ours, told apart from the model's words by its `_meta`, which says `more`
    besides.
    """
    return text_updates(
        "agent_message_chunk", text, {"agentd/notice": tag or "notice", **(more or {})}
    )


def usage_update(used: int, window: int) -> Update:
    """How full a session's context is, in tokens."""
    return {"sessionUpdate": "usage_update", "used": used, "size": window}


def _end_updates(turn: Turn, window: int) -> Iterator[Update]:
    if window and turn.context_tokens:
        yield _turn_usage(turn, window)
    yield {"sessionUpdate": "session_info_update", "_meta": _ending(turn)}


def _turn_usage(turn: Turn, window: int) -> Update:
    meta = {"agentd/usage": turn.usage.as_json(), "agentd/costUsd": turn.cost_usd}
    return {**usage_update(turn.context_tokens, window), "_meta": meta}


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


def _ending(turn: Turn) -> dict[str, Any]:
    failure = turn.failure
    told = {
        "agentd/turnEnded": turn.message_id,
        "agentd/stopReason": turn.stop_reason,
        "agentd/failure": failure.code if failure else None,
    }
    if failure is None:
        return told
    return {**told, "agentd/failureText": failure.message, "agentd/failureCure": failure.cure}


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


def _tool_result(call_id: str, text: str, status: str) -> Update:
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": status,
        "content": [{"type": "content", "content": {"type": "text", "text": _clip(text)}}],
    }


def _status(*, is_error: bool) -> str:
    return "failed" if is_error else "completed"


def _clip(text: str) -> str:
    if len(text) <= _TOOL_TEXT:
        return text
    return f"{text[:_TOOL_TEXT]}\n[{len(text) - _TOOL_TEXT} more characters are not shown]"
