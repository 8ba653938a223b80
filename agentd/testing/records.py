"""What the store of sessions in memory keeps."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from agentd.domain.tool import (
    Intent,
    ToolOutput,
)
from agentd.domain.transcript import Coverage, History, Row, SessionInfo
from agentd.domain.turn import (
    Origin,
    Receipt,
    Turn,
    TurnRequest,
    TurnState,
)


@dataclass
class StoredSession:
    """A session as the double keeps it."""

    info: SessionInfo
    history: History  # everything but the rows
    rows: list[Row] = field(default_factory=list)
    coverages: list[Coverage] = field(default_factory=list)


@dataclass
class StoredTurn:
    """A turn as the double keeps it."""

    id: int
    request: TurnRequest
    at: datetime
    state: TurnState = TurnState.RECEIVED
    attempts: int = 0
    rows: list[Row] = field(default_factory=list)
    ended: Turn | None = None
    intents: dict[str, Intent] = field(default_factory=dict)
    outputs: dict[str, ToolOutput] = field(default_factory=dict)
    redacted: int = 0

    def receipt(self, *, is_new: bool) -> Receipt:
        request = self.request
        return Receipt(
            self.id,
            request.session,
            request.message_id,
            self.id,
            is_new,
            self.ended,
            self.redacted,
            at=None if self.ended else self.at,
        )

    @property
    def is_silent(self) -> bool:
        return self.request.origin is not Origin.USER
