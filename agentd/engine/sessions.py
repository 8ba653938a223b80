"""The one door to a turn: receive it, queue it in its session's lane, know it until it has ended.

Turns belong to the engine. Whoever submits one may wait for it, watch it or leave; it runs on. What
has been received is durable before anybody is told, and what a stop or a crash cuts goes on at the
next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog

from agentd.domain.compaction import RoomReport, Trigger
from agentd.domain.event import TurnEnded
from agentd.domain.turn import Origin, Receipt, SessionKey, Turn, TurnRequest
from agentd.engine.lanes import Lanes
from agentd.engine.recovery import Recovery
from agentd.engine.rooms import Rooms
from agentd.engine.silent import Silence
from agentd.engine.submission import TAKES_NO_MORE, Submission, Ticket, reject
from agentd.engine.tasks import Tasks
from agentd.engine.turns import Turns
from agentd.errors import InvalidRequest, ShuttingDown, StorageError
from agentd.failpoints import hit
from agentd.ports import Audience, SessionStore

log = structlog.get_logger()

RESERVED = ("flush:", "beat:", "job:")  # message ids of silent turns
_NOT_STORED = "The turn could not be stored; it will be tried again after a restart."


class Sessions:
    """Runs turns, each in its session's lane."""

    def __init__(
        self,
        store: SessionStore,
        turns: Turns,
        rooms: Rooms,
        recovery: Recovery,
        lanes: Lanes,
        events: Audience,
    ) -> None:
        self._store = store
        self._turns = turns
        self._rooms = rooms
        self._recovery = recovery
        self._lanes = lanes
        self._events = events
        self._submitted: dict[tuple[SessionKey, str], Submission] = {}
        self._running: dict[SessionKey, Submission] = {}
        self._tasks = Tasks()
        self._started = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Repair the journal, then take turns; none runs before `start`, the cut ones come first."""
        cut = await self._recovery.repair()
        async with self._tasks.open():
            for pending in cut:
                self._enqueue(pending.request, pending.receipt, self._events)
            try:
                yield
            finally:
                await self.drain(0)

    async def start(self) -> None:
        """Let turns run, and flush what a stop left due."""
        self._started.set()
        sessions = await self._store.sessions()
        self._rooms.adopt(sessions)
        for info in sessions:
            if info.flush_due and self._tasks.is_open:
                self._tasks.spawn(self._rooms.ahead(info.key, Trigger.RESTART))

    async def submit(self, request: TurnRequest, sink: Audience | None = None) -> Ticket:
        """Take a request; when this returns it is durable.

        A message id that is known attaches to its turn, running or ended. Silent turns go to `sink`
        or nowhere, others to everybody who watches the session. Raises ShuttingDown, QueueFull,
        StorageFull, InvalidRequest; nothing was accepted then.
        """
        if not self._tasks.is_open:
            raise ShuttingDown(TAKES_NO_MORE, cure="Send it again when agentd is back.")
        if request.origin is Origin.USER and request.message_id.startswith(RESERVED):
            raise InvalidRequest(
                f"message ids must not begin with {' or '.join(RESERVED)}", cure="Use another id."
            )
        key = (request.session, request.message_id)
        if key in self._submitted:
            return Ticket(self._submitted[key].receipt, self._submitted[key].ended)
        self._lanes.reserve(request.session)
        try:
            receipt = await self._store.receive(request)
            hit("turn.received")
            submission = self._submitted.get(key)
            if submission is None and receipt.ended is None:
                default = self._events if request.origin is Origin.USER else Silence()
                submission = self._enqueue(request, receipt, sink or default)
        finally:
            self._lanes.release(request.session)
        if submission is not None:
            return Ticket(receipt, submission.ended)
        ended: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        if receipt.ended is not None:
            ended.set_result(receipt.ended)
        return Ticket(receipt, ended)

    def cancel(self, session: SessionKey, origin: Origin = Origin.USER) -> bool:
        """Stop the session's running turn of that origin as soon as nothing is half done.

        False if none runs.
        """
        submission = self._running.get(session)
        if submission is None or submission.request.origin is not origin:
            return False
        submission.interrupt.request()
        return True

    def is_busy(self, session: SessionKey) -> bool:
        """Whether a turn of the session runs or waits."""
        return self._lanes.is_busy(session)

    def queued(self, session: SessionKey) -> int:
        """How many turns of the session wait."""
        return self._lanes.queued(session)

    async def drain(self, seconds: float) -> None:
        """Take nothing new, begin no model call, and give running turns `seconds` to finish.

        What is not done by then is put aside; it goes on at the next start.
        """
        self._tasks.close()
        self._turns.drain()
        await self._rooms.close()
        await self._tasks.finish(seconds)
        for submission in self._submitted.values():  # those that had not even begun to wait
            reject(submission.ended, ShuttingDown(TAKES_NO_MORE))

    async def compact(self, session: SessionKey, wish: str = "") -> RoomReport:
        """Flush and compact the session now; `wish` is what the user wants of the summary. Raises
        NotFound, ShuttingDown.
        """
        return await self._tasks.owned(self._rooms.compact(session, wish))

    async def flush(self, session: SessionKey) -> RoomReport:
        """Offer everything finished to memory now, what was given up once more. Raises NotFound, ShuttingDown."""
        return await self._tasks.owned(self._rooms.flush(session))

    async def start_over(self, session: SessionKey) -> RoomReport:
        """Flush, then begin an empty context under the same key. Raises NotFound, ShuttingDown."""
        return await self._tasks.owned(self._rooms.start_over(session))

    async def delete(self, session: SessionKey) -> None:
        """Erase the session; `main` is emptied. Raises NotFound, ShuttingDown, Busy while anything of
        it runs or waits.
        """
        await self._tasks.owned(self._rooms.delete(session))

    async def explain(self, session: SessionKey) -> dict[str, Any]:
        """What would happen at the session's next turn and why. Raises NotFound."""
        return await self._rooms.explain(session)

    def _enqueue(self, request: TurnRequest, receipt: Receipt, sink: Audience) -> Submission:
        ended: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        submission = Submission(request, receipt, sink, ended)
        if not self._tasks.is_open:  # the stop came while it was stored: it is for the next start
            reject(ended, ShuttingDown(TAKES_NO_MORE))
            return submission
        self._submitted[request.session, request.message_id] = submission
        self._rooms.expect(request.session, receipt.turn_id)
        self._lanes.enter(request.session)
        self._tasks.spawn(self._work(submission))
        return submission

    async def _work(self, submission: Submission) -> None:
        session = submission.request.session
        try:
            async with self._lanes.hold(session):
                await self._started.wait()  # in the lane, so that those cut before keep their place
                self._running[session] = submission
                try:
                    turn = await self._turns.run(submission)
                    self._rooms.ended(session, submission.receipt.turn_id)
                finally:
                    del self._running[session]
        except ShuttingDown as error:
            reject(submission.ended, error)
        except asyncio.CancelledError:
            reject(submission.ended, ShuttingDown(TAKES_NO_MORE))
            raise
        except Exception:
            # Not even the failure could be stored. The journal still has the turn: it goes on at the
            # next start, or when it is sent again, and other turns go on now.
            log.exception("turn_not_stored", session=session, turn=submission.receipt.turn_id)
            reject(submission.ended, StorageError(_NOT_STORED, cure="See `agentd status`."))
        else:
            if not submission.ended.done():
                submission.ended.set_result(turn)
            submission.sink.emit(TurnEnded(session, turn))
            if submission.request.origin is Origin.USER and not self._rooms.is_ample(turn):
                self._look_ahead(session)
        finally:
            self._submitted.pop((session, submission.request.message_id), None)

    def _look_ahead(self, session: SessionKey) -> None:
        if self._tasks.is_open:
            self._tasks.spawn(self._rooms.ahead(session, Trigger.THRESHOLD))
