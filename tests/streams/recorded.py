"""Six answers of a model over both wires, byte for byte as services send them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "providers" / "streams"
_FILES = {
    "anthropic": {
        "text": "text",
        "thinking": "thinking",
        "max_tokens": "max_tokens_text",
        "usage": "cached",
    },
    "openai": {
        "text": "openai/text",
        "thinking": "openai/reasoning_content",
        "max_tokens": "openai/length_text",
        "usage": "openai/cached",
    },
}
WIRES = tuple(_FILES)
NAMES = ("text", "thinking", "max_tokens", "usage", "call", "calls")
TOOL = "note"
NOTED = ("Tee trinkt Ada ☕", 'a "quoted" one', "third\nline")

Json = dict[str, Any]


def stream(wire: str, name: str, tool: str = TOOL, key: str = "text") -> bytes:
    """The bytes of an answer; those with calls, of which `calls` has three, ask `tool` to take a
    text as its `key`.
    """
    if name in ("call", "calls"):
        texts = NOTED[:1] if name == "call" else NOTED
        given = [json.dumps({key: text}, ensure_ascii=False) for text in texts]
        return b"".join((_messages if wire == "anthropic" else _chunks)(tool, given))
    return (_FOLDER / f"{_FILES[wire][name]}.txt").read_bytes()


def _thirds(text: str) -> list[str]:
    third = len(text) // 3
    return [text[:third], text[third : 2 * third], text[2 * third :]]


def _messages(tool: str, given: Sequence[str]) -> Iterator[bytes]:
    """As the Messages API asks for calls: a block each, its arguments in pieces."""

    def event(kind: str, **more: Any) -> bytes:
        data = json.dumps({"type": kind, **more}, ensure_ascii=False, separators=(",", ":"))
        return f"event: {kind}\ndata: {data}\n\n".encode()

    usage = {"input_tokens": 25, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet"}
    yield event("message_start", message=message | {"content": [], "usage": usage})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    said = {"type": "text_delta", "text": "I note that."}
    yield event("content_block_delta", index=0, delta=said)
    yield event("content_block_stop", index=0)
    for index, arguments in enumerate(given, 1):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": tool, "input": {}}
        yield event("content_block_start", index=index, content_block=block)
        for piece in _thirds(arguments):
            delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": 89})
    yield event("message_stop")


def _chunks(tool: str, given: Sequence[str]) -> Iterator[bytes]:
    """As chat completions ask for calls: one after the other, their arguments in pieces."""

    def chunk(delta: Json, reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-x"}
        body |= {"choices": [choice], **more}
        return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()

    yield chunk({"role": "assistant", "content": "I note that."})
    for index, arguments in enumerate(given):
        first, *others = _thirds(arguments)
        function = {"name": tool, "arguments": first}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        for piece in others:
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")
    usage = {"prompt_tokens": 25, "completion_tokens": 15, "total_tokens": 40}
    yield chunk({}, None, usage=usage)
    yield b"data: [DONE]\n\n"
