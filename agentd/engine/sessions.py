"""The one door to a turn: receive, wait for the lane, make room, run, store.

Turns belong to the engine. Whoever submits one may wait for it, watch it or leave; it runs on. What
has been received is durable before anybody is told, and what a stop or a crash cuts goes on at the
next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import structlog

from agentd.domain.compaction import RoomReport, Trigger
from agentd.domain.event import TurnEnded
from agentd.domain.turn import (
    Context,
    Failure,
    Origin,
    PendingTurn,
    Receipt,
    SessionKey,
    Turn,
    TurnRequest,
)
from agentd.engine.interrupt import Interrupted
from agentd.engine.lanes import Lanes, Ticket
from agentd.engine.loop import Loop, failure_of
from agentd.engine.progress import CLIP_RESULTS, Progress
from agentd.engine.prompt import Scene
from agentd.engine.recovery import Recovery
from agentd.engine.rooms import Rooms
from agentd.engine.scenes import Scenes
from agentd.engine.silent import Silence
from agentd.engine.submission import Job, reject
from agentd.engine.trace import marked, outcome
from agentd.errors import (
    AgentdError,
    ContextOverflow,
    InvalidRequest,
    ProviderError,
    ShuttingDown,
    StorageError,
)
from agentd.failpoints import hit
from agentd.ports import EventSink, SessionStore

log = structlog.get_logger()
T = TypeVar("T")

INTERNAL = Failure("internal", "Something went wrong inside agentd.", "Look at `agentd logs`.")
RESERVED = ("flush:", "beat:", "job:")  # message ids of silent turns
_TAKES_NO_MORE = "agentd is stopping and takes no new messages."
_NOT_STORED = "The turn could not be stored; it will be tried again after a restart."


class Sessions:
    """Runs turns, each in its session's lane."""

    def __init__(
        self,
        store: SessionStore,
        loop: Loop,
        scenes: Scenes,
        rooms: Rooms,
        recovery: Recovery,
        lanes: Lanes,
        events: EventSink,
    ) -> None:
        self._store = store
        self._loop = loop
        self._scenes = scenes
        self._rooms = rooms
        self._recovery = recovery
        self._lanes = lanes
        self._events = events
        self._jobs: dict[tuple[SessionKey, str], Job] = {}
        self._running: dict[SessionKey, Job] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Repair the journal, then take turns; none runs before `start`, the cut ones come first."""
        cut = await self._recovery.repair()
        async with asyncio.TaskGroup() as group:
            self._group = group
            for pending in cut:
                self._resume(pending)
            try:
                yield
            finally:
                await self.drain(0)

    async def start(self) -> None:
        """Let turns run, and flush what a stop left due."""
        self._started.set()
        for info in await self._store.sessions():
            if info.flush_due and self._group is not None:
                self._spawn(self._rooms.ahead(info.key, Trigger.RESTART))

    async def submit(self, request: TurnRequest, sink: EventSink | None = None) -> Ticket:
        """Take a request; when this returns it is durable.

        A message id that is known attaches to its turn, running or ended. Silent turns go to `sink`
        or nowhere, others to everybody who watches the session. Raises ShuttingDown, QueueFull,
        StorageFull, InvalidRequest; nothing was accepted then.
        """
        if self._group is None:
            raise ShuttingDown(_TAKES_NO_MORE, cure="Send it again when agentd is back.")
        if request.origin is Origin.USER and request.message_id.startswith(RESERVED):
            raise InvalidRequest(
                f"message ids must not begin with {' or '.join(RESERVED)}", cure="Use another id."
            )
        key = (request.session, request.message_id)
        if key in self._jobs:
            return Ticket(self._jobs[key].receipt, self._jobs[key].ended)
        self._lanes.reserve(request.session)
        try:
            receipt = await self._store.receive(request)
            hit("turn.received")
            job = self._jobs.get(key)
            if job is None and receipt.ended is None:
                default = self._events if request.origin is Origin.USER else Silence()
                job = self._enqueue(request, receipt, sink or default)
        finally:
            self._lanes.release(request.session)
        if job is not None:
            return Ticket(receipt, job.ended)
        ended: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        if receipt.ended is not None:
            ended.set_result(receipt.ended)
        return Ticket(receipt, ended)

    def cancel(self, session: SessionKey, origin: Origin = Origin.USER) -> bool:
        """Stop the session's running turn of that origin as soon as nothing is half done.

        False if none runs.
        """
        job = self._running.get(session)
        if job is None or job.request.origin is not origin:
            return False
        job.interrupt.request()
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
        self._group = None
        self._loop.draining = True
        await self._rooms.close()
        if self._tasks and seconds > 0:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1)
        for job in self._jobs.values():  # those that had not even begun to wait
            reject(job.ended, ShuttingDown(_TAKES_NO_MORE))

    async def compact(self, session: SessionKey) -> RoomReport:
        """Flush and compact the session now. Raises NotFound, ShuttingDown."""
        return await self._owned(self._rooms.compact(session))

    async def flush(self, session: SessionKey) -> RoomReport:
        """Offer everything finished to memory now. Raises NotFound, ShuttingDown."""
        return await self._owned(self._rooms.flush(session))

    async def start_over(self, session: SessionKey) -> RoomReport:
        """Flush, then begin an empty context under the same key. Raises NotFound, ShuttingDown."""
        return await self._owned(self._rooms.start_over(session))

    async def delete(self, session: SessionKey) -> None:
        """Erase the session; `main` is emptied. Raises NotFound, ShuttingDown, Busy while anything of
        it runs or waits.
        """
        await self._owned(self._rooms.delete(session))

    async def explain(self, session: SessionKey) -> dict[str, Any]:
        """What would happen at the session's next turn and why. Raises NotFound."""
        return await self._rooms.explain(session)

    async def _owned(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that goes on even if whoever asked for it leaves."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            try:
                done.set_result(await work)
            except AgentdError as error:
                done.set_exception(error)
            except Exception:
                # The boundary of an errand: its owner is told, everything else goes on.
                log.exception("errand_crashed")
                done.set_exception(AgentdError(INTERNAL.message, cure=INTERNAL.cure))

        def leave(_: object) -> None:
            work.close()  # a stop may come before it has begun
            reject(done, ShuttingDown(_TAKES_NO_MORE))

        if self._group is None:
            work.close()
            raise ShuttingDown(_TAKES_NO_MORE)
        self._spawn(run()).add_done_callback(leave)
        return await asyncio.shield(done)

    def _resume(self, cut: PendingTurn) -> None:
        request = cut.request
        receipt = Receipt(cut.turn_id, request.session, request.message_id, cut.seq, is_new=False)
        self._enqueue(request, receipt, self._events)

    def _enqueue(self, request: TurnRequest, receipt: Receipt, sink: EventSink) -> Job:
        ended: asyncio.Future[Turn] = asyncio.get_running_loop().create_future()
        job = Job(request, receipt, sink, ended)
        if self._group is None:  # the stop came while it was stored: it runs after the next start
            reject(ended, ShuttingDown(_TAKES_NO_MORE))
            return job
        self._jobs[request.session, request.message_id] = job
        self._rooms.expect(request.session, receipt.turn_id)
        self._lanes.enter(request.session)
        self._spawn(self._work(job))
        return job

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        assert self._group is not None
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work(self, job: Job) -> None:
        session = job.request.session
        try:
            async with self._lanes.hold(session):
                await self._started.wait()  # in the lane, so that those cut before keep their place
                self._running[session] = job
                try:
                    with marked(job.request, job.receipt):
                        turn = await self._run(job)
                        log.info("turn_ended", **outcome(turn))
                    self._rooms.ended(session, job.receipt.turn_id)
                finally:
                    del self._running[session]
        except ShuttingDown as error:
            reject(job.ended, error)
        except asyncio.CancelledError:
            reject(job.ended, ShuttingDown(_TAKES_NO_MORE))
            raise
        except Exception:
            # Not even the failure could be stored. The journal still has the turn: it goes on at the
            # next start, or when it is sent again, and other turns go on now.
            log.exception("turn_not_stored", session=session, turn=job.receipt.turn_id)
            reject(job.ended, StorageError(_NOT_STORED, cure="See `agentd status`."))
        else:
            if not job.ended.done():
                job.ended.set_result(turn)
            job.sink.emit(TurnEnded(session, turn))
            if job.request.origin is Origin.USER and not self._rooms.is_ample(turn):
                self._look_ahead(session)
        finally:
            self._jobs.pop((session, job.request.message_id), None)

    def _look_ahead(self, session: SessionKey) -> None:
        if self._group is not None:
            self._spawn(self._rooms.ahead(session, Trigger.THRESHOLD))

    async def _run(self, job: Job) -> Turn:
        """The turn, ended and stored one way or the other. Raises ShuttingDown when put aside."""
        progress: Progress | None = None
        try:
            progress = await self._prepare(job)
            return await self._attempt(job, progress)
        except Interrupted:
            progress = progress or await self._bare(job)
            return await self._loop.cancelled(progress)
        except (ShuttingDown, asyncio.CancelledError):
            if progress is not None:
                await self._park(job.receipt.turn_id)
            raise
        except ProviderError as error:
            log.info("turn_failed", reason=error.reason)
            return await self._loop.failed(progress or await self._bare(job), failure_of(error))
        except Exception:
            # The boundary of a turn: whatever a part did wrong costs this turn, never the daemon.
            log.exception("turn_crashed")
            return await self._loop.failed(progress or await self._bare(job), INTERNAL)

    async def _park(self, turn_id: int) -> None:
        try:
            await asyncio.shield(self._store.park(turn_id))
        except StorageError as error:
            log.warning("turn_not_parked", reason=error.reason)  # it counts as crashed once

    async def _attempt(self, job: Job, progress: Progress) -> Turn:
        """Run, and once or twice again with more room if the prompt turns out too long."""
        try:
            return await self._loop.run(progress)
        except ContextOverflow:
            if progress.can_clip:
                log.info("overflow", cure="clip tool results")
                progress.clip = CLIP_RESULTS
            elif not await self._make_room(job, progress):
                raise
        try:
            return await self._loop.run(progress)
        except ContextOverflow:
            if progress.clip is None or not await self._make_room(job, progress):
                raise
        return await self._loop.run(progress)

    async def _prepare(self, job: Job) -> Progress:
        request = job.request
        turn_id = job.receipt.turn_id
        past = await self._rooms.past(request.session, turn_id)
        scene = await self._scenes.for_turn(request, past)
        if request.origin is Origin.USER and await self._rooms.before_turn(past, scene):
            past = await self._rooms.past(request.session, turn_id)
            scene = await self._scenes.for_turn(request, past)
        return Progress(job.receipt, scene, job.sink, interrupt=job.interrupt)

    async def _make_room(self, job: Job, progress: Progress) -> bool:
        if job.request.context is Context.LIGHT or job.request.origin is not Origin.USER:
            return False
        turn_id = job.receipt.turn_id
        if not await self._rooms.after_overflow(progress.scene):
            return False
        past = await self._rooms.past(job.request.session, turn_id)
        progress.scene = await self._scenes.for_turn(job.request, past)
        return True

    async def _bare(self, job: Job) -> Progress:
        """Enough to end a turn that failed before it had a scene."""
        scene = Scene(job.request, (), (), (), "", "", "")
        rows = await self._loop.begin(job.receipt)
        return Progress(job.receipt, scene, job.sink, rows)
