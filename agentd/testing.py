"""Doubles of every port, for agentd's tests and for those of its extensions. Never used by the daemon."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from agentd.domain.event import TurnEvent
from agentd.domain.message import Message, ToolUse, assistant
from agentd.domain.prompt import Answered, ModelStop, Prompt, ProviderEvent, TextDelta
from agentd.domain.tool import Approval
from agentd.domain.turn import SessionKey, Usage

Reply = str | Message | Exception | Callable[[Prompt], "Reply"]

_SMALL = Usage(input_tokens=10, output_tokens=5)


class FakeClock:
    """A clock that stands still until it is told to move."""

    def __init__(
        self, now: datetime = datetime(2026, 11, 21, 12, 0, tzinfo=UTC), zone: str = "UTC"
    ) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._zone = ZoneInfo(zone)
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._ids = itertools.count()

    @property
    def zone(self) -> ZoneInfo:
        return self._zone

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._ids), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """How many wait."""
        return sum(not f.done() for _, _, f in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Let time pass, waking sleepers in order at their own moments."""
        end = self._monotonic + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, woken = heapq.heappop(self._sleepers)
            self._move(max(0.0, at - self._monotonic))
            if not woken.done():
                woken.set_result(None)
            await self.settle()
        self._move(end - self._monotonic)
        await self.settle()

    def jump(self, delta: timedelta) -> None:
        """Move the wall clock alone: a suspend, an NTP step, a user with a screwdriver."""
        self._now += delta

    @staticmethod
    async def settle(rounds: int = 50) -> None:
        """Let everything that can run do so."""
        for _ in range(rounds):
            await asyncio.sleep(0)

    def _move(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)


class ScriptedProvider:
    """A provider that says what it was told to, in order, and remembers every prompt.

    A reply is text, a Message (tool calls stop with TOOL_USE), an exception to raise, or a function
    of the prompt that returns one of these. When the script is used up `default` answers.
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

    def of(self, *types: type) -> list[TurnEvent]:
        """The events of these types."""
        return [e for e in self.events if isinstance(e, types)]


class Answers:
    """An approver that answers from a list, then with `default`, and keeps the questions."""

    def __init__(self, *answers: bool, default: bool = True) -> None:
        self._answers: Iterable[bool] = iter(answers)
        self._default = default
        self.questions: list[Approval] = []

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> bool:
        self.questions.append(approval)
        return next(iter(self._answers), self._default)
