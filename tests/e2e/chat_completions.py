"""The fake model behind the chat-completions API: requests as those of the Messages API, answers as
theirs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

Json = dict[str, Any]

_NOW = re.compile(r"(?:\A|\n\n)(\[Now: [^\]\n]*\])\n\n")  # what a turn is told before the words
_ERROR = "Error: "  # how the request says that a tool failed


def messages_body(body: Json) -> Json:
    """The request as the Messages API would have it."""
    messages: list[Json] = []
    system = ""
    for message in body["messages"]:
        if message["role"] in ("system", "developer"):
            system = message["content"]
        elif message["role"] == "assistant":
            messages.append({"role": "assistant", "content": _said(message)})
        else:
            blocks = _given(message)
            if messages and messages[-1]["role"] == "user":
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": "user", "content": blocks})
    tools = [
        {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
        for tool in body.get("tools", [])
    ]
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    changed = {"messages": messages, "system": system, "stream": body["stream"], "max_tokens": most}
    return {**changed, "model": body["model"], **({"tools": tools} if tools else {})}


def chunks(
    pieces: Sequence[str], calls: Sequence[tuple[str, str, Json]], number: int, read: int
) -> Iterator[bytes]:
    """The events of an answer: its words in pieces, then its calls as (id, tool, input)."""

    def chunk(delta: Json, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return _event({"id": f"c{number}", "model": "fake", "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces:
        yield chunk({"content": piece})
    for place, (call_id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": place, "id": call_id, "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
    yield chunk({}, "tool_calls" if calls else "stop")
    usage = {"prompt_tokens": read, "completion_tokens": 5, "total_tokens": read + 5}
    yield _event({"id": f"c{number}", "model": "fake", "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(data: Json) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def _said(message: Json) -> list[Json]:
    text = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    return text + [
        {
            "type": "tool_use",
            "id": call["id"],
            "name": call["function"]["name"],
            "input": json.loads(call["function"]["arguments"]),
        }
        for call in message.get("tool_calls", [])
    ]


def _given(message: Json) -> list[Json]:
    content = message["content"]
    if message["role"] == "tool":
        failed = content.startswith(_ERROR)
        result = {"tool_use_id": message["tool_call_id"], "content": content.removeprefix(_ERROR)}
        return [{"type": "tool_result", **result, **({"is_error": True} if failed else {})}]
    if isinstance(content, str):
        return [{"type": "text", "text": part} for part in _parts(content)]
    return [part if part["type"] == "text" else _picture(part) for part in content]


def _parts(content: str) -> list[str]:
    """What stands before the user's words, which the request has joined with them, and the
    words.
    """
    now = _NOW.search(content)
    if now is None:
        return [content]
    return [part for part in (content[: now.start()], now[1], content[now.end() :]) if part]


def _picture(part: Json) -> Json:
    kind, _, data = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
