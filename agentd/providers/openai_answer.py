"""Answers of chat completions: streams as messages, and errors that come in their place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum, auto
from typing import NoReturn

from agentd.core import strict
from agentd.core.errors import ProviderError
from agentd.core.message import Block, Message, OpaqueBlock, Role, Text, ToolUse
from agentd.core.prompt import (
    AnswerCompleted,
    ModelStop,
    StreamRestarted,
    TextDelta,
    ThoughtDelta,
)
from agentd.core.strict import as_unicode
from agentd.core.turn import Usage
from agentd.providers.faults import failure, is_known, reported_fault
from agentd.providers.openai_wire import PROVIDER, THOUGHTS, Json
from agentd.providers.received import (
    Arguments,
    TextStream,
    WrittenAnswer,
    model_name,
    token_count,
    tool_call,
)

_OPEN, _CLOSE = "<think>", "</think>"
_CLOSING_LINE = f"\n{_CLOSE}"
_IN_TEXT = "thinking_in_text"


class ThinkTags:
    """Separates thinking from text while a model streams both as text. Only a `<think>…</think>` at
    the beginning is thinking; later tags are ordinary text.

    Where the server has put the opening tag into the prompt, only a line that begins with the
    closing one tells that all words before it were thinking: they are taken back. With `is_inside`,
    which such an answer has set, the next one is thinking from its beginning.
    """

    def __init__(self, *, is_inside: bool = False) -> None:
        self.is_inside = is_inside  # whether answers begin inside of thinking, as far as is known
        self._place = _Place.BEGINNING
        self._held = ""
        self._assumed: list[str] = []  # thinking without any tag so far

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
        if self._place is _Place.ASSUMED and (thought := self._until(_CLOSING_LINE)):
            self._assumed.append(thought)
            found.append(ThoughtDelta(thought))
        if self._place is _Place.WORDS:
            found += self._words()
        if self._place is _Place.BEHIND:
            self._held = self._held.lstrip()
            self._place = _Place.TEXT if self._held else _Place.BEHIND
        return found + self.end() if self._place is _Place.TEXT else found

    def end(self, *, is_cut: bool = False) -> list[Shown]:
        """Return what was held back, once the stream has ended. Words that were taken for thinking
        without a tag are the answer after all, unless it `is_cut`.
        """
        held, self._held = self._held, ""
        is_thought = self._place is _Place.THINKING
        if self._place is _Place.ASSUMED:
            is_thought = self.is_inside = is_cut
            held = held if is_cut else "".join((*self._assumed, held))
        if not held:
            return []
        return [ThoughtDelta(held) if is_thought else TextDelta(held)]

    def _begin(self) -> None:
        start = self._held.lstrip()
        if start.startswith(_OPEN):
            self._place, self._held = _Place.THINKING, start.removeprefix(_OPEN)
        elif start.startswith(_CLOSE):
            self._place, self._held = _Place.BEHIND, start.removeprefix(_CLOSE)
        elif not (_OPEN.startswith(start) or _CLOSE.startswith(start)):
            self._place = _Place.ASSUMED if self.is_inside else _Place.WORDS

    def _words(self) -> list[Shown]:
        words = self._until(_CLOSING_LINE)
        found: list[Shown] = [TextDelta(words)] if words else []
        if _OPEN in words:  # tags that are written about
            rest = _CLOSING_LINE + self._held if self._place is _Place.BEHIND else self._held
            self._place, self._held = _Place.TEXT, rest
        elif self._place is _Place.BEHIND:
            self.is_inside = True
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
    ASSUMED = auto()  # thinking, if a closing tag comes
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

    def __init__(self, model: str, *, service: str = "", tags: ThinkTags | None = None) -> None:
        self.is_done = False  # the end mark has come
        self.usage: Usage | None = None
        self.written = WrittenAnswer()
        self._model = model
        self._tags = tags
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
            is_cut = _STOPS.get(self._stop) is ModelStop.MAX_TOKENS
            yield from self._record(self._tags.end(is_cut=is_cut))

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
        thought = next((t for key in THOUGHTS if (t := delta.get(key)) and isinstance(t, str)), "")
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
        key = next((key for key in THOUGHTS if isinstance(delta.get(key), str)), "")
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
