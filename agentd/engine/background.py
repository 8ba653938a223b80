"""Questions that nobody sees: a background turn, a silent one beside a turn, a single completion."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from agentd.core.beat import Empty, Verdict, judge
from agentd.core.compaction import Answer, Question
from agentd.core.durations import format_duration
from agentd.core.errors import AgentdError, ProviderError, ShuttingDown
from agentd.core.event import TurnEvent
from agentd.core.message import user
from agentd.core.ports import Clock, Inbox, Ledger, Provider, TurnAudience
from agentd.core.prompt import Answered, Effect, Prompt, closing
from agentd.core.redaction import Redactor
from agentd.core.turn import (
    Failure,
    Origin,
    Receipt,
    SessionKey,
    StopReason,
    Turn,
    TurnRequest,
    Usage,
)
from agentd.engine.context import ContextBuilder
from agentd.engine.durable import when_space
from agentd.engine.loop import Loop, Progress, failure_of
from agentd.engine.queue import marked
from agentd.engine.toolbox import Toolbox

# A silent turn with a deadline, and what its reply comes to.

log = structlog.get_logger()

# What a turn without the user may do: look things up, keep a dated note, tell the owner. Fewer tools,
# fewer tokens.
TOOLS = frozenset({"memory_read", "memory_search", "memory_write", "notify"})


class BackgroundTicket(Protocol):
    """A submitted turn."""

    async def wait(self) -> Turn:
        """The turn when it has ended, well or not."""


class Door(Protocol):
    """The engine's door."""

    async def submit(self, request: TurnRequest, sink: TurnAudience) -> BackgroundTicket:
        """Queue a turn. Raises AgentdError when it is not taken."""

    def is_busy(self, session: SessionKey) -> bool:
        """Whether anything of the session runs or waits."""

    def cancel(self, session: SessionKey, origin: Origin) -> bool:
        """Have the session's running turn of that origin end soon; False if there is none."""


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no reply. `is_cut` says that somebody ended it, not a fault."""

    text: str = ""
    is_cut: bool = False


def compose(prompt: str, title: str, matter: str, now: datetime, zone: ZoneInfo) -> str:
    """The whole user message. The time stands last: what is before it stays the same from turn to
    turn, which a provider's cache may use.
    """
    local = now.astimezone(zone)
    parts = [prompt.strip()]
    if matter:
        parts.append(f"## {title}\n\n{matter}")
    parts.append(f"Current time: {local:%Y-%m-%d %H:%M} ({local:%A}, {zone.key})")
    return "\n\n".join(parts)


async def run_errand(
    door: Door, request: TurnRequest, sink: TurnAudience, limit: timedelta, ack_max_chars: int
) -> Verdict | Failed:
    """The verdict on the reply to a silent request, or why there is none; one that takes longer than
    `limit` is cancelled. Never raises for what a turn can do wrong.
    """
    try:
        async with asyncio.timeout(limit.total_seconds()):
            ticket = await door.submit(request, sink)
            turn = await ticket.wait()
    except TimeoutError:
        log.warning("errand_timed_out", origin=request.origin, errand=request.message_id)
        door.cancel(request.session, request.origin)
        return Failed(f"no answer within {format_duration(limit)}")
    except ShuttingDown as error:
        return Failed(error.message, is_cut=True)
    except AgentdError as error:
        log.warning("errand_refused", origin=request.origin, error=error.code)
        return Failed(error.message)
    if turn.failure is not None:
        return Failed(turn.failure.message)
    if turn.stop_reason is StopReason.CANCELLED:
        return Failed(is_cut=True)
    told = any(call.name == "notify" and not call.is_error for call in turn.tool_calls)
    verdict = judge(turn.text, ack_max_chars, notified=told)
    return verdict if isinstance(verdict, Empty) else replace(verdict, tainted=turn.tainted)


# Silent questions: how a compaction hook talks to the model.
#
# A question runs through the same loop as any turn, but over the rows it is given, with only the
# tools it names, and into a sink that keeps nothing. It takes no place in the queue, so it cannot wait for itself.

_GIVEN_UP = Failure("given_up", "The question was not answered in time.")


class Silence:
    """A sink for turns that nobody watches."""

    def emit(self, event: TurnEvent) -> None:
        """Let it go."""

    async def wait_room(self, session: SessionKey) -> None:
        """There is always room."""


class SilentTurns:
    """Asks hooks' questions."""

    def __init__(
        self,
        store: Inbox,
        loop: Loop,
        builder: ContextBuilder,
        toolbox: Toolbox,
        clock: Clock,
    ) -> None:
        self._store = store
        self._loop = loop
        self._builder = builder
        self._toolbox = toolbox
        self._clock = clock

    async def ask(self, session: SessionKey, question: Question) -> Answer:
        """The model's answer to a question about the session.

        A question that a crash or an outage cut goes on where it was, and one whose answer is stored is not asked
        again: `question.key` decides. Raises ProviderError, ShuttingDown.
        """
        request = TurnRequest(
            session, question.text, question.key, origin=Origin.FLUSH, tools=question.tools
        )
        receipt = await when_space(self._clock, lambda: self._store.receive(request))
        if receipt.ended is not None:
            return self._answer(receipt.ended)
        with marked(request, receipt):
            return await self._run(question, request, receipt)

    async def _run(self, question: Question, request: TurnRequest, receipt: Receipt) -> Answer:
        context = await self._builder.for_question(question, request)
        progress = Progress(receipt, context, Silence())
        try:
            turn = await self._loop.run(progress)
        except ProviderError as error:
            if error.away:  # asked again, it goes on
                await when_space(self._clock, lambda: self._store.park(receipt.turn_id))
            else:
                await self._loop.failed(progress, failure_of(error))
            raise
        except asyncio.CancelledError:
            # Given up by who asked: it must not go on after a restart. A stop puts it aside instead.
            if not self._loop.draining:
                await asyncio.shield(self._loop.failed(progress, _GIVEN_UP))
            raise
        return self._answer(turn)

    def _answer(self, turn: Turn) -> Answer:
        if turn.failure is not None:
            raise ProviderError(turn.failure.message, kind="unknown")
        writes = sum(
            1
            for made in turn.tool_calls
            if not made.is_error
            and (spec := self._toolbox.spec(made.name)) is not None
            and spec.effect is Effect.FILE
        )
        return Answer(turn.text, writes, turn.usage)


# Questions to the model beside a conversation: one call, without tools, charged under its origin.


@dataclass(slots=True)
class SideCall:
    """Asks the model and pays for it. `cheap_model` is what the service has for less, "" where that is
    not known. No call begins once `draining` is set. Answers are kept by who asks: they have no keys.
    """

    provider: Provider
    ledger: Ledger
    clock: Clock
    price: Callable[[str, Usage], float]
    cheap_model: str = ""
    draining: bool = False
    redactor: Redactor = field(default_factory=Redactor)

    async def ask(
        self,
        session: SessionKey,
        origin: Origin,
        system: str,
        text: str,
        model: str = "",
        *,
        max_tokens: int | None = None,
    ) -> str:
        """What `model` answers, trimmed; "" asks the chat's. It may have been cut at `max_tokens`.

        Raises ProviderError (a limit of the budget is its kind `budget`), ShuttingDown,
        StorageError when the charge could not be stored.
        """
        prompt = Prompt(
            system=(system,),
            messages=(user(text),),
            model=model or None,
            max_tokens=max_tokens,
            origin=origin,
        )
        answer = await self._answer(prompt)
        cost = self.price(answer.model, answer.usage)
        await when_space(
            self.clock,
            lambda: self.ledger.charge(
                session,
                origin,
                answer.model,
                answer.usage,
                cost,
                reservation=answer.reservation,
            ),
        )
        return self.redactor.kept(answer.message.text).text.strip()

    async def _answer(self, prompt: Prompt) -> Answered:
        if self.draining:
            raise ShuttingDown
        async with closing(self.provider.stream(prompt)) as events:
            async for event in events:
                if isinstance(event, Answered):
                    return event
        raise ProviderError("The answer was cut off.", kind="stream_cut", retryable=True)
