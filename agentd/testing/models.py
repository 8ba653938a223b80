"""Doubles of the model, the embedder, the event sink and the approver."""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from agentd.core.errors import EmbedderFault
from agentd.core.event import TurnEvent
from agentd.core.message import Message, ToolUse, assistant, encode_blocks
from agentd.core.prompt import AnswerCompleted, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.core.tool import (
    Approval,
    Decision,
)
from agentd.core.turn import (
    SessionKey,
    Usage,
)


def check_messages(messages: Iterable[Message]) -> None:
    """Raise AssertionError if the Messages API would refuse these messages.

    Messages without blocks, and blocks of other providers, are left out as a provider does.
    """
    check_api_messages(
        [{"role": str(m.role), "content": encode_blocks(m.blocks)} for m in messages if m.blocks]
    )


def check_api_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    """Raise AssertionError if the Messages API would refuse this array; it says where and why.

    Adjacent messages of one role count as one message, as in the API.
    """
    turns = _api_turns(messages)
    assert turns, "no messages"
    assert turns[0][0] == "user", "the first message is not the user's"
    seen: set[str] = set()
    asked: list[str] = []
    for number, (role, blocks) in enumerate(turns):
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        assert not results or role == "user", f"message {number}: a tool result of the assistant"
        assert sorted(results) == sorted(asked), (
            f"message {number}: {asked} must be answered here, {results} are"
        )
        leading = [b["type"] == "tool_result" for b in blocks[: len(results)]]
        assert all(leading), f"message {number}: something stands before the tool results"
        asked = [b["id"] for b in blocks if b["type"] == "tool_use"]
        assert not asked or role == "assistant", f"message {number}: a tool call of the user"
        twice = [i for i in asked if i in seen or asked.count(i) > 1]
        assert not twice, f"message {number}: the ids {twice} are used again"
        seen.update(asked)
    assert not asked, f"the last message asks for {asked} and nothing answers"


def _api_turns(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    turns: list[tuple[str, list[Mapping[str, Any]]]] = []
    for number, message in enumerate(messages):
        role, content = message["role"], message["content"]
        assert role in ("user", "assistant"), f"message {number}: {role!r} is no role"
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [*content]
        assert blocks, f"message {number} is empty"
        for block in blocks:
            blank = block["type"] == "text" and not block["text"].strip()
            assert not blank, f"message {number}: a text without a visible character"
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    return turns


Reply = str | Message | Exception | Callable[[Prompt], "Reply"]

_SMALL = Usage(input_tokens=10, output_tokens=5)


class ScriptedProvider:
    """A provider that plays scripted replies in order, and records every prompt.

    A reply is a text, a Message (tool calls stop with TOOL_USE), an exception to raise, or a
    function of the prompt that returns one of these. After the last reply `default` answers. A
    prompt that the Messages API would refuse raises AssertionError.
    """

    def __init__(
        self,
        *replies: Reply,
        default: Reply = "ok",
        usage: Callable[[Prompt, Message], Usage] | Usage = _SMALL,
        name: str = "scripted",
        model: str = "scripted-1",
    ) -> None:
        self.script: list[Reply] = list(replies)
        self.default = default
        self.prompts: list[Prompt] = []
        self._usage = usage
        self._name = name
        self._model = model

    @property
    def name(self) -> str:
        return self._name

    @property
    def model(self) -> str:
        return self._model

    def say(self, *replies: Reply) -> None:
        """Add replies to the script."""
        self.script.extend(replies)

    async def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        check_messages(prompt.messages)
        self.prompts.append(prompt)
        reply = self.script.pop(0) if self.script else self.default
        while callable(reply):
            reply = reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        message = assistant(reply) if isinstance(reply, str) else reply
        for word in message.text.split(" ") if message.text else []:
            await asyncio.sleep(0)
            yield TextDelta(word if message.text.startswith(word) else f" {word}")
        usage = self._usage(prompt, message) if callable(self._usage) else self._usage
        stop = ModelStop.TOOL_USE if message.tool_uses else ModelStop.END_TURN
        yield AnswerCompleted(message, stop, usage, self._model, self._name)


def call(name: str, call_id: str = "call_1", text: str = "", **arguments: object) -> Message:
    """Return an assistant message that calls one tool."""
    return assistant(text, ToolUse(call_id, name, arguments))


class RecordingSink:
    """An event sink that records all events."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    def emit(self, event: TurnEvent) -> None:
        self.events.append(event)

    async def wait_room(self, session: SessionKey) -> None:
        pass

    def of(self, *types: type) -> list[TurnEvent]:
        """Return the events of these types."""
        return [e for e in self.events if isinstance(e, types)]


class Answers:
    """An approver that answers from a list, then with `default`, and records the questions."""

    def __init__(self, *answers: Decision, default: Decision = Decision.ALWAYS) -> None:
        self._answers: Iterable[Decision] = iter(answers)
        self._default = default
        self.questions: list[Approval] = []

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        self.questions.append(approval)
        return next(iter(self._answers), self._default)


class MemoryServiceRecord:
    """A ServiceRecord in memory."""

    def __init__(self, *, worked: bool = False) -> None:
        self.worked = worked

    async def has_answered(self) -> bool:
        return self.worked

    async def record_answer(self) -> None:
        self.worked = True


class HashEmbedder:
    """An embedder without a model: texts with common words have similar vectors. Vectors are the
    same on every machine and in every run.

    `broken` makes every call raise EmbedderFault. `texts` has all embedded texts in order.
    """

    def __init__(self, dimension: int = 64, *, broken: bool = False) -> None:
        self._dimension = dimension
        self.broken = broken
        self.texts: list[str] = []

    @property
    def model(self) -> str:
        return f"hash-{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Sequence[bytes]:
        if self.broken:
            raise EmbedderFault("The embedder is broken.", cure="Mend it.")
        self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> bytes:
        numbers = [0.0] * self._dimension
        for word in re.findall(r"\w+", text.lower()):
            digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
            sign = 1 if digest[8] & 1 else -1
            numbers[int.from_bytes(digest[:8], "big") % self._dimension] += sign
        length = math.hypot(*numbers) or 1.0
        return struct.pack(f"<{self._dimension}f", *(number / length for number in numbers))
