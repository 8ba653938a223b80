"""Recovers, at a start, the turns that a stop or a crash cut."""

from __future__ import annotations

import structlog

from agentd.core.ports import Inbox, Journal
from agentd.core.turn import Failure, Origin, PendingTurn, Turn
from agentd.engine.context import bare
from agentd.engine.loop import TurnLoop
from agentd.engine.progress import Progress
from agentd.engine.toolbox import Toolbox
from agentd.engine.watchers import NullSink

log = structlog.get_logger()

MAX_CRASHES = 3
GIVEN_UP = Failure(
    "crashed_repeatedly",
    f"agentd stopped {MAX_CRASHES} times while working on this message and has given it up.",
    "Send it again if it still matters; `agentd logs` may say what happened.",
)
LOST_KEY = Failure(
    "key_not_kept",
    "A restart cut this message before it was answered, and the key in it was not kept.",
    "Send the message again.",
)
CUT = Failure("interrupted", "A restart cut this silent turn.")


class Recovery:
    """Repairs the journal before anything new may happen."""

    def __init__(self, store: Inbox, journal: Journal, toolbox: Toolbox, loop: TurnLoop) -> None:
        self._store = store
        self._journal = journal
        self._toolbox = toolbox
        self._loop = loop

    async def repair(self) -> tuple[PendingTurn, ...]:
        """Settle every open tool call; return the turns that are to run again, oldest first.

        Repeating it is harmless. Silent turns of beats and jobs are ended; those of a flush stay,
        because the next flush goes on with them. A message whose keys were masked cannot run again
        as it was sent, and a turn that has crashed three times is given up: both end with a notice.
        """
        for found in await self._journal.open_calls():
            await self._toolbox.recover(found)
        again: list[PendingTurn] = []
        for pending in await self._store.pending():
            if pending.request.origin is Origin.FLUSH:
                continue
            if pending.request.is_silent:
                await self._end_silent(pending)
            elif pending.redacted:
                await self._give_up(pending, LOST_KEY)
            elif pending.attempts >= MAX_CRASHES:
                await self._give_up(pending, GIVEN_UP)
            else:
                again.append(pending)
        if again:
            log.info("turns_resumed", count=len(again))
        return tuple(again)

    async def _end_silent(self, pending: PendingTurn) -> None:
        request = pending.request
        turn = Turn(request.session, request.message_id, failure=CUT)
        await self._store.finish(pending.turn_id, turn)

    async def _give_up(self, pending: PendingTurn, why: Failure) -> None:
        request = pending.request
        log.warning(
            "turn_given_up",
            session=request.session,
            message_id=request.message_id,
            reason=why.code,
        )
        progress = Progress(pending.receipt, bare(request), NullSink())
        await self._loop.begin(progress)
        await self._loop.end_failed(progress, why)
