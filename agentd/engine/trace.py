"""What every log line of a turn carries, so that the log can be read turn by turn."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from structlog.contextvars import bound_contextvars

from agentd.core.turn import Receipt, Turn, TurnRequest


def marked(request: TurnRequest, receipt: Receipt) -> AbstractContextManager[None]:
    """Mark what is logged during the block, by this task and those it starts, with session, turn
    and origin.
    """
    return bound_contextvars(
        session=str(request.session), turn=receipt.turn_id, origin=str(request.origin)
    )


def outcome(turn: Turn) -> dict[str, Any]:
    """What the log says about a turn that has ended."""
    return {
        "outcome": str(turn.stop_reason or "failed"),
        "tools": len(turn.tool_calls),
        "tokens": turn.usage.total_tokens,
    }
