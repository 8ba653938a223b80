"""Ports of a turn: the language model, its breaker and costs, tools, questions to the user, prompt
sources.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol, runtime_checkable

from agentd.core.compaction import Answer, CompactionPlan, Question
from agentd.core.event import TurnEvent
from agentd.core.form import FormAnswer, InputForm
from agentd.core.money import Cap, Charge
from agentd.core.prompt import ContextBlock, Prompt, ProviderEvent, ToolSpec
from agentd.core.tool import Approval, Decision, FileIntent, Intent, ToolCall, ToolOutput
from agentd.core.turn import Origin, Receipt, SessionKey, Turn, TurnRequest, Usage


class Provider(Protocol):
    """A language model."""

    @property
    def name(self) -> str:
        """The kind of provider (`anthropic`, `offline` …), as in `AnswerCompleted.provider`."""

    @property
    def model(self) -> str:
        """The model that is used when a prompt names none."""

    def stream(self, prompt: Prompt) -> AsyncIterator[ProviderEvent]:
        """Stream the events of one answer, `AnswerCompleted` last.

        Raises ProviderError, ContextOverflow; a stream that ends without `AnswerCompleted` raises
        one of them. Closing the iterator ends the call.
        """


class Breaker(Protocol):
    """The state of the provider's circuit breaker."""

    def is_open(self) -> bool:
        """Whether the breaker refuses calls at the moment."""


class ServiceRecord(Protocol):
    """Remembers whether the model's service, as configured now, has ever answered."""

    async def has_answered(self) -> bool:
        """Whether the service has ever answered. Raises StorageError."""

    async def record_answer(self) -> None:
        """Record durably that the service has answered; cheap if that is known already. Raises
        StorageError.
        """


class Ledger(Protocol):
    """The cost of every model call. Calls of the built-in provider are recorded but count towards
    no sum.
    """

    async def reserve(
        self, origin: Origin, model: str, usage: Usage, cost_usd: float, caps: Sequence[Cap]
    ) -> int:
        """Reserve the most that a call can use, before the call; return the reservation's id.

        A reservation that a crash leaves behind counts as spent. Raises BudgetReached, reserving
        nothing, if the call could exceed one of `caps`.
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
        """Record one model call; it replaces its reservation."""

    async def spending(self, since: datetime, origin: Origin | None = None) -> tuple[int, float]:
        """Return total tokens and US dollars since then, of one origin or of all; reservations
        count.
        """

    async def breakdown(self, since: datetime) -> tuple[tuple[SessionKey, Origin, int, float], ...]:
        """Return tokens and US dollars since then by session and origin, the most expensive
        first.
        """

    async def entries(self) -> tuple[Charge, ...]:
        """Return every recorded call, oldest first."""

    async def cache_use(self, since: datetime) -> tuple[int, int]:
        """Return (input tokens read from a cache, all input tokens) of the calls since then. Calls
        of embedding models and of the built-in provider do not count.
        """


class Tool(Protocol):
    """A tool that the model may call."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's description for the model."""

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Run the call; its input has passed the schema. For tools of the effects EXTERNAL and
        IDEMPOTENT the engine has made the intent durable before.

        Raises ToolFailed, WorkspaceError: the model gets them as an error result.
        """


@runtime_checkable
class FileTool(Tool, Protocol):
    """A tool of the effect FILE: its `run` calls `host.intend` itself, holding the path's lock."""

    async def settle(self, intent: Intent) -> ToolOutput:
        """Finish a call that a crash interrupted after its intent, or report a conflict."""


class ToolSource(Protocol):
    """Tools that only some turns have, or that come and go while the daemon runs."""

    def specs(self, request: TurnRequest) -> tuple[ToolSpec, ...]:
        """Return the specs of this source's tools that the model of this turn is given."""

    def find(self, call: ToolCall, request: TurnRequest) -> tuple[Tool, ToolCall] | None:
        """Return the tool that the call names, and the call in the form that tool expects; None if
        it names no tool of this source. Raises ToolFailed for an input that does not fit.
        """


class ToolHost(Protocol):
    """What a running tool may ask of the engine: a yes of the user, a progress report, a durable
    intent.
    """

    async def approve(self, approval: Approval) -> bool:
        """Ask the user; return whether he approves exactly this. Raises ToolFailed when nobody can
        be asked.
        """

    def tell(self, text: str) -> None:
        """Report the tool's progress to those who watch the turn."""

    def paused(self) -> AbstractContextManager[None]:
        """Return a context manager that stops the tool's time limit, for time that is not the
        tool's own, such as a question to the user.
        """

    async def intend(self, intent: FileIntent | None = None) -> None:
        """Make the intent durable. The tool must have no effect before this returns."""


class Approver(Protocol):
    """Asks the user for approval."""

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """Return the user's decision; UNASKED when nobody can be asked in time."""


class FormAsker(Protocol):
    """Has the user fill in forms."""

    async def fill(self, session: SessionKey, form: InputForm) -> FormAnswer:
        """Return the user's answer; UNASKED at once if no client of his in that session can show
        forms.
        """


class EventSink(Protocol):
    """Receives the events of a turn."""

    def emit(self, event: TurnEvent) -> None:
        """Take the event. Never blocks, never raises."""


class TurnAudience(EventSink, Protocol):
    """The clients that a turn is shown to."""

    async def wait_room(self, session: SessionKey) -> None:
        """Return when the clients have taken most of the session's events, or have been given up
        (backpressure).
        """


class SubmittedTurn(Protocol):
    """A turn that was accepted, and by which its end can be awaited."""

    @property
    def receipt(self) -> Receipt:
        """The proof that the request is stored durably."""

    async def wait(self) -> Turn:
        """Return the turn when it has ended, successfully or not. Cancelling the caller does not
        affect it. Raises ShuttingDown, StorageError.
        """


class TurnRunner(Protocol):
    """Runs turns for those who ask for them: clients, beats and jobs."""

    async def submit(self, request: TurnRequest, sink: TurnAudience | None = None) -> SubmittedTurn:
        """Queue a turn and return it; the request is durable then. Without `sink`, those who watch
        the session see the turn. Raises QueueFull, ShuttingDown, StorageFull, InvalidRequest.
        """

    def is_busy(self, session: SessionKey) -> bool:
        """Whether a turn of the session runs or waits in the queue."""

    def cancel_message(self, session: SessionKey, message_id: str) -> bool:
        """Stop the turn of the message with that id, running or waiting; return False if there is
        no such turn.
        """


class ContextSource(Protocol):
    """Adds text to a turn's prompt."""

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """Return the blocks for this turn, or none. Must not raise because a file cannot be read: a
        source that raises is left out of the prompt as a whole, and `status` says so.
        """


class CompactionHook(Protocol):
    """Acts before rows leave the context."""

    @property
    def name(self) -> str:
        """The hook's name in the log."""

    async def before_compaction(
        self, plan: CompactionPlan, ask: Callable[[Question], Awaitable[Answer]]
    ) -> None:
        """Act on the plan; `ask` puts a question to the model in a silent turn. Raising loses only
        this hook's work; the compaction manager limits its time.
        """
