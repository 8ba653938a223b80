"""What takes part in a turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from agentd.domain.compaction import Answer, CompactionPlan, Question
from agentd.domain.event import TurnEvent
from agentd.domain.prompt import ToolSpec
from agentd.domain.tool import Approval, Decision, FileIntent, Intent, ToolCall, ToolOutput
from agentd.domain.turn import SessionKey, TurnRequest
from agentd.domain.workspace import ContextBlock


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


class ToolShelf(Protocol):
    """Tools that come and go while the daemon runs."""

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

    async def intend(self, intent: FileIntent | None = None) -> None:
        """Make durable what is about to happen. No effect before this returns."""


class Approver(Protocol):
    """Who asks the user."""

    async def ask(self, session: SessionKey, call_id: str, approval: Approval) -> Decision:
        """The user's answer; UNASKED when nobody can be asked in time."""


class EventSink(Protocol):
    """Who watches a turn."""

    def emit(self, event: TurnEvent) -> None:
        """Take the event. Never blocks, never raises."""


class Audience(EventSink, Protocol):
    """Those whom a turn is shown."""

    async def wait_room(self, session: SessionKey) -> None:
        """Return when they have taken most of what they were shown of the session, or are given up."""


class ContextSource(Protocol):
    """What adds text to a turn's prompt."""

    async def blocks(self, request: TurnRequest) -> tuple[ContextBlock, ...]:
        """The blocks for this turn; none is fine. Must not raise for a file that cannot be read."""


class CompactionHook(Protocol):
    """What wants to act before rows leave the context."""

    @property
    def name(self) -> str:
        """For the log."""

    async def before_compaction(
        self, plan: CompactionPlan, ask: Callable[[Question], Awaitable[Answer]]
    ) -> None:
        """Act. Raising loses only this hook's work; the manager limits its time."""
