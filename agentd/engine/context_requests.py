"""What the owner asks of a session's context: to shorten, empty, explain, show or delete it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agentd.core.compaction import CompactionReport, Trigger
from agentd.core.errors import Busy, NotFound
from agentd.core.failpoints import hit
from agentd.core.offloading import offload_rows
from agentd.core.ports import Clock, SessionStore
from agentd.core.prompt import Prompt
from agentd.core.transcript import Row, RowRole
from agentd.core.turn import SessionKey, TurnRequest
from agentd.engine.compaction.manager import Compaction
from agentd.engine.context import PromptGatherer, build_prompt
from agentd.engine.context_room import ContextRoom
from agentd.engine.queue import SessionQueue
from agentd.engine.session_contexts import SessionContexts
from agentd.engine.workers import Tasks

NEXT_MESSAGE = "(the next message)"


class ContextRequests:
    """Carries out what the owner asks of a session's context, between its turns. Work that has
    begun goes on if who asked for it leaves.
    """

    def __init__(
        self,
        store: SessionStore,
        contexts: SessionContexts,
        compaction: Compaction,
        room: ContextRoom,
        builder: PromptGatherer,
        queue: SessionQueue,
        *,
        tasks: Tasks,
        clock: Clock,
    ) -> None:
        self._store = store
        self._contexts = contexts
        self._compaction = compaction
        self._room = room
        self._builder = builder
        self._queue = queue
        self._tasks = tasks
        self._clock = clock

    async def compact(self, session: SessionKey, wish: str = "") -> CompactionReport:
        """Flush and compact the session's context now; `wish` is what the user wants from the
        summary. Raises NotFound, ShuttingDown, StorageError.
        """
        return await self._tasks.owned(self._make_room(session, Trigger.MANUAL, wish))

    async def flush(self, session: SessionKey) -> CompactionReport:
        """Offer all finished rows of the session to memory now, including rows that earlier flushes
        gave up. Raises NotFound, ShuttingDown, StorageError.
        """
        return await self._tasks.owned(self._make_room(session, Trigger.FLUSH))

    async def start_over(self, session: SessionKey) -> CompactionReport:
        """Flush the session, then begin an empty context under its key. Raises NotFound,
        ShuttingDown, StorageError.
        """
        return await self._tasks.owned(self._make_room(session, Trigger.NEW))

    async def delete(
        self, session: SessionKey, then: Callable[[SessionKey], Awaitable[None]] | None = None
    ) -> None:
        """Erase the session (`main` is emptied), then call `then` with its key. Both go on if the
        caller is cancelled. Raises NotFound, ShuttingDown, StorageError, Busy while a turn of the
        session runs or waits.
        """
        await self._tasks.owned(self._delete(session, then))

    async def explain(self, session: SessionKey) -> dict[str, Any]:
        """Return what the session's next turn would do to its context, and the figures that decide
        it. Changes nothing. Raises NotFound.
        """
        await self._must_exist(session)
        history = await self._contexts.read_between_turns(session)
        used = await self._contexts.measured(history)
        limits = self._compaction.limits
        need = await offload_rows(
            history.rows, lambda: self._compaction.need(history, used, Trigger.THRESHOLD)
        )
        uncovered = [r for r in history.rows if r.seq > history.covered_to]
        return {
            "session": session,
            "tokens": used,
            "window": limits.window,
            "flush_at": limits.flush_at,
            "compact_at": limits.compact_at,
            "generation": history.generation,
            "context_from": history.context_from,
            "covered_to": history.covered_to,
            "uncovered_rows": len(uncovered),
            "flush_failures": history.flush_failures,
            "flush_due": history.flush_due,
            "summary_failures": history.trouble.failures,
            "excerpted": history.is_excerpted,
            "would_flush": need.flush,
            "would_compact": need.cut,
            "reason": need.reason,
        }

    async def preview(self, session: SessionKey) -> Prompt:
        """Return the prompt that the session's next message would be sent with, once a running turn
        has ended: the files in a prompt count as seen by the session, which that turn has not seen.
        A line stands for the message itself; what a search adds for its words is missing. Raises
        StorageError.
        """
        async with self._queue.visit(session):
            request = TurnRequest(session, NEXT_MESSAGE, "")
            past = await self._contexts.read_between_turns(session)
            context = await self._builder.for_turn(request, past)
            message = Row(0, RowRole.USER, request.blocks, self._clock.now())
            return build_prompt(context, (message,))

    async def _make_room(
        self, session: SessionKey, trigger: Trigger, wish: str = ""
    ) -> CompactionReport:
        await self._must_exist(session)
        async with self._queue.visit(session):
            return await self._room.make_room(session, trigger, wish=wish)

    async def _delete(
        self, session: SessionKey, then: Callable[[SessionKey], Awaitable[None]] | None
    ) -> None:
        await self._must_exist(session)
        if self._queue.is_busy(session) or self._compaction.is_working(session):
            raise Busy(
                f"Session {session!r} is at work.", cure="Wait for it, or cancel it, then delete."
            )
        async with self._queue.visit(session), self._compaction.alone(session):
            await self._store.delete(session)
            self._room.forget(session)
        hit("session.deleted")
        if then is not None:
            await then(session)

    async def _must_exist(self, session: SessionKey) -> None:
        if not await self._store.exists(session):
            raise NotFound(f"There is no session {session!r}.", cure="See `agentd sessions list`.")
