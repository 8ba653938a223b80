"""A prompt as the body of a request to a chat-completions server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from agentd.domain.message import Block, Image, Message, Role, Text, ToolResult, ToolUse
from agentd.domain.prompt import Prompt, ToolSpec
from agentd.providers.labels import call_id, call_name, tool_name
from agentd.providers.pictures import NO_PICTURES, Pictures
from agentd.providers.settings import ServiceSettings

PROVIDER = "openai"

Json = dict[str, Any]


def request_body(
    prompt: Prompt, settings: ServiceSettings, model: str, pictures: Pictures = NO_PICTURES
) -> Json:
    """The body of a streamed request, `pictures` being the bytes of its images. The order of keys
    and parts is always the same, the stable ones first: servers cache what begins like the request
    before.
    """
    can = settings.capabilities
    body: Json = {
        "model": model,
        "stream": True,
        can.max_tokens_field: prompt.max_tokens or settings.max_tokens,
    }
    if can.stream_options:
        body["stream_options"] = {"include_usage": True}
    if effort := prompt.effort or can.reasoning_effort:
        body["reasoning_effort"] = effort
    if prompt.tools:
        body["tools"] = [_tool(t) for t in prompt.tools]
        if can.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = can.parallel_tool_calls
    body["messages"] = list(_messages(prompt, can.system_role, pictures))
    return body


def _messages(prompt: Prompt, system_role: str, pictures: Pictures) -> Iterator[Json]:
    if system := "\n\n".join(s for s in prompt.system if s.strip()):
        yield {"role": system_role, "content": system}
    for message in prompt.messages:
        if message.role is Role.ASSISTANT:
            yield from _assistant(message)
        else:
            yield from _user(message, pictures)


def _assistant(message: Message) -> Iterator[Json]:
    calls = [_call(use) for use in message.tool_uses]
    text = message.text if message.text.strip() else None
    if text or calls:
        said: Json = {"role": "assistant", "content": text}
        if calls:
            said["tool_calls"] = calls
        yield said


def _user(message: Message, pictures: Pictures) -> Iterator[Json]:
    """Tool results each as a message of their own, directly behind the calls, then the words."""
    for block in message.blocks:
        if isinstance(block, ToolResult):
            # The format has no mark for an error: the words must say it.
            text = f"Error: {block.text}" if block.is_error else block.text
            id_ = call_id(block.tool_use_id, strict=False)
            yield {"role": "tool", "tool_call_id": id_, "content": text}
    said = [b for b in message.blocks if _is_said(b)]
    if any(isinstance(b, Image) for b in said):
        yield {"role": "user", "content": [_part(b, pictures) for b in said]}
    elif said:
        yield {"role": "user", "content": "\n\n".join(b.text for b in said if isinstance(b, Text))}


def _is_said(block: Block) -> bool:
    return isinstance(block, Image) or (isinstance(block, Text) and bool(block.text.strip()))


def _part(block: Block, pictures: Pictures) -> Json:
    if isinstance(block, Image):
        url = f"data:{block.media_type};base64,{pictures[block.sha256]}"
        return {"type": "image_url", "image_url": {"url": url}}
    assert isinstance(block, Text)
    return {"type": "text", "text": block.text}


def _call(use: ToolUse) -> Json:
    arguments = json.dumps(dict(use.input), ensure_ascii=False)
    return {
        "id": call_id(use.id, strict=False),
        "type": "function",
        "function": {"name": call_name(use.name), "arguments": arguments},
    }


def _tool(spec: ToolSpec) -> Json:
    function = {
        "name": tool_name(spec.name),
        "description": spec.description,
        "parameters": dict(spec.input_schema),
    }
    return {"type": "function", "function": function}
