"""The engine as the server needs it."""

from __future__ import annotations

from typing import Protocol

from agentd.commands.sessions import WorkingSessions
from agentd.domain.turn import Receipt, SessionKey, Turn, TurnRequest


class Ticket(Protocol):
    """A turn that has been accepted."""

    @property
    def receipt(self) -> Receipt:
        """Proof that the request is durable."""

    async def wait(self) -> Turn:
        """How it ended; `failure` is set when it failed. Cancelling this does not end the turn."""


class Turns(WorkingSessions, Protocol):
    """The one door to the engine."""

    async def submit(self, request: TurnRequest) -> Ticket:
        """Raises QueueFull, ShuttingDown, StorageFull, InvalidRequest."""

    def cancel(self, session: SessionKey, *, message_id: str = "") -> bool:
        """End the running turn, or that of a message; False if there is none."""
