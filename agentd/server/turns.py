"""The engine as the server needs it."""

from __future__ import annotations

from typing import Any, Protocol

from agentd.domain.compaction import RoomReport
from agentd.domain.turn import Receipt, SessionKey, Turn, TurnRequest


class Ticket(Protocol):
    """A turn that has been accepted."""

    @property
    def receipt(self) -> Receipt:
        """Proof that the request is durable."""

    async def wait(self) -> Turn:
        """How it ended; `failure` is set when it failed. Cancelling this does not end the turn."""


class Turns(Protocol):
    """The one door to the engine."""

    async def submit(self, request: TurnRequest) -> Ticket:
        """Raises QueueFull, ShuttingDown, StorageFull, InvalidRequest."""

    def cancel(self, session: SessionKey, *, message_id: str = "") -> bool:
        """End the running turn, or that of a message; False if there is none."""

    def is_busy(self, session: SessionKey) -> bool:
        """Whether a turn runs."""

    def is_waiting(self, session: SessionKey) -> bool:
        """Whether messages wait for the model's service."""

    def queued(self, session: SessionKey) -> int:
        """How many turns wait."""

    async def compact(self, session: SessionKey, wish: str = "") -> RoomReport:
        """Make room now; `wish` is what the user wants of the summary."""

    async def flush(self, session: SessionKey) -> RoomReport:
        """Save to memory what no flush has saved."""

    async def explain(self, session: SessionKey) -> dict[str, Any]:
        """The inputs of the next decision about flush and compaction."""

    async def start_over(self, session: SessionKey) -> RoomReport:
        """Flush and begin an empty context."""
