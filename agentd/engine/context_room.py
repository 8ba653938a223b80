"""Decides when a session's context needs room: around its turns, and when its owner asks for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from agentd.core.compaction import CompactionReport, Trigger
from agentd.core.errors import AgentdError, Busy, NotFound, ShuttingDown, StorageError
from agentd.core.event import NoticeGiven
from agentd.core.message import Block
from agentd.core.ports import Clock, EventSink, SessionStore
from agentd.core.transcript import History, Row, RowRole, SessionInfo
from agentd.core.turn import SessionKey, StopReason, Turn, TurnRequest
from agentd.engine import tokens
from agentd.engine.approvals import Grants
from agentd.engine.compaction.manager import Compaction, off_loop, without_turns
from agentd.engine.compaction.replacement import EXTRACTED
from agentd.engine.context import TurnPromptParts
from agentd.engine.durable import when_space
from agentd.engine.hook_questions import HookQuestions
from agentd.engine.queue import SessionQueue

log = structlog.get_logger()

T = TypeVar("T")

COMPACTED = "The conversation was compacted: older messages are summarised now and stay searchable."
EXCERPTED = (
    "The conversation was compacted: older messages stay searchable, but no summary of them could "
    "be had, so excerpts stand in for it."
)
_LONG = 2  # windows; a longer context takes so many summary calls that no turn waits for them
_READ = 4  # windows of context that a turn reads at most
_SESSIONS = 256  # whose state is kept in memory
_PART = -1  # stands for the generation of a context of which a turn carries a part
_BASES = 4  # turns of a session whose context generation is known, the running one included
STARTED_OVER = "A new conversation begins here; what was said before stays searchable."


class _SessionState(Struct):
    """What is known of a session's context between its turns: `unfinished` are the ids of the turns
    whose end is not stored, `basis` maps each of the last turns to the generation of the context
    that it ran on, and `fixed` is the tokens that all calls carry. `is_due` is True while room is
    made in the background, `is_owed` if room must be made whatever the last turn used, and
    `is_refused` if the service found the context too long and answered a part of it.
    """

    unfinished: set[int] = field(default_factory=set)
    basis: dict[int, int] = field(default_factory=dict)
    fixed: int = 0
    is_due: bool = False
    is_owed: bool = False
    is_refused: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether forgetting the state would lose more than an estimate."""
        return bool(self.unfinished) or self.is_due or self.is_owed


class ContextRoom:
    """What turns and the owner ask of a session's context, around `Compaction`.

    It reads the history before a turn, which leaves out the turns that it knows to be unfinished;
    decides when to ask for room, and tells the session what came of it; gives a turn less of the
    context when all of it does not fit; and deletes sessions, while nobody works in them.
    """

    def __init__(
        self,
        store: SessionStore,
        compaction: Compaction,
        questions: HookQuestions,
        queue: SessionQueue,
        events: EventSink,
        clock: Clock,
        grants: Grants,
        *,
        background: bool,
        idle_reset: timedelta = timedelta(0),
    ) -> None:
        self._store = store
        self._compaction = compaction
        self._questions = questions
        self._queue = queue
        self._events = events
        self._clock = clock
        self._grants = grants
        self._background = background
        self._idle_reset = idle_reset
        self._states: OrderedDict[SessionKey, _SessionState] = OrderedDict()  # last used last
        self._weighed: tuple[object, int] = (None, 0)  # last system prompt and tools, their tokens

    def restore(self, sessions: Sequence[SessionInfo]) -> None:
        """Take over, at a start, the failures of summaries that are stored with the sessions."""
        self._compaction.restore(sessions)

    def mark_unfinished(self, session: SessionKey, turn_id: int) -> None:
        """Mark the turn as unfinished: until `mark_ended` no other prompt, flush or cut includes
        its rows.
        """
        self._state(session).unfinished.add(turn_id)

    def mark_ended(self, session: SessionKey, turn_id: int) -> None:
        """Mark the turn as finished: its end is stored."""
        self._state(session).unfinished.discard(turn_id)

    async def read_past(self, session: SessionKey, turn_id: int) -> History:
        """Return the session's context for the turn, what has ended before it, and remember which
        generation of it the turn runs on. Of a very long
        context only the newest rows are read, about four windows of them, as many as an excerpt is
        made from.
        """
        most = int(_READ * self._compaction.limits.window * tokens.BYTES_PER_TOKEN)
        history = await when_space(self._clock, self._store.load, session, most)
        state = self._state(session)
        state.is_owed = history.flush_due or history.is_excerpted
        state.basis[turn_id] = history.generation
        while len(state.basis) > _BASES:
            del state.basis[next(iter(state.basis))]
        unended = self._unended(session) | {turn_id}
        return await off_loop(history, lambda: without_turns(history, unended))

    async def make_room_before(self, past: History, context: TurnPromptParts) -> int | None:
        """Make room if the turn would not fit, or empty the context if nobody has spoken for
        `idle_reset`. Return the estimated tokens of the turn's request; None if the context may
        have changed.

        While room is already being made in the background, a turn that fits goes ahead. If
        compaction runs in the background, so does a turn whose context is longer than two windows:
        it runs on an excerpt (`fitting`), and room is made after it.
        """
        request = context.request
        limits = self._compaction.limits
        state = self._state(request.session)
        state.fixed = self._weigh(context)
        if self._is_over(past):
            await self._make_room(request.session, Trigger.IDLE, request.blocks)
            return None
        if state.is_refused and not self._background:
            await self._make_room(request.session, Trigger.OVERFLOW, request.blocks)
            return None
        used = await self._measured(past, request.blocks)
        from_here = limits.compact_at if self._background else limits.flush_at
        log.info("room_judged", session=request.session, tokens=used, make_room_at=from_here)
        if used < from_here:
            return used
        if self._fits(used) and self._compaction.is_working(request.session):
            return used
        if self._background and (used >= _LONG * limits.window or past.left_out):
            return used
        await self._make_room(request.session, Trigger.THRESHOLD, request.blocks)
        return None

    async def fitting(
        self, past: History, request: TurnRequest, used: int | None = None
    ) -> History:
        """Return the history that the turn of that request can carry: `past` itself if all of it
        fits or nothing can be left out, else an excerpt. `used` are the estimated tokens of the
        request over `past` if they are known.
        """
        if used is None:
            used = await self._measured(past, request.blocks)
        if self._fits(used) and not past.left_out:
            return past
        part = await off_loop(past, partial(self._compaction.excerpt, past, used))
        if part is not past:
            log.info("context_excerpted", session=past.session, tokens=used)
            self._state(past.session).is_owed = True
            if not past.is_excerpted:
                await when_space(self._clock, self._store.mark_excerpted, past.session)
        return part

    async def shorter(self, past: History, carried: Sequence[Row], turn_id: int) -> History | None:
        """Return a part of the history for a turn whose prompt the service found too long with the
        rows that it carried; None if nothing more can be left out. Nothing is stored: a service
        that refuses every prompt must not cost the session its context.
        """
        part = await off_loop(past, partial(self._compaction.shorter, past, carried))
        if part is past:
            return None
        log.info("context_excerpted", session=past.session, tokens=tokens.of_rows(part.rows))
        self._state(past.session).basis[turn_id] = _PART
        return part

    def worked_shorter(self, session: SessionKey) -> None:
        """Have room made between turns: a turn that the service found too long has been answered
        on a part of its context.
        """
        state = self._state(session)
        state.is_owed = state.is_refused = True

    def is_ample(self, turn: Turn) -> bool:
        """Whether the session surely needs no room after this turn: the turn ended with an answer,
        and all its calls together, which used no less than its context holds, stayed below the
        flush threshold. Reads nothing from the store.
        """
        answered = turn.stop_reason is StopReason.END_TURN
        used = turn.usage.total_tokens
        is_small = 0 < used < self._compaction.limits.flush_at
        return answered and is_small and not self._known(turn.session).is_owed

    async def ahead(self, session: SessionKey, trigger: Trigger) -> None:
        """Make room between turns if the next one would need it. Failures are logged, not
        raised.
        """
        try:
            await self._ahead(session, trigger)
        except ShuttingDown:
            return  # room stays due
        except AgentdError as error:
            log.warning("background_room_failed", session=session, reason=error.reason)
        except Exception:
            # Nobody waits for this, and the next turn will ask for room itself.
            log.exception("background_room_crashed", session=session)
        if session in self._states:
            self._states[session].is_due = False

    async def _ahead(self, session: SessionKey, trigger: Trigger) -> None:
        if trigger is Trigger.THRESHOLD and self._compaction.is_working(session):
            return  # the turn after it asks again
        if trigger is Trigger.THRESHOLD and self._known(session).is_refused:
            trigger = Trigger.OVERFLOW
        history, used = await self._weighed_now(session)
        need = await off_loop(history, lambda: self._compaction.need(history, used, trigger))
        is_due = need.flush or need.cut or history.flush_due
        if not self._background or not is_due:
            return
        self._state(session).is_due = True
        await self._make_room(session, trigger, ())

    async def store_due(self) -> None:
        """Store, for the next start, which sessions' flushes are due. A failure is only logged."""
        due = tuple(session for session, state in self._states.items() if state.is_due)
        for session in due:
            self._states[session].is_due = False
        if not due:
            return
        try:
            await self._store.set_flush_due(due)
        except StorageError as error:
            log.warning("flush_due_not_stored", sessions=due, reason=error.reason)

    async def compact(self, session: SessionKey, wish: str = "") -> CompactionReport:
        """Flush and compact the session's context now; `wish` is what the user wants from the
        summary.
        """
        return await self._on_demand(session, Trigger.MANUAL, wish)

    async def flush(self, session: SessionKey) -> CompactionReport:
        """Offer all finished rows of the session to memory now, including rows that earlier flushes
        gave up.
        """
        return await self._on_demand(session, Trigger.FLUSH)

    async def start_over(self, session: SessionKey) -> CompactionReport:
        """Flush the session, then begin an empty context under its key."""
        return await self._on_demand(session, Trigger.NEW)

    async def delete(self, session: SessionKey) -> None:
        """Erase the session; `main` is emptied. Raises Busy while a turn of the session runs or
        waits.
        """
        await self._must_exist(session)
        if self._queue.is_busy(session) or self._compaction.is_working(session):
            raise Busy(
                f"Session {session!r} is at work.", cure="Wait for it, or cancel it, then delete."
            )
        async with self._queue.visit(session), self._compaction.alone(session):
            await self._store.delete(session)
            unfinished = self._known(session).unfinished  # of turns that came meanwhile
            self._states.pop(session, None)
            if unfinished:
                self._state(session).unfinished = unfinished
            self._compaction.forget(session)
            self._grants.end(session)

    async def explain(self, session: SessionKey) -> dict[str, Any]:
        """Return what the session's next turn would do to its context, and the figures that decide
        it. Changes nothing. Raises NotFound.
        """
        await self._must_exist(session)
        history, used = await self._weighed_now(session)
        limits = self._compaction.limits
        need = await off_loop(
            history, lambda: self._compaction.need(history, used, Trigger.THRESHOLD)
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

    async def _on_demand(
        self, session: SessionKey, trigger: Trigger, wish: str = ""
    ) -> CompactionReport:
        await self._must_exist(session)
        async with self._queue.visit(session):
            return await self._make_room(session, trigger, (), wish)

    async def _must_exist(self, session: SessionKey) -> None:
        if not await self._store.exists(session):
            raise NotFound(f"There is no session {session!r}.", cure="See `agentd sessions list`.")

    async def _make_room(
        self,
        session: SessionKey,
        trigger: Trigger,
        incoming: Sequence[Block],
        wish: str = "",
    ) -> CompactionReport:
        if trigger.empties:
            self._grants.end(session)
        if trigger is Trigger.OVERFLOW:
            self._state(session).is_refused = False
        report = await self._compaction.make_room(
            session,
            trigger,
            partial(self._questions.ask, session),
            measure=lambda history: self._measure(history, incoming),
            unfinished=partial(self._unended, session),
            wish=wish,
        )
        if report.compacted:
            words = STARTED_OVER if trigger.empties else COMPACTED
            words = EXCERPTED if report.reason == EXTRACTED else words
            words = " ".join(filter(None, (words, report.unsaved_in_words())))
            await when_space(self._clock, self._store.notice, session, words, "compaction")
            self._events.emit(NoticeGiven(session, words, "compaction"))
        return report

    def _fits(self, used: int) -> bool:
        """Whether a request of `used` tokens leaves at least half of the reserve for its answer."""
        limits = self._compaction.limits
        return used < (limits.compact_at + limits.window) // 2

    def _is_over(self, past: History) -> bool:
        """Whether the session has been idle for `idle_reset`, so that the next message begins a new
        conversation. Alerts and silent turns do not count.
        """
        spoken = [row.at for row in past.rows if row.role is not RowRole.NOTICE]
        if not (self._idle_reset and spoken):
            return False
        return self._clock.now() - spoken[-1] >= self._idle_reset

    def _weigh(self, context: TurnPromptParts) -> int:
        """Return the estimated tokens of the system prompt and the tools, which usually equal those
        of the turn before.
        """
        carried = (context.system, context.tools)
        if self._weighed[0] != carried:
            self._weighed = (carried, tokens.of_fixed(*carried))
        return self._weighed[1]

    async def read_between_turns(self, session: SessionKey) -> History:
        """Return the session's context: what has ended by now."""
        unended = self._unended(session)
        whole = await self._store.load(session)
        return await off_loop(whole, lambda: without_turns(whole, unended))

    async def _weighed_now(self, session: SessionKey) -> tuple[History, int]:
        """Return the session's context between turns, and the estimated tokens of the next request
        over it.
        """
        history = await self.read_between_turns(session)
        return history, await self._measured(history, ())

    async def _measured(self, history: History, incoming: Sequence[Block]) -> int:
        return await off_loop(history, lambda: self._measure(history, incoming))

    def _measure(self, history: History, incoming: Sequence[Block]) -> int:
        """Return the estimated tokens of the next request. The usage of a turn does not count if
        the context was swapped while the turn ran, because it still ran on the old one.
        """
        state = self._known(history.session)
        rows = tuple(
            replace(r, usage=None)
            if state.basis.get(r.turn_id or 0, history.generation) != history.generation
            else r
            for r in history.rows
        )
        return tokens.of_next_request(replace(history, rows=rows), incoming, state.fixed)

    def _unended(self, session: SessionKey) -> frozenset[int]:
        """Return the ids of the session's unfinished turns."""
        return frozenset(self._known(session).unfinished)

    def _state(self, session: SessionKey) -> _SessionState:
        """Return the session's state, to be changed. Of all but the sessions used last, only states
        that `is_needed` are kept.
        """
        state = self._states.setdefault(session, _SessionState())
        self._states.move_to_end(session)
        while len(self._states) > _SESSIONS:
            oldest = next(iter(self._states))
            if self._states[oldest].is_needed:
                self._states.move_to_end(oldest)
                break  # the next call examines the next oldest
            del self._states[oldest]
        return state

    def _known(self, session: SessionKey) -> _SessionState:
        """Return the session's state, to be read, from any thread; an empty state if nothing is
        known.
        """
        return self._states.get(session) or _SessionState()
