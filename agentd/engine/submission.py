"""A turn that was submitted, on its way to the end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from agentd.domain.turn import Failure, Receipt, Turn, TurnRequest
from agentd.engine.interrupt import Interrupt
from agentd.errors import AgentdError
from agentd.ports import EventSink

T = TypeVar("T")

INTERNAL = Failure("internal", "Something went wrong inside agentd.", "Look at `agentd logs`.")
TAKES_NO_MORE = "agentd is stopping and takes no new messages."


@dataclass(slots=True)
class Job:
    """A submitted turn on its way to the end."""

    request: TurnRequest
    receipt: Receipt
    sink: EventSink
    ended: asyncio.Future[Turn]
    interrupt: Interrupt = field(default_factory=Interrupt)


def reject(ended: asyncio.Future[T], error: AgentdError) -> None:
    """Let whoever waits for it know that it will not come, unless it has."""
    if not ended.done():
        ended.set_exception(error)
        ended.exception()  # seen: nobody has to wait for it
