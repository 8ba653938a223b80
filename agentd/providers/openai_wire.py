"""Requests of chat completions: prompts as bodies, and what a refusal asks to change in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from agentd.core.message import Block, Image, Message, OpaqueBlock, Role, Text, ToolResult, ToolUse
from agentd.core.prompt import Prompt, ToolSpec
from agentd.core.settings import OPENAI_URL
from agentd.providers.faults import named_keys
from agentd.providers.pictures import NO_PICTURES, Pictures, blind
from agentd.providers.provider_settings import Capabilities, ServiceSettings
from agentd.providers.received import call_id, call_name, short_id, tool_name

PROVIDER = "openai"

Json = dict[str, Any]


def request_body(
    prompt: Prompt, settings: ServiceSettings, model: str, pictures: Pictures = NO_PICTURES
) -> Json:
    """Return the body of a streamed request; `pictures` are the bytes of the prompt's images. Keys
    and parts always come in the same order, stable ones first: servers cache requests by their
    common beginning.
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
        if not prompt.may_call:
            body["tool_choice"] = "none"
        if can.parallel_tool_calls is not None:
            body["parallel_tool_calls"] = can.parallel_tool_calls
    body["messages"] = list(_messages(prompt, settings, pictures))
    return body


THOUGHTS = ("reasoning_content", "reasoning")  # servers differ; some send both, with the same text
_INSTEAD = {"max_completion_tokens": "max_tokens"}


def unasked_keys(can: Capabilities) -> frozenset[str]:
    """Return the keys of a request that are sent by default, not because a setting says so."""
    given = {"stream_options": "stream_options", can.max_tokens_field: "max_tokens_field"}
    unset = (key for key, field in given.items() if field not in can.model_fields_set)
    return frozenset({"tool_choice", *unset})


def wishes(said: str, body: Json, unasked: frozenset[str]) -> frozenset[str]:
    """Return what a service that refused the body may want otherwise, by what its words quote: keys
    of `unasked` that it does not know, reasoning that it misses at the assistant's messages, and
    `id` for ids of tool calls that it does not take.
    """
    told = [m for m in body["messages"] if m["role"] == "assistant"]
    ids = (call["id"] for m in told for call in m.get("tool_calls", ()))
    missed = {k for k in named_keys(said, THOUGHTS) if any(k not in m for m in told)}
    return (
        (unasked & named_keys(said, body))
        | missed
        | ({"id"} if any(map(said.count, ids)) else set())
    )


def adapted(body: Json, wanted: frozenset[str]) -> Json:
    """Return the body as a service wants it that has such `wishes`. The limit of the answer gets
    its older name where the newer one is not known.
    """
    kept = {k: v for k, v in body.items() if k not in wanted}
    changed = {_INSTEAD[k]: body[k] for k in _INSTEAD.keys() & wanted & body.keys()}
    if lacking := wanted.intersection((*THOUGHTS, "id")):
        changed["messages"] = [_adapted_message(m, lacking) for m in body["messages"]]
    return {**kept, **changed}


def _adapted_message(message: Json, wanted: frozenset[str]) -> Json:
    said = dict(message)
    if said["role"] == "assistant":
        said = {**dict.fromkeys(wanted.intersection(THOUGHTS), ""), **said}
    if "id" in wanted:
        if "tool_call_id" in said:
            said["tool_call_id"] = short_id(said["tool_call_id"])
        if "tool_calls" in said:
            said["tool_calls"] = [{**c, "id": short_id(c["id"])} for c in said["tool_calls"]]
    return said


def service_of(settings: ServiceSettings) -> str:
    """Return what tells one service from another: a digest of its address, which may hold a key."""
    address = settings.base_url.rstrip("/") or OPENAI_URL
    return hashlib.sha256(address.encode()).hexdigest()[:16]


def _messages(prompt: Prompt, settings: ServiceSettings, pictures: Pictures) -> Iterator[Json]:
    if system := "\n\n".join(s for s in prompt.system if s.strip()):
        yield {"role": settings.capabilities.system_role, "content": system}
    service = service_of(settings)
    for message in prompt.messages:
        if message.role is Role.ASSISTANT:
            yield from _assistant(message, service)
        else:
            yield from _user(message, pictures)


def _assistant(message: Message, service: str) -> Iterator[Json]:
    calls = [_call(use) for use in message.tool_uses]
    text = message.text if message.text.strip() else None
    if text or calls:
        said: Json = {"role": "assistant", "content": text}
        if calls:
            said["tool_calls"] = calls
            _add_unsaid(said, message, service)
        yield said


def _add_unsaid(said: Json, message: Message, service: str) -> None:
    """Add what came with the calls and only this service understands: what `openai_answer` kept."""
    for block in message.blocks:
        if not isinstance(block, OpaqueBlock) or block.provider != PROVIDER:
            continue
        match block.raw:
            case {"service": str(own), "message": dict(fields), "calls": list(extras)} if (
                own == service
            ):
                said.update({k: v for k, v in fields.items() if k not in said})
                for call, extra in zip(said["tool_calls"], extras, strict=False):
                    call.update({k: v for k, v in dict(extra).items() if k not in call})


def _user(message: Message, pictures: Pictures) -> Iterator[Json]:
    """Yield each tool result as a message of its own, directly after the calls, then the user's
    text and images.
    """
    for block in message.blocks:
        if isinstance(block, ToolResult):
            # The format has no field for an error, so the text says it.
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


def cures(table: str) -> dict[str, str]:
    """Return what to do about each key of a request that a server may refuse, as text that names
    this table of the configuration.
    """
    inner = table.strip("[]")
    own = f"[{inner}.capabilities]"
    other = {
        name: f'If the server knows no {name}, set max_tokens_field = "{instead}" in {own}; '
        f"if its value is too large, lower {table} max_tokens."
        for name, instead in (
            ("max_completion_tokens", "max_tokens"),
            ("max_tokens", "max_completion_tokens"),
        )
    }
    return {
        "images": blind(table),
        "stream_options": f"Set stream_options = false in {own} and restart agentd.",
        "parallel_tool_calls": f"Take parallel_tool_calls out of {own} and restart agentd.",
        "reasoning_effort": f'Set reasoning_effort = "" or a word that the server knows in {own}.',
        "model": f"If it is the model's name that is refused, correct {table} model.",
        "tools": f"The model must be able to call tools: name another {table} model, or let the "
        "server offer them.",
        **other,
    }
