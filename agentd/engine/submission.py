"""A turn that was submitted, on its way to the end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from agentd.domain.event import Noticed, TurnStarted
from agentd.domain.turn import Failure, Receipt, Turn, TurnRequest
from agentd.engine.interrupt import Interrupt
from agentd.errors import AgentdError
from agentd.ports import Audience

T = TypeVar("T")

INTERNAL = Failure("internal", "Something went wrong inside agentd.", "Look at `agentd logs`.")
TAKES_NO_MORE = "agentd is stopping and takes no new messages."


@dataclass(slots=True)
class Submission:
    """A turn on its way; `ended` is its result, `sink` sees what happens in it. `waited` says that it
    waited for the model's service before a restart, `is_announced` that watchers know of it, `is_told`
    that they know that it waits.
    """

    request: TurnRequest
    receipt: Receipt
    sink: Audience
    ended: asyncio.Future[Turn]
    interrupt: Interrupt = field(default_factory=Interrupt)
    waited: bool = False
    is_announced: bool = False
    is_told: bool = False


class Ticket:
    """A submitted turn, to be waited for by as many as like."""

    def __init__(self, receipt: Receipt, turn: asyncio.Future[Turn]) -> None:
        self.receipt = receipt
        self._turn = turn

    async def wait(self) -> Turn:
        """The turn when it has ended. Raises ShuttingDown if it was put aside for the next start.

        Giving up the wait changes nothing for the turn.
        """
        return await asyncio.shield(self._turn)


def announce(request: TurnRequest, receipt: Receipt, sink: Audience) -> None:
    """Tell watchers that the message is being worked on."""
    sink.emit(TurnStarted(request.session, request.message_id, request.text, request.images))
    if receipt.redacted:
        sink.emit(Noticed(request.session, _not_kept(receipt.redacted), "redacted"))


def _not_kept(count: int) -> str:
    keys = "a key" if count == 1 else f"{count} keys"
    return (
        f"Your message holds {keys}. The model sees it in this turn; what is kept says [secret:…] instead. "
        "A key that others may have seen should be replaced."
    )


def reject(ended: asyncio.Future[T], error: AgentdError) -> None:
    """Let whoever waits for it know that it will not come, unless it has."""
    if not ended.done():
        ended.set_exception(error)
        ended.exception()  # seen: nobody has to wait for it
