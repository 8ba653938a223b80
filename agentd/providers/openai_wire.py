"""The wire format of chat completions: prompts as requests, streams as answers or errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from enum import Enum, auto
from typing import Any, NoReturn

from agentd.core import strict
from agentd.core.errors import ProviderError
from agentd.core.message import (
    Block,
    Image,
    Message,
    OpaqueBlock,
    Role,
    Text,
    ToolResult,
    ToolUse,
)
from agentd.core.prompt import (
    AnswerCompleted,
    ModelStop,
    Prompt,
    StreamRestarted,
    TextDelta,
    ThoughtDelta,
    ToolSpec,
)
from agentd.core.settings import OPENAI_URL
from agentd.core.strict import as_unicode
from agentd.core.turn import Usage
from agentd.providers.faults import failure, is_known, named_keys, reported_fault
from agentd.providers.pictures import NO_PICTURES, Pictures, blind
from agentd.providers.provider_settings import Capabilities, ServiceSettings
from agentd.providers.received import (
    Arguments,
    TextStream,
    WrittenAnswer,
    call_id,
    call_name,
    model_name,
    short_id,
    token_count,
    tool_call,
    tool_name,
)

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


_THOUGHTS = ("reasoning_content", "reasoning")  # servers differ; some send both, with the same text
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
    missed = {k for k in named_keys(said, _THOUGHTS) if any(k not in m for m in told)}
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
    if lacking := wanted.intersection((*_THOUGHTS, "id")):
        changed["messages"] = [_adapted_message(m, lacking) for m in body["messages"]]
    return {**kept, **changed}


def _adapted_message(message: Json, wanted: frozenset[str]) -> Json:
    said = dict(message)
    if said["role"] == "assistant":
        said = {**dict.fromkeys(wanted.intersection(_THOUGHTS), ""), **said}
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
    """Add what came with the calls and only this service understands; see `_Unsaid`."""
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


_OPEN, _CLOSE = "<think>", "</think>"
_CLOSING_LINE = f"\n{_CLOSE}"
_IN_TEXT = "thinking_in_text"


class ThinkTags:
    """Separates thinking from text while a model streams both as text. Only a `<think>…</think>` at
    the beginning is thinking; later tags are ordinary text.

    Where the server has put the opening tag into the prompt, only a line that begins with the
    closing one tells that all words before it were thinking: they are taken back.
    """

    def __init__(self) -> None:
        self._place = _Place.BEGINNING
        self._held = ""

    def feed(self, piece: str) -> list[Shown]:
        """Take a piece of text and return what can be shown so far; a piece that may be part of a
        tag is held back. `StreamRestarted` says that all text before it was thinking.
        """
        self._held += piece
        found: list[Shown] = []
        if self._place is _Place.BEGINNING:
            self._begin()
        if self._place is _Place.THINKING and (thought := self._until(_CLOSE)):
            found.append(ThoughtDelta(thought))
        if self._place is _Place.WORDS:
            found += self._words()
        if self._place is _Place.BEHIND:
            self._held = self._held.lstrip()
            self._place = _Place.TEXT if self._held else _Place.BEHIND
        return found + self.end() if self._place is _Place.TEXT else found

    def end(self) -> list[Shown]:
        """Return what was held back, once the stream has ended."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [ThoughtDelta(held) if self._place is _Place.THINKING else TextDelta(held)]

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._place, self._held = _Place.THINKING, start.removeprefix(_OPEN)
        elif start.startswith(_CLOSE):
            self._place, self._held = _Place.BEHIND, start.removeprefix(_CLOSE)
        elif not (_OPEN.startswith(start) or _CLOSE.startswith(start)):
            self._place = _Place.WORDS

    def _words(self) -> list[Shown]:
        words = self._until(_CLOSING_LINE)
        found: list[Shown] = [TextDelta(words)] if words else []
        if _OPEN in words:  # tags that are written about
            rest = _CLOSING_LINE + self._held if self._place is _Place.BEHIND else self._held
            self._place, self._held = _Place.TEXT, rest
        elif self._place is _Place.BEHIND:
            found.append(StreamRestarted(_IN_TEXT))
        return found

    def _until(self, tag: str) -> str:
        """Take what is before the tag and return it; what may be a tag's beginning is held."""
        before, found, rest = self._held.partition(tag)
        if found:
            self._place, self._held = _Place.BEHIND, rest
            return before
        self._held = max(_beginning_of(tag, before), _beginning_of(_OPEN, before), key=len)
        return before.removesuffix(self._held)


class _Place(Enum):
    """The part of the text that the next piece belongs to."""

    BEGINNING = auto()  # the text so far may still become an opening tag
    THINKING = auto()
    WORDS = auto()  # without any tag so far, so a closing one may still come
    BEHIND = auto()  # after the closing tag; only white space so far
    TEXT = auto()


def _beginning_of(tag: str, text: str) -> str:
    sizes = range(len(tag) - 1, 0, -1)
    return next((tag[:size] for size in sizes if text.endswith(tag[:size])), "")


DONE = "[DONE]"

# In lower case, as servers differ in that. Only the first four are OpenAI's today.
_STOPS = {
    "stop": ModelStop.END_TURN,
    "tool_calls": ModelStop.TOOL_USE,
    "length": ModelStop.MAX_TOKENS,
    "content_filter": ModelStop.REFUSAL,
    "eos": ModelStop.END_TURN,
    "function_call": ModelStop.TOOL_USE,
    "model_length": ModelStop.MAX_TOKENS,
}
_FAILED = {"error": "server_error", "insufficient_system_resource": "overloaded"}
_DETAILS = "reasoning_details"  # a list that holds the same text, signed or encrypted
_OF_A_CALL = frozenset({"index", "id", "type", "function"})

Shown = TextDelta | ThoughtDelta | StreamRestarted


class OpenAIAssembly:
    """Assembles an answer from a stream's events, which are fed in order.

    The answer is complete with its last stop reason. Token counts and `[DONE]` come after it, and
    not every server sends them: without them only figures are missing, never text. Some servers
    give a reason with every piece: words behind one ask for another.

    Raises ProviderError for an event that cannot follow the ones before, and for errors that the
    service reports inside the stream.
    """

    def __init__(self, model: str, *, service: str = "", think_tags: bool = False) -> None:
        self.is_done = False  # the end mark has come
        self.usage: Usage | None = None
        self.written = WrittenAnswer()
        self._model = model
        self._tags = ThinkTags() if think_tags else None
        self._words: list[str] = []
        self._content, self._thoughts = TextStream(), TextStream()
        self._calls: list[_Call] = []
        self._unsaid = _Unsaid(service)
        self._stop = ""
        self._is_refusal = False
        self._is_continued = False  # there were words behind a stop reason

    @property
    def is_whole(self) -> bool:
        """Whether nothing but figures and the end mark are expected any more."""
        has_answer = bool(self._words or self._calls or not self._unsaid.is_begun)
        return bool(self._stop) and has_answer and not self._is_continued

    @property
    def is_begun(self) -> bool:
        """Whether the answer has begun: from then on the service charges for it."""
        return bool(self._stop or self.usage or self.written.size)

    def feed(self, data: str) -> list[Shown]:
        """Take the data of one event and return the text and thinking that can be shown at once.

        Raises ProviderError, of kind `bad_stream` if the data is no event of this protocol.
        """
        if data.strip() == DONE:
            self.is_done = True
            return []
        try:
            return list(self._feed(strict.loads(data)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            # The error's text is not passed on: a JSONDecodeError holds the received document.
            raise failure("bad_stream", type(error).__name__) from None

    def end(self) -> Iterator[Shown]:
        """Yield what was held back, once the stream has ended."""
        if thought := self._thoughts.end():
            yield ThoughtDelta(thought)
        if words := self._content.end():
            yield from self._text(words)
        if self._tags:
            yield from self._record(self._tags.end())

    def answered(self, usage: Usage) -> AnswerCompleted:
        """Return the answer, after `end`. Raises ProviderError if it is cut, empty or malformed, or
        stopped for a tool call that it does not contain. Takes time in proportion to the length of
        the answer.
        """
        if not self._stop:
            raise failure("stream_cut", "no stop reason")
        if self._stop not in _STOPS:
            told = self._stop if self._stop.isidentifier() and len(self._stop) < 60 else ""
            raise failure(_FAILED.get(self._stop, "unknown_stop"), told)
        stop = _STOPS[self._stop]
        if self._is_refusal and stop is ModelStop.END_TURN:
            stop = ModelStop.REFUSAL
        calls: list[ToolUse] = []
        if stop in (ModelStop.END_TURN, ModelStop.TOOL_USE):
            calls = [call.finished(number) for number, call in enumerate(self._calls)]
            if stop is ModelStop.TOOL_USE and not calls:
                _bad("a tool call without a tool")
            stop = ModelStop.TOOL_USE if calls else stop
        text = "".join(self._words)
        if stop is ModelStop.END_TURN and not text.strip():
            raise failure("empty_answer")
        blocks: tuple[Block, ...] = (Text(text),) if text.strip() else ()
        unsaid = self._unsaid.blocks([call.extra for call in self._calls]) if calls else ()
        message = Message(Role.ASSISTANT, (*unsaid, *blocks, *calls))
        return AnswerCompleted(message, stop, usage, self._model, PROVIDER)

    def _feed(self, chunk: Json) -> Iterator[Shown]:
        if error := error_in(chunk):
            raise error_of(error, "reported inside the answer")
        self._model = model_name(chunk.get("model"), self._model)
        self.usage = _usage(chunk.get("usage")) or self.usage
        for choice in chunk.get("choices") or ():
            if choice.get("index") not in (0, None):
                continue
            yield from self._delta(choice.get("delta") or choice.get("message") or {})
            if reason := choice.get("finish_reason"):
                self._stop = _str(reason).lower()

    def _delta(self, delta: Json) -> Iterator[Shown]:
        thought = next((t for key in _THOUGHTS if (t := delta.get(key)) and isinstance(t, str)), "")
        words, thinking = _content(delta.get("content") or "")
        thought, refusal = thought or thinking, _str(delta.get("refusal") or "")
        pieces = delta.get("tool_calls") or ()
        if self._stop and (thought or words or refusal or pieces):
            self._stop, self._is_continued = "", True
        for said in (thought, words, refusal):
            self.written.add(said)
        self._unsaid.feed(delta, self.written)
        if thought := self._thoughts.feed(thought):
            yield ThoughtDelta(thought)
        if words := self._content.feed(words):
            yield from self._text(words)
        if refusal:
            self._is_refusal = True
            yield from self._record([TextDelta(as_unicode(refusal))])
        for piece in pieces:
            self._call(piece)

    def _record(self, shown: list[Shown]) -> Iterator[Shown]:
        for event in shown:
            yield event
            if isinstance(event, TextDelta):
                self._words.append(event.text)
            elif isinstance(event, StreamRestarted):
                yield ThoughtDelta("".join(self._words))
                self._words.clear()

    def _text(self, words: str) -> Iterator[Shown]:
        return self._record(self._tags.feed(words) if self._tags else [TextDelta(words)])

    def _call(self, piece: Json) -> None:
        """Add a piece to the tool call of its index. A new call begins with another id or, where
        calls have no index or no ids, with a name. Arguments may come as an object.
        """
        index, id_ = piece.get("index"), _str(piece.get("id") or "")
        function = piece.get("function") or {}
        name, given = _str(function.get("name") or ""), function.get("arguments") or ""
        arguments = json.dumps(given) if isinstance(given, dict) else _str(given)
        call = next((c for c in reversed(self._calls) if index is None or c.index == index), None)
        is_other = call is not None and (
            bool(id_ and call.id and id_ != call.id)
            or (index is None and call.is_behind(name))
            or (not id_ and bool(name and arguments) and call.is_whole)
        )
        if call is None or is_other:
            call = _Call(index)
            self._calls.append(call)
        call.id = call.id or id_
        call.name = call.name or name
        if arguments:
            call.arguments.feed(arguments, self.written)
        if extra := {key: piece[key] for key in piece.keys() - _OF_A_CALL if piece[key]}:
            self.written.add(json.dumps(extra))
            call.extra.update(extra)


class _Call:
    """A tool call, assembled from its pieces."""

    def __init__(self, index: object) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        self.arguments = Arguments()
        self.extra: Json = {}  # keys that this format does not have

    def is_behind(self, name: str) -> bool:
        """Whether a piece with this name begins the next call instead of continuing this one."""
        return bool(name and self.name) and (name != self.name or not self.arguments.is_empty)

    @property
    def is_whole(self) -> bool:
        """Whether there is nothing more to say of this call."""
        return bool(self.name) and self.arguments.is_whole

    def finished(self, number: int) -> ToolUse:
        """Return the whole call. `number`, its place in the answer, becomes the id where the server
        gave none. Raises ProviderError.
        """
        if not self.name:
            _bad("a tool call without a name")
        arguments = self.arguments.parsed()
        return tool_call(
            self.id or f"call_{number}",
            self.name,
            arguments,
            any_id=True,
            too_large=self.arguments.is_too_large,
        )


def _content(content: object) -> tuple[str, str]:
    """Return the words and the thinking of a delta's content: a text, or a list of parts."""
    if not isinstance(content, list):
        return _str(content), ""
    words = "".join(_str(part["text"]) for part in content if part["type"] == "text")
    thoughts = (part["thinking"] for part in content if part["type"] == "thinking")
    return words, "".join(_content(thought)[0] for thought in thoughts)


class _Unsaid:
    """What comes with an answer beside its words, for the service alone: its reasoning, and keys of
    its own at tool calls, such as a signature. Some services refuse a conversation in which calls
    have lost theirs, so it is kept with calls and goes back to the service that sent it.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._texts: dict[str, list[str]] = {}
        self._details: list[object] = []

    @property
    def is_begun(self) -> bool:
        """Whether there was any reasoning."""
        return bool(self._texts or self._details)

    def feed(self, delta: Json, written: WrittenAnswer) -> None:
        """Take the reasoning of one delta; details are counted in `written`."""
        key = next((key for key in _THOUGHTS if isinstance(delta.get(key), str)), "")
        if key:
            self._texts.setdefault(key, []).append(delta[key])
        if isinstance(details := delta.get(_DETAILS), list) and details:
            written.add(json.dumps(details))
            self._details += details

    def blocks(self, extras: list[Json]) -> tuple[OpaqueBlock, ...]:
        """Return the block to keep before calls with these keys of their own, none if there is
        nothing to keep, or nothing that could be sent.
        """
        texts = {key: "".join(pieces) for key, pieces in self._texts.items()}
        message: Json = {_DETAILS: self._details} if self._details else texts
        raw = {"service": self._service, "message": message, "calls": extras}
        is_kept = any(message.values()) or any(extras)
        return (OpaqueBlock(PROVIDER, raw),) if is_kept and strict.is_unicode(raw) else ()


def error_in(body: Json) -> object:
    """Return the error object in a server's JSON object, None if there is none. Some servers put
    its keys at the top level.
    """
    return body.get("error") or (body if body.get("object") == "error" else None)


def error_of(error: object, where: str) -> ProviderError:
    """Return the error for an error object inside a stream; an HTTP status in its `code` decides
    instead of the 200.
    """
    return reported_fault(error_word(error), error, where, status=status_in(error, 200))


def status_in(error: object, otherwise: int) -> int:
    """Return the HTTP status that an error object has as its `code`, or `otherwise`."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else otherwise


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


def error_word(error: object) -> str:
    """Return the service's own word for an error, from its `code`, its `type` and the `reason` of
    its details: the first that `faults` knows, else the first there is.
    """
    if not isinstance(error, dict):
        return ""
    details = error.get("details")
    places = [(error, "code"), (error, "type")]
    places += (
        [(d, "reason") for d in details if isinstance(d, dict)] if isinstance(details, list) else []
    )
    words = [w for place, key in places if isinstance(w := place.get(key), str)]
    return next((w for w in words if is_known(w)), words[0] if words else "")


def _usage(raw: Json | None) -> Usage | None:
    if not raw:
        return None
    read = token_count((raw.get("prompt_tokens_details") or {}).get("cached_tokens"))
    return Usage(
        input_tokens=max(token_count(raw.get("prompt_tokens")) - read, 0),
        output_tokens=token_count(raw.get("completion_tokens")),
        cache_read_tokens=read,
    )


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _bad(what: str) -> NoReturn:
    raise failure("bad_stream", what)
