"""The only entry to turns: accepts requests, queues them by session, knows each turn until it ends.

Turns belong to the engine: whoever submits one may wait for it, watch it or leave, and it runs on.
A request is durable before its sender is told that it was accepted, and a turn that a stop or a
crash cuts goes on at the next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import structlog

from agentd.core.compaction import Trigger
from agentd.core.errors import InvalidRequest, ProviderError, ShuttingDown, StorageError
from agentd.core.event import TurnEnded
from agentd.core.failpoints import hit
from agentd.core.ports import SessionStore, TurnAudience
from agentd.core.turn import Origin, Receipt, SessionKey, Turn, TurnRequest, TurnState
from agentd.engine.context_room import ContextRoom
from agentd.engine.outage import Outage, OutagePlace, ServiceAway
from agentd.engine.progress import log_context, log_fields
from agentd.engine.queue import Interrupted, SessionQueue, Submission, Ticket
from agentd.engine.recovery import Recovery
from agentd.engine.session_contexts import SessionContexts
from agentd.engine.turn import TurnExecution
from agentd.engine.watchers import NullSink
from agentd.engine.workers import TAKES_NO_MORE, Tasks, reject

log = structlog.get_logger()

RESERVED = ("flush:", "beat:", "job:")  # message ids of silent turns
_NOT_STORED = "The turn could not be stored; it will be tried again after a restart."


class SessionTurnRunner:
    """Runs turns, one at a time in each session."""

    def __init__(
        self,
        store: SessionStore,
        execution: TurnExecution,
        contexts: SessionContexts,
        context_room: ContextRoom,
        recovery: Recovery,
        queue: SessionQueue,
        events: TurnAudience,
        *,
        outage: Outage,
        tasks: Tasks,
    ) -> None:
        self._store = store
        self._execution = execution
        self._contexts = contexts
        self._context_room = context_room
        self._recovery = recovery
        self._queue = queue
        self._events = events
        self._outage = outage
        self._tasks = tasks
        self._submitted: dict[tuple[SessionKey, str], Submission] = {}
        self._running: dict[tuple[SessionKey, Origin], Submission] = {}
        self._started = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Repair the journal, then accept turns during the block. No turn runs before `start`;
        turns that a stop or a crash cut come first.
        """
        cut = await self._recovery.repair()
        async with self._tasks.open():
            for pending in cut:
                has_waited = pending.state is TurnState.WAITING
                self._enqueue(pending.request, pending.receipt, self._events, has_waited=has_waited)
            try:
                yield
            finally:
                await self.drain(0)

    async def start(self) -> None:
        """Let accepted turns run, and begin, in the background, the flushes that were due at the
        last stop.
        """
        self._started.set()
        for session in self._context_room.restore(await self._store.sessions()):
            if self._tasks.is_open:
                self._tasks.spawn(self._context_room.ahead(session, Trigger.RESTART))

    async def submit(self, request: TurnRequest, sink: TurnAudience | None = None) -> Ticket:
        """Accept a request; when this returns, the request is durable.

        A known message id returns a ticket for its turn, running or ended. Without `sink`, the
        events of a silent turn are dropped and those of others go to everybody who watches the
        session. Raises ShuttingDown, QueueFull, StorageFull, InvalidRequest; then the request was
        not accepted.
        """
        if not self._tasks.is_open:
            raise ShuttingDown(TAKES_NO_MORE, cure="Send it again when agentd is back.")
        if not request.is_silent and request.message_id.startswith(RESERVED):
            raise InvalidRequest(
                f"message ids must not begin with {' or '.join(RESERVED)}", cure="Use another id."
            )
        key = (request.session, request.message_id)
        if key in self._submitted:
            return Ticket(self._submitted[key].receipt, self._submitted[key].ended)
        # This place is for the time of storing. The turn takes one of its own before it is given
        # back, with no pause in between, so that the session is never idle nor counted twice.
        if request.is_silent:
            self._queue.enter(request.session)
        else:
            self._queue.reserve(request.session)
        try:
            receipt = await self._store.receive(request)
            hit("turn.received")
            submission = self._submitted.get(key)
            if submission is None and receipt.ended is None:
                default = NullSink() if request.is_silent else self._events
                submission = self._enqueue(request, receipt, sink or default)
        finally:
            self._queue.release(request.session)
        if submission is not None:
            return Ticket(receipt, submission.ended)
        ended: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        if receipt.ended is not None:
            ended.set_result(receipt.ended)
        return Ticket(receipt, ended)

    def cancel(self, session: SessionKey) -> bool:
        """Stop the turn of the user's oldest message in the session, running or next to run, as
        soon as no write of it is half done. Return False if there is no such message.
        """
        for (key, _), submission in self._submitted.items():
            if key == session and not submission.request.is_silent:
                submission.interrupt.request()
                return True
        return False

    def cancel_message(self, session: SessionKey, message_id: str) -> bool:
        """Stop the turn of the message with that id, of any origin, as `cancel` does, also while it
        waits in the queue. Return False if there is no such turn.
        """
        submission = self._submitted.get((session, message_id))
        if submission is None:
            return False
        submission.interrupt.request()
        return True

    def is_busy(self, session: SessionKey) -> bool:
        """Whether a turn of the session runs or waits in the queue. Messages that wait for the
        model's service, and their tries, do not make the session busy.
        """
        if not self.is_waiting(session):
            return self._queue.is_busy(session)
        is_trying = (session, Origin.USER) in self._running
        return self._queue.is_held(session) and not is_trying

    def is_waiting(self, session: SessionKey) -> bool:
        """Whether the session's messages wait for the model's service."""
        return any(
            key == session and submission.place is not None and self._outage.holds(submission.place)
            for (key, _), submission in self._submitted.items()
        )

    def queued(self, session: SessionKey) -> int:
        """Return how many turns of the session wait in the queue."""
        return self._queue.queued(session)

    async def drain(self, seconds: float) -> None:
        """Accept no turn, begin no model call, and give running turns `seconds` to finish.

        A turn that has not finished by then is put aside and goes on at the next start.
        """
        self._tasks.close()
        await self._context_room.store_due()
        await self._tasks.finish(seconds)
        for submission in self._submitted.values():  # tasks that were cancelled before they began
            reject(submission.ended, ShuttingDown(TAKES_NO_MORE))

    def _enqueue(
        self,
        request: TurnRequest,
        receipt: Receipt,
        sink: TurnAudience,
        *,
        has_waited: bool = False,
    ) -> Submission:
        ended: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        place = OutagePlace.of(request, receipt, has_waited=has_waited)
        submission = Submission(request, receipt, sink, ended, place)
        if not self._tasks.is_open:  # the stop came while it was stored: it is for the next start
            reject(ended, ShuttingDown(TAKES_NO_MORE))
            return submission
        self._submitted[request.session, request.message_id] = submission
        self._contexts.mark_unfinished(request.session, receipt.turn_id)
        self._queue.enter(request.session)
        self._tasks.spawn(self._finish_submission(submission))
        return submission

    async def _finish_submission(self, submission: Submission) -> None:
        """Run the turn, tell those who wait for it and watch it how it ended, and give its place
        back.
        """
        session = submission.request.session
        try:
            try:
                turn = await self._await_turn(submission)
            finally:
                self._queue.release(session)
        except ShuttingDown as error:
            reject(submission.ended, error)
        except asyncio.CancelledError:
            reject(submission.ended, ShuttingDown(TAKES_NO_MORE))
            raise
        except Exception:
            # Not even the failure could be stored. The inbox still has the turn: it goes on at
            # the next start, or when it is sent again, and other turns go on now.
            log.exception("turn_not_stored", session=session, turn=submission.receipt.turn_id)
            reject(submission.ended, StorageError(_NOT_STORED, cure="See `agentd status`."))
        else:
            if not submission.ended.done():
                submission.ended.set_result(turn)
            submission.sink.emit(TurnEnded(session, turn))
            is_enough = submission.request.is_silent or self._context_room.is_ample(turn)
            if self._tasks.is_open and not is_enough:
                self._tasks.spawn(self._context_room.ahead(session, Trigger.THRESHOLD))
        finally:
            self._submitted.pop((session, submission.request.message_id), None)

    async def _await_turn(self, submission: Submission) -> Turn:
        """Run the turn and return it when it has ended. From here on a message of the user keeps
        its place in the session's line, also while it waits for the model's service.
        """
        request = submission.request
        if request.is_silent:
            return await self._hold_session(submission, self._execution.run)
        try:
            async with self._queue.in_line(request.session, submission.interrupt):
                return await self._retry_while_away(submission)
        except Interrupted:  # while it waited in the line
            return await self._hold_session(submission, self._execution.end_cancelled)

    async def _hold_session(
        self, submission: Submission, act: Callable[[Submission], Awaitable[Turn]]
    ) -> Turn:
        """Run a part of the turn alone in the session, once turns may run at all."""
        request = submission.request
        async with self._queue.hold(request.session):
            await self._started.wait()  # while queued, so that turns cut before keep their place
            self._running[request.session, request.origin] = submission
            try:
                with log_context(request, submission.receipt):
                    turn = await act(submission)
                    log.info("turn_ended", **log_fields(turn))
            finally:
                del self._running[request.session, request.origin]
            self._contexts.mark_ended(request.session, submission.receipt.turn_id)
            return turn

    async def _retry_while_away(self, submission: Submission) -> Turn:
        """Run the turn and return it when it has ended. While the model's service is away, try
        again for as long as the request's patience allows.
        """
        outage, place = self._outage, submission.place
        end: Callable[[Submission], Awaitable[Turn]]
        if place is None:
            return await self._hold_session(submission, self._execution.run)
        try:
            if place.has_waited or (outage.is_on and await outage.has_worked()):
                outage.join(place)
            while not outage.holds(place) or await self._may_try(submission, place):
                try:
                    return await self._hold_session(submission, self._execution.run)
                except ServiceAway as away:
                    outage.keep_waiting(place, away.error)
            error = outage.error or ProviderError(kind="unknown")
            end = partial(self._execution.give_up, error=error)
        except Interrupted:
            end = self._execution.end_cancelled
        finally:
            outage.leave(place)
        return await self._hold_session(submission, end)

    async def _may_try(self, submission: Submission, place: OutagePlace) -> bool:
        """Wait until the message may be tried and return True; return False when it has waited for
        too long. Its watchers are told that it waits, and when the next try comes. Raises
        Interrupted, ShuttingDown.
        """
        submission.announce()
        submission.sink.emit(self._outage.notice(submission.request.session, place))
        async with submission.interrupt.guard():
            return await self._outage.wait_to_try(place)
