"""One turn from its stored request to its stored end: make room, run, retry, fail, put aside."""

from __future__ import annotations

import asyncio

import structlog
from msgspec.structs import replace

from agentd.core.errors import ContextOverflow, ProviderError, ShuttingDown, StorageError
from agentd.core.ports import Clock, Inbox
from agentd.core.times import format_duration
from agentd.core.transcript import History
from agentd.core.turn import Failure, PromptScope, Turn
from agentd.engine.context import PromptGatherer, TurnPromptParts, bare
from agentd.engine.context_room import ContextRoom
from agentd.engine.loop import TurnLoop
from agentd.engine.outage import Outage, ServiceAway
from agentd.engine.progress import CLIP_RESULTS, Progress
from agentd.engine.queue import Interrupted, Submission
from agentd.engine.session_contexts import SessionContexts
from agentd.engine.workers import INTERNAL

log = structlog.get_logger()


class TurnExecution:
    """Runs one turn after its session's queue has let it in, from its stored request to its stored
    end.
    """

    def __init__(
        self,
        store: Inbox,
        loop: TurnLoop,
        builder: PromptGatherer,
        contexts: SessionContexts,
        context_room: ContextRoom,
        outage: Outage,
        clock: Clock,
    ) -> None:
        self._store = store
        self._loop = loop
        self._builder = builder
        self._contexts = contexts
        self._context_room = context_room
        self._outage = outage
        self._clock = clock

    async def run(self, submission: Submission) -> Turn:
        """Run the turn and return it once its end, successful or not, is stored.

        Raises ShuttingDown when the turn was put aside, and StorageError when not even its failure
        could be stored: both times it goes on at the next start. Raises ServiceAway when the turn
        was put aside because it may wait for the service.
        """
        progress: Progress | None = None
        try:
            if submission.interrupt.requested:  # while it waited for its place
                raise Interrupted
            submission.announce()
            progress = await self._prepare(submission)
            return await self._shorten_until_fits(submission, progress)
        except Interrupted:
            return await self._loop.end_cancelled(progress or await self._begin_to_end(submission))
        except (ShuttingDown, asyncio.CancelledError):
            if progress is not None:
                await self._park(submission.receipt.turn_id)
            raise
        except ProviderError as error:
            if await self._may_wait(submission, error):
                await self._park(submission.receipt.turn_id, waits=True)
                raise ServiceAway(error) from error
            log.info("turn_failed", reason=error.reason)
            failure = Failure.of(error)
            if error.away and self._is_too_late(submission):  # this was its last try
                failure = _after_waiting(submission, error)
        except StorageError as error:
            log.warning("turn_failed", reason=error.reason)
            failure = replace(Failure.of(error), cure="See `agentd status`, then send it again.")
        except Exception:
            # The boundary of a turn: whatever a part did wrong costs this turn, never the daemon.
            log.exception("turn_crashed")
            failure = INTERNAL
        return await self._loop.end_failed(
            progress or await self._begin_to_end(submission), failure
        )

    async def end_cancelled(self, submission: Submission) -> Turn:
        """End a turn that its user cancelled before it ran or while it waited; return it. Raises
        StorageError.
        """
        return await self._loop.end_cancelled(await self._begin_to_end(submission))

    async def give_up(self, submission: Submission, error: ProviderError) -> Turn:
        """End a turn because the model's service has not come back in time; return it. Raises
        StorageError.
        """
        failure = _after_waiting(submission, error)
        return await self._loop.end_failed(await self._begin_to_end(submission), failure)

    async def _may_wait(self, submission: Submission, error: ProviderError) -> bool:
        """Whether the message may wait for the service: the service is away and has worked before,
        and the message's patience has not ended.
        """
        if not error.away or submission.place is None or self._is_too_late(submission):
            return False
        return await self._outage.has_worked()

    def _is_too_late(self, submission: Submission) -> bool:
        """Whether the message has waited for as long as its patience allows."""
        return submission.place is not None and self._clock.now() >= submission.place.deadline

    async def _park(self, turn_id: int, *, waits: bool = False) -> None:
        try:
            await asyncio.shield(self._store.park(turn_id, waits=waits))
        except StorageError as error:
            log.warning("turn_not_parked", reason=error.reason)  # its attempt counts as a crash

    async def _shorten_until_fits(self, submission: Submission, progress: Progress) -> Turn:
        """Run the turn, and again each time its prompt turns out too long and can still be
        shortened: tool results are clipped once, then less and less of the context is carried. The
        context itself is cut only after a turn that was answered so.
        """
        is_shorter = False
        while True:
            try:
                turn = await self._loop.run(progress)
            except ContextOverflow:
                if progress.can_clip:
                    log.info("overflow", cure="clip tool results")
                    progress.clip = CLIP_RESULTS
                elif await self._shorten(submission, progress):
                    is_shorter = True
                else:
                    raise
            else:
                if is_shorter:
                    self._context_room.worked_shorter(submission.request.session)
                return turn

    async def _prepare(self, submission: Submission) -> Progress:
        request = submission.request
        past, context = await self._read_context(submission)
        if not request.is_silent:
            async with submission.interrupt.guard():  # the next turn makes up for a cut compaction
                may_differ = await self._context_room.make_room_before(past, context)
            if may_differ:
                past, context = await self._read_context(submission)
        if request.context is not PromptScope.LIGHT:
            part = await self._context_room.fitting(past, request)
            if part is not past:
                context = await self._builder.for_turn(request, part, submission.receipt.at)
        return Progress(
            submission.receipt,
            context,
            submission.sink,
            interrupt=submission.interrupt,
        )

    async def _shorten(self, submission: Submission, progress: Progress) -> bool:
        """Have the turn carry less of its context; return False if nothing more can be left out."""
        request, receipt = submission.request, submission.receipt
        if request.context is PromptScope.LIGHT or request.is_silent:
            return False
        past = await self._contexts.read_past(request.session, receipt.turn_id)
        carried = progress.context.past.rows
        part = await self._context_room.shorter(past, carried, receipt.turn_id)
        if part is None:
            return False
        progress.context = await self._builder.for_turn(request, part, receipt.at)
        return True

    async def _read_context(self, submission: Submission) -> tuple[History, TurnPromptParts]:
        """Return the session's history before the turn as it is stored now, and the prompt context
        over it.
        """
        request, receipt = submission.request, submission.receipt
        past = await self._contexts.read_past(request.session, receipt.turn_id)
        return past, await self._builder.for_turn(request, past, receipt.at)

    async def _begin_to_end(self, submission: Submission) -> Progress:
        """Begin an attempt, which is counted, under an empty prompt: enough to end the turn with
        its stored rows, not to run it.
        """
        progress = Progress(submission.receipt, bare(submission.request), submission.sink)
        await self._loop.begin(progress)
        return progress


def _after_waiting(submission: Submission, error: ProviderError) -> Failure:
    """Return the failure of a message for which the service has not come back in time."""
    failure = Failure.of(error)
    patience = format_duration(submission.request.patience)
    return replace(failure, message=f"{failure.message} The message has waited {patience} for it.")
