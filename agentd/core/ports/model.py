"""A language model, what guards it and what it costs; and what takes part in a turn with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from agentd.core.compaction import Answer, CompactionPlan, Question
from agentd.core.event import TurnEvent
from agentd.core.form import FormAnswer, InputForm
from agentd.core.money import Cap, Charge
from agentd.core.prompt import ContextBlock, Prompt, ProviderEvent, ToolSpec
from agentd.core.tool import Approval, Decision, FileIntent, Intent, ToolCall, ToolOutput
from agentd.core.turn import Origin, SessionKey, TurnRequest, Usage


class Provider(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The kind: `anthropic`, `offline` … What `Answered.provider` carries."""

    @property
    def model(self) -> str:
        """The model used when a prompt names none."""

    def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        """Events of one answer, `Answered` last.

        Raises ProviderError, ContextOverflow; a stream without `Answered` has always raised.
        Closing the iterator ends the call.
        """


class Breaker(Protocol):
    """The provider's circuit breaker, as others see it."""

    def is_open(self) -> bool:
        """Whether calls are refused at the moment."""


class ServiceRecord(Protocol):
    """Whether the model's service, as it is configured now, has ever answered."""

    async def has_answered(self) -> bool:
        """Whether it has. Raises StorageError."""

    async def answered(self) -> None:
        """It has: durable when this returns, and quick when it was known. Raises StorageError."""


class Ledger(Protocol):
    """What model calls have cost. Those of the built-in provider are kept, and count nowhere."""

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        """Set aside the most that a call can use, before it is made; returns the reservation.

        What a crash leaves reserved stays spent. Raises BudgetReached, with nothing set aside, if a
        cap would be passed.
        """

    async def charge(
        self,
        session: SessionKey,
        origin: Origin,
        model: str,
        usage: Usage,
        cost_usd: float,
        *,
        reservation: int | None = None,
    ) -> None:
        """Record one model call, in place of what was reserved for it."""

    async def spent(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        """Total tokens and US dollars since then, of one origin or of all; reservations count."""

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        """Tokens and US dollars since then by session and origin, the dearest first."""

    async def entries(self) -> tuple[Charge, ...]:
        """Every call, the oldest first."""

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        """Tokens read from a cache since then, and all tokens read by models that have one: not by
        those that make vectors.
        """


class Tool(Protocol):
    """Something the model may call."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""

    async def run(self, call: ToolCall, gate: Gate) -> ToolOutput:
        """Do it. The input has passed the schema. A tool whose effect is FILE calls `gate.intend`
        with the path's lock held; for EXTERNAL and IDEMPOTENT ones the engine has done so before.

        Raises ToolFailed, WorkspaceError: told to the model as an error result.
        """

    async def settle(self, intent: Intent) -> ToolOutput:
        """Finish a FILE call that a crash cut after its intent, or say that it conflicts."""


class ToolSource(Protocol):
    """Tools that not every turn has, or that come and go while the daemon runs."""

    def specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """What the model of this turn is told of them."""

    def find(self, call: ToolCall, request: TurnRequest) -> tuple[Tool, ToolCall] | None:
        """The tool that a call means, and the call as that tool is to see it; None if it means none of
        these. Raises ToolFailed for an input that does not fit.
        """


class Gate(Protocol):
    """What a running tool may ask of the engine."""

    async def approve(self, approval: Approval) -> bool:
        """Whether the user says yes to exactly this. Raises ToolFailed when nobody can be asked."""

    def tell(self, text: str) -> None:
        """Show those who watch how far it is."""

    def paused(self) -> AbstractContextManager[None]:
        """A block whose time is not the tool's: the user is thinking."""

    async def intend(self, intent: FileIntent | None = None) -> None:
        """Make durable what is about to happen. No effect before this returns."""


class Approver(Protocol):
    """Who asks the user."""

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """The user's answer; UNASKED when nobody can be asked in time."""


class FormAsker(Protocol):
    """Who has the user fill in forms."""

    async def fill(self, session: SessionKey, form: InputForm) -> FormAnswer:
        """What he says; UNASKED at once where no client of his in that session shows forms."""


class EventSink(Protocol):
    """Who watches a turn."""

    def emit(self, event: TurnEvent) -> None:
        """Take the event. Never blocks, never raises."""


class TurnAudience(EventSink, Protocol):
    """Those whom a turn is shown."""

    async def wait_room(self, session: SessionKey) -> None:
        """Return when they have taken most of what they were shown of the session, or are given up."""


class ContextSource(Protocol):
    """What adds text to a turn's prompt."""

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """The blocks for this turn; none is fine. Must not raise for a file that cannot be read: what raises
        is left out of the prompt as a whole, and `status` says so.
        """


class CompactionHook(Protocol):
    """What wants to act before rows leave the context."""

    @property
    def name(self) -> str:
        """For the log."""

    async def before_compaction(
        self, plan: CompactionPlan, ask: Callable[[Question], Awaitable[Answer]]
    ) -> None:
        """Act. Raising loses only this hook's work; the manager limits its time."""
