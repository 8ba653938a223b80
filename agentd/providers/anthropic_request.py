"""A prompt as the body of a request to the Messages API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentd.domain.message import (
    Block,
    Image,
    Message,
    Opaque,
    Text,
    ToolResult,
    ToolUse,
    encode_block,
)
from agentd.domain.prompt import Prompt, ToolSpec
from agentd.domain.strict import is_unicode
from agentd.providers.labels import call_id, call_name, tool_name
from agentd.providers.pictures import NO_PICTURES, Pictures
from agentd.providers.settings import ServiceSettings

PROVIDER = "anthropic"

_CACHE = {"type": "ephemeral"}
_CACHEABLE = frozenset({"text", "image", "tool_use", "tool_result"})

Json = dict[str, Any]


def request_body(
    prompt: Prompt, settings: ServiceSettings, model: str, pictures: Pictures = NO_PICTURES
) -> Json:
    """The body without `stream`. `pictures` are the bytes of the prompt's images.

    Cache breakpoints (the API allows four) stand behind the tools, the system text, the messages
    that stay, and the last message. `thinking = "off"` sends nothing, since not every model lets
    itself be told not to think.
    """
    body: Json = {
        "model": model,
        "max_tokens": prompt.max_tokens or settings.max_tokens,
        "messages": _messages(prompt.messages, prompt.cached_messages, pictures),
    }
    if system := [{"type": "text", "text": s} for s in prompt.system if s.strip()]:
        _mark(system)
        body["system"] = system
    if tools := [_tool(t) for t in prompt.tools]:
        tools[-1]["cache_control"] = _CACHE
        body["tools"] = tools
    if settings.thinking == "adaptive":
        body["thinking"] = {"type": "adaptive"}
    if prompt.effort:
        body["output_config"] = {"effort": prompt.effort}
    return body


def _messages(messages: tuple[Message, ...], cached: int, pictures: Pictures) -> list[Json]:
    out: list[Json] = []
    for number, message in enumerate(messages, start=1):
        blocks = [raw for b in message.blocks if (raw := _block(b, pictures)) is not None]
        if blocks and out and out[-1]["role"] == message.role:
            out[-1]["content"].extend(blocks)
        elif blocks:
            out.append({"role": str(message.role), "content": blocks})
        if number == cached and out:
            _mark(out[-1]["content"])
    if out:
        _mark(out[-1]["content"])
    return out


def _block(block: Block, pictures: Pictures) -> Json | None:
    match block:
        case Image(media_type, sha256):
            data = pictures[sha256]
            source = {"type": "base64", "media_type": media_type, "data": data}
            return {"type": "image", "source": source}
        case Text(text) if not text.strip():
            return None  # the API refuses text without a visible character
        case Text(text):
            return {"type": "text", "text": text}
        case Opaque(provider, raw):
            # Signed thinking cannot be mended, and what is no Unicode cannot be sent.
            return dict(raw) if provider == PROVIDER and is_unicode(raw) else None
        case ToolUse(id_, name):
            id_ = call_id(id_, strict=True)
            block = replace(block, id=id_, name=call_name(name), refused="")
        case ToolResult(id_):
            block = replace(block, tool_use_id=call_id(id_, strict=True))
    return encode_block(block)


def _mark(blocks: list[Json]) -> None:
    """Set a breakpoint on the last block that may carry one; thinking may not."""
    for block in reversed(blocks):
        if block["type"] in _CACHEABLE:
            block["cache_control"] = _CACHE
            return


def _tool(spec: ToolSpec) -> Json:
    return {
        "name": tool_name(spec.name),
        "description": spec.description,
        "input_schema": dict(spec.input_schema),
    }
