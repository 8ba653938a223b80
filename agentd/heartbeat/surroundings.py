"""What the heartbeat reaches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from agentd.domain.turn import Origin, SessionKey, Turn, TurnRequest
from agentd.domain.workspace import FileView
from agentd.ports import Breaker, Clock, EventSink, JobStore, Ledger


class Ticket(Protocol):
    """A submitted turn."""

    async def wait(self) -> Turn:
        """The turn when it has ended, well or not."""


class Turns(Protocol):
    """The engine's door."""

    async def submit(self, request: TurnRequest, sink: EventSink) -> Ticket:
        """Queue a turn. Raises AgentdError when it is not taken."""

    def is_busy(self, session: SessionKey) -> bool:
        """Whether the session's lane is taken."""

    def cancel(self, session: SessionKey, origin: Origin) -> bool:
        """Have the session's running turn of that origin end soon; False if there is none."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The parts of the daemon that a beat uses. `read` gives HEARTBEAT.md as the owner sees it and
    raises like Workspace.read; `last_heard` when the owner last wrote; `wake` tells the alerts' dispatcher that the outbox has grown.
    """

    clock: Clock
    jobs: JobStore
    ledger: Ledger
    turns: Turns
    breaker: Breaker
    read: Callable[[], Awaitable[FileView]]
    over_budget: Callable[[], Awaitable[bool]]
    last_heard: Callable[[], Awaitable[tuple[datetime, str] | None]]
    wake: Callable[[], None]
