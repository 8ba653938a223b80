"""The wire format of the Messages API: prompts as requests, streams as answers or errors."""

from __future__ import annotations

from typing import Any, NoReturn

import structlog
from msgspec.structs import replace

from agentd.core.message import (
    Block,
    Image,
    Message,
    OpaqueBlock,
    Role,
    Text,
    ToolResult,
    ToolUse,
    encode_block,
)
from agentd.core.prompt import AnswerCompleted, ModelStop, Prompt, TextDelta, ThoughtDelta, ToolSpec
from agentd.core.strict import as_unicode, is_unicode, join_pieces
from agentd.core.turn import Usage
from agentd.providers.faults import failure, reported_fault
from agentd.providers.pictures import NO_PICTURES, Pictures
from agentd.providers.provider_settings import ServiceSettings
from agentd.providers.received import (
    Arguments,
    TextStream,
    WrittenAnswer,
    call_id,
    call_name,
    model_name,
    token_count,
    tool_call,
    tool_name,
)

log = structlog.get_logger()


PROVIDER = "anthropic"

_CACHE = {"type": "ephemeral"}
_CACHEABLE = frozenset({"text", "image", "tool_use", "tool_result"})

Json = dict[str, Any]


def request_body(
    prompt: Prompt, settings: ServiceSettings, model: str, pictures: Pictures = NO_PICTURES
) -> Json:
    """Return the body of a request, without `stream`. `pictures` are the bytes of the prompt's
    images.

    The API allows four cache breakpoints. They are set after the tools, the system text, the first
    `prompt.cached_messages` messages, and the last message. `thinking = "off"` sends nothing, since
    not every model accepts a request that disables thinking.
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
        if not prompt.may_call:
            body["tool_choice"] = {"type": "none"}
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
        case OpaqueBlock(provider, raw):
            # Signed thinking cannot be mended, and a lone surrogate cannot be sent.
            return dict(raw) if provider == PROVIDER and is_unicode(raw) else None
        case ToolUse(id_, name):
            id_ = call_id(id_, strict=True)
            block = replace(block, id=id_, name=call_name(name), refused="")
        case ToolResult(id_):
            block = replace(block, tool_use_id=call_id(id_, strict=True))
    return encode_block(block)


def _mark(blocks: list[Json]) -> None:
    """Set a cache breakpoint on the last block that may carry one; a thinking block may not."""
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


_STOPS = {
    "end_turn": ModelStop.END_TURN,
    "stop_sequence": ModelStop.END_TURN,
    "tool_use": ModelStop.TOOL_USE,
    "max_tokens": ModelStop.MAX_TOKENS,
    "refusal": ModelStop.REFUSAL,
    "pause_turn": ModelStop.PAUSE,
}
_CUT = (ModelStop.MAX_TOKENS, ModelStop.REFUSAL)
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
# For each type of delta: the key of its text, and the key in the block that the text is added to.
_APPEND = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
}


class AnthropicAssembly:
    """Assembles an answer from a stream's events, which are fed in order. Once the stream
    `is_complete`, `answered` returns the answer.

    Raises ProviderError for an event that cannot follow the ones before, and for errors that the
    service reports inside the stream. Unknown types of events are ignored and unknown blocks kept
    as `OpaqueBlock`, as the API's versioning rule asks.
    """

    def __init__(self, model: str) -> None:
        self.is_complete = False
        self.is_begun = False  # whether the answer has begun, so that it is charged
        self.written = WrittenAnswer()
        self._model = model
        self._blocks: list[_Part] = []
        self._stop = ""
        self._usage = dict.fromkeys(_USAGE, 0)

    def feed(self, event: object) -> TextDelta | ThoughtDelta | None:
        """Take one event and return the text or thinking that can be shown at once, if any. Raises
        ProviderError.
        """
        if not isinstance(event, dict) or self.is_complete:
            _bad("an event out of place")
        try:
            return self._feed(event)
        except (KeyError, TypeError, AttributeError):
            _bad("an event without its parts")

    def _feed(self, event: Json) -> TextDelta | ThoughtDelta | None:
        kind = event["type"]
        if kind == "error":
            error = event["error"]
            raise reported_fault(str(error.get("type")), error, "reported inside the answer")
        if kind == "message_start":
            self._start(event["message"])
        elif not self.is_begun and kind != "ping":
            _bad("an answer without a beginning")
        elif kind == "content_block_start":
            return self._open(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            return self._current(event["index"]).add(event["delta"], self.written)
        elif kind == "content_block_stop":
            return self._current(event["index"]).close()
        elif kind == "message_delta":
            self._stop = event["delta"].get("stop_reason") or self._stop
            self._count(event.get("usage"))
        elif kind == "message_stop":
            self.is_complete = True
        return None

    def _start(self, message: Json) -> None:
        if self.is_begun:
            _bad("two answers in one")
        self.is_begun = True
        self._model = model_name(message.get("model"), self._model)
        self._count(message.get("usage"))

    def _open(self, index: int, raw: Json) -> TextDelta | None:
        if index != len(self._blocks) or any(p.is_open for p in self._blocks):
            _bad("blocks out of order")
        part = _Part(raw)
        self._blocks.append(part)
        return part.begun(self.written)

    def _current(self, index: int) -> _Part:
        if index != len(self._blocks) - 1 or not self._blocks[-1].is_open:
            _bad("a piece of a block that is not open")
        return self._blocks[-1]

    def _count(self, usage: Json | None) -> None:
        # The figures of a later event are totals, not additions; null leaves a figure as it is.
        for key in _USAGE:
            if usage and isinstance(usage.get(key), int):
                self._usage[key] = token_count(usage[key])

    @property
    def usage(self) -> Usage:
        """The tokens that the service has reported so far."""
        return Usage(
            self._usage["input_tokens"],
            self._usage["output_tokens"],
            self._usage["cache_read_input_tokens"],
            self._usage["cache_creation_input_tokens"],
        )

    def answered(self, usage: Usage) -> AnswerCompleted:
        """Return the answer. Raises ProviderError if it is cut, empty or malformed, or stopped for
        a tool call that it does not contain. Takes time in proportion to the length of the answer.
        """
        try:
            return self._finish(usage)
        except (KeyError, TypeError, AttributeError):
            _bad("an event without its parts")

    def _finish(self, usage: Usage) -> AnswerCompleted:
        if self._stop == "model_context_window_exceeded":
            raise failure("overflow", "its window was full before the answer was complete")
        if not self._stop:
            raise failure("stream_cut", "no stop reason")
        if self._stop not in _STOPS:
            raise failure("unknown_stop")
        stop = _STOPS[self._stop]
        blocks = _cut_blocks(self._blocks) if stop in _CUT else _whole_blocks(self._blocks)
        message = Message(Role.ASSISTANT, blocks)
        if stop is ModelStop.END_TURN and message.tool_uses:
            stop = ModelStop.TOOL_USE
        if stop is ModelStop.TOOL_USE and not message.tool_uses:
            _bad("a tool call without a tool")
        if stop is ModelStop.END_TURN and not message.text.strip():
            raise failure("empty_answer")
        return AnswerCompleted(message, stop, usage, self._model, PROVIDER)


class _Part:
    """A content block of an answer, assembled from its deltas."""

    def __init__(self, raw: Json) -> None:
        self.kind = _str(raw["type"])
        self.raw = dict(raw)
        self.is_open = True
        self.is_known = True
        self._arguments = Arguments()
        self._pieces: dict[str, list[str]] = {}
        self._words: list[str] = []  # of a text block, as shown
        self._shown = TextStream()

    def begun(self, written: WrittenAnswer) -> TextDelta | None:
        """Return the text that a text block starts with, as far as it can be shown."""
        if self.kind != "text":
            return None
        piece = _str(self.raw.get("text") or "")
        written.add(piece)
        return self._show(piece)

    def add(self, delta: Json, written: WrittenAnswer) -> TextDelta | ThoughtDelta | None:
        """Add a delta, counting its text in `written`, and return what can be shown at once, if
        anything.
        """
        kind = delta["type"]
        if kind == "input_json_delta":
            piece = _str(delta["partial_json"])
            self._arguments.feed(piece, written)
        elif kind in _APPEND:
            source, target = _APPEND[kind]
            piece = _str(delta[source])
            written.add(piece)
            if kind == "text_delta" and self.kind == "text":
                return self._show(piece)
            self._pieces.setdefault(target, []).append(piece)
            if kind == "thinking_delta" and (thought := self._shown.feed(piece)):
                return ThoughtDelta(thought)
        elif self.kind != "text":  # a text block is kept for its text, whatever else comes with it
            self._drop(f"a {as_unicode(_str(kind))}")
        return None

    def close(self) -> TextDelta | ThoughtDelta | None:
        """End the block and return the text that was held back, if any."""
        self.is_open = False
        rest = self._shown.end()
        if self.kind == "text":
            self._words.append(rest)
        if not rest:
            return None
        return TextDelta(rest) if self.kind == "text" else ThoughtDelta(rest)

    def block(self) -> Block | None:
        """Return the finished block; None if it is empty text or has an unknown type of delta or a
        lone surrogate, and so cannot be sent back. Raises ProviderError (`bad_tool_json`) for bad
        arguments.
        """
        if self.kind == "text":
            text = "".join(self._words)
            return Text(text) if text else None
        raw = dict(self.raw)
        for key, pieces in self._pieces.items():
            raw[key] = join_pieces([str(raw.get(key) or ""), *pieces])
        if not self._arguments.is_empty:
            raw["input"] = self._arguments.parsed()
        if self.kind == "tool_use":
            if not isinstance(raw.get("input"), dict):
                raise failure("bad_tool_json")
            return tool_call(
                _name(raw["id"]),
                _name(raw["name"]),
                raw["input"],
                any_id=False,
                too_large=self._arguments.is_too_large,
            )
        if self.is_known and not is_unicode(raw):  # a signed text cannot be mended
            self._drop("half of a surrogate pair")
        return OpaqueBlock(PROVIDER, raw) if self.is_known else None

    def _show(self, piece: str) -> TextDelta | None:
        words = self._shown.feed(piece)
        self._words.append(words)
        return TextDelta(words) if words else None

    def _drop(self, why: str) -> None:
        self.is_known = False
        log.warning("provider_block_dropped", type=as_unicode(self.kind), cause=why)


def _whole_blocks(parts: list[_Part]) -> tuple[Block, ...]:
    if any(p.is_open for p in parts):
        _bad("a block without an end")
    return tuple(b for p in parts if (b := p.block()) is not None)


def _cut_blocks(parts: list[_Part]) -> tuple[Block, ...]:
    """Return the blocks that may be kept of an answer that ended early: text, and thinking before
    text.

    Tool calls are dropped: one that was cut before its first argument looks like a whole one
    without arguments. Thinking at the end is dropped, because the API does not take it back there.
    """
    kept: list[Block] = []
    for part in parts:
        if part.kind in ("text", "thinking", "redacted_thinking"):
            block = part.block()
            if block is not None:
                kept.append(block)
    while kept and isinstance(kept[-1], OpaqueBlock):
        kept.pop()
    return tuple(kept)


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _name(value: object) -> str:
    if not _str(value):
        _bad("a tool call without a name")
    return str(value)


def _bad(what: str) -> NoReturn:
    raise failure("bad_stream", what)
