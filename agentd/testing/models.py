"""A model that says what a test told it, and those who watch and approve."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable

from agentd.domain.event import TurnEvent
from agentd.domain.message import Message, ToolUse, assistant
from agentd.domain.prompt import Answered, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.domain.tool import (
    Approval,
    Decision,
)
from agentd.domain.turn import (
    SessionKey,
    Usage,
)
from agentd.testing.messages import check_messages

Reply = str | Message | Exception | Callable[[Prompt], "Reply"]

_SMALL = Usage(input_tokens=10, output_tokens=5)


class ScriptedProvider:
    """A provider that says what it was told to, in order, and remembers every prompt.

    A reply is text, a Message (tool calls stop with TOOL_USE), an exception to raise, or a function
    of the prompt that returns one of these. When the script is used up `default` answers. A prompt
    that the Messages API would refuse is an AssertionError.
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
        """Add to the script."""
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
        yield Answered(message, stop, usage, self._model, self._name)


def call(name: str, call_id: str = "call_1", text: str = "", **arguments: object) -> Message:
    """An assistant message that calls one tool."""
    return assistant(text, ToolUse(call_id, name, arguments))


class RecordingSink:
    """An event sink that keeps what it was given."""

    def __init__(self) -> None:
        self.events: list[TurnEvent] = []

    def emit(self, event: TurnEvent) -> None:
        self.events.append(event)

    async def wait_room(self, session: SessionKey) -> None:
        pass

    def of(self, *types: type) -> list[TurnEvent]:
        """The events of these types."""
        return [e for e in self.events if isinstance(e, types)]


class Answers:
    """An approver that answers from a list, then with `default`, and keeps the questions."""

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

    async def answered(self) -> None:
        self.worked = True
