"""Decides when a session's context needs room: before a turn, in it, and after it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog

from agentd.core.compaction import CompactionReport, Trigger
from agentd.core.errors import AgentdError, ShuttingDown, StorageError
from agentd.core.event import NoticeGiven
from agentd.core.message import Block
from agentd.core.offloading import offload_rows
from agentd.core.ports import Clock, EventSink, SessionStore
from agentd.core.transcript import History, Row, RowRole, SessionInfo
from agentd.core.turn import SessionKey, StopReason, Turn, TurnRequest
from agentd.engine import tokens
from agentd.engine.approvals import Grants
from agentd.engine.compaction.manager import Compaction
from agentd.engine.compaction.replacement import EXTRACTED
from agentd.engine.context import TurnPromptParts
from agentd.engine.durable import when_space
from agentd.engine.hook_questions import HookQuestions
from agentd.engine.session_contexts import SessionContexts

log = structlog.get_logger()

COMPACTED = "The conversation was compacted: older messages are summarised now and stay searchable."
EXCERPTED = (
    "The conversation was compacted: older messages stay searchable, but no summary of them could "
    "be had, so excerpts stand in for it."
)
STARTED_OVER = "A new conversation begins here; what was said before stays searchable."
_LONG = 2  # windows; a longer context takes so many summary calls that no turn waits for them


class ContextRoom:
    """Makes room in a session's context when a turn needs it, and tells the session what came of
    it; gives a turn less of the context when all of it does not fit. How room is made is the
    business of `Compaction`.
    """

    def __init__(
        self,
        store: SessionStore,
        contexts: SessionContexts,
        compaction: Compaction,
        questions: HookQuestions,
        events: EventSink,
        clock: Clock,
        grants: Grants,
        *,
        background: bool,
        idle_reset: timedelta = timedelta(0),
    ) -> None:
        self._store = store
        self._contexts = contexts
        self._compaction = compaction
        self._limits = compaction.limits
        self._questions = questions
        self._events = events
        self._clock = clock
        self._grants = grants
        self._background = background
        self._idle_reset = idle_reset
        self._due: set[SessionKey] = set()  # room is being made for them in the background

    def restore(self, sessions: Sequence[SessionInfo]) -> tuple[SessionKey, ...]:
        """Take over, at a start, the failures of summaries that are stored with the sessions, and
        return the sessions whose flushes are due.
        """
        self._compaction.restore(sessions)
        return tuple(info.key for info in sessions if info.flush_due)

    async def make_room_before(self, past: History, context: TurnPromptParts) -> bool:
        """Make room if the turn would not fit, or empty the context if nobody has spoken for
        `idle_reset`. Return whether the context may have changed. Raises ShuttingDown,
        StorageError.
        """
        self._contexts.weigh(context)
        request = context.request
        trigger = await self._trigger_before(past, request)
        if trigger is None:
            return False
        await self.make_room(request.session, trigger, request.blocks)
        return True

    async def _trigger_before(self, past: History, request: TurnRequest) -> Trigger | None:
        """Return why room must be made before the turn; None if the turn goes ahead.

        While room is already being made in the background, a turn that fits goes ahead. If
        compaction runs in the background, so does a turn whose context is longer than two windows:
        it runs on an excerpt (`fitting`), and room is made after it.
        """
        limits = self._limits
        if self._is_over(past):
            return Trigger.IDLE
        if self._contexts.known(request.session).is_refused and not self._background:
            return Trigger.OVERFLOW
        used = await self._contexts.measured(past, request.blocks)
        from_here = limits.compact_at if self._background else limits.flush_at
        log.info("room_judged", session=request.session, tokens=used, make_room_at=from_here)
        if used < from_here:
            return None
        if self._fits(used) and self._compaction.is_working(request.session):
            return None
        if self._background and (used >= _LONG * limits.window or past.left_out):
            return None
        return Trigger.THRESHOLD

    async def fitting(self, past: History, request: TurnRequest) -> History:
        """Return the history that the turn of that request can carry: `past` itself if all of it
        fits or nothing can be left out, else an excerpt.
        """
        used = await self._contexts.measured(past, request.blocks)
        if self._fits(used) and not past.left_out:
            return past
        part = await offload_rows(past.rows, partial(self._compaction.excerpt, past, used))
        if part is not past:
            log.info("context_excerpted", session=past.session, tokens=used)
            self._contexts.state(past.session).is_owed = True
            if not past.is_excerpted:
                await when_space(self._clock, self._store.mark_excerpted, past.session)
        return part

    async def shorter(self, past: History, carried: Sequence[Row], turn_id: int) -> History | None:
        """Return a part of the history for a turn whose prompt the service found too long with the
        rows that it carried; None if nothing more can be left out. Nothing is stored: a service
        that refuses every prompt must not cost the session its context.
        """
        part = await offload_rows(past.rows, partial(self._compaction.shorter, past, carried))
        if part is past:
            return None
        log.info("context_excerpted", session=past.session, tokens=tokens.of_rows(part.rows))
        self._contexts.carry_part(past.session, turn_id)
        return part

    def worked_shorter(self, session: SessionKey) -> None:
        """Have room made between turns: a turn that the service found too long has been answered
        on a part of its context.
        """
        state = self._contexts.state(session)
        state.is_owed = state.is_refused = True

    def is_ample(self, turn: Turn) -> bool:
        """Whether the session surely needs no room after this turn: the turn ended with an answer,
        and all its calls together, which used no less than its context holds, stayed below the
        flush threshold. Reads nothing from the store.
        """
        answered = turn.stop_reason is StopReason.END_TURN
        used = turn.usage.total_tokens
        is_small = 0 < used < self._limits.flush_at
        return answered and is_small and not self._contexts.known(turn.session).is_owed

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
        self._due.discard(session)

    async def _ahead(self, session: SessionKey, trigger: Trigger) -> None:
        if trigger is Trigger.THRESHOLD and self._compaction.is_working(session):
            return  # the turn after it asks again
        if trigger is Trigger.THRESHOLD and self._contexts.known(session).is_refused:
            trigger = Trigger.OVERFLOW
        history = await self._contexts.read_between_turns(session)
        used = await self._contexts.measured(history)
        need = await offload_rows(
            history.rows, lambda: self._compaction.need(history, used, trigger)
        )
        is_due = need.flush or need.cut or history.flush_due
        if not self._background or not is_due:
            return
        self._due.add(session)
        await self.make_room(session, trigger)

    async def store_due(self) -> None:
        """Store, for the next start, which sessions' flushes are due. A failure is only logged."""
        due = tuple(self._due)
        self._due.clear()
        if not due:
            return
        try:
            await self._store.set_flush_due(due)
        except StorageError as error:
            log.warning("flush_due_not_stored", sessions=due, reason=error.reason)

    async def make_room(
        self,
        session: SessionKey,
        trigger: Trigger,
        incoming: Sequence[Block] = (),
        wish: str = "",
    ) -> CompactionReport:
        """Have the context flushed and cut as `trigger` calls for, tell the session if rows left
        it, and return the report. `incoming` is the message that waits for the room, `wish` what
        the user wants from the summary. Raises ShuttingDown, StorageError.
        """
        if trigger.empties:
            self._grants.end(session)
        if trigger is Trigger.OVERFLOW:
            self._contexts.state(session).is_refused = False
        report = await self._compaction.make_room(
            session,
            trigger,
            partial(self._questions.ask, session),
            measure=lambda history: self._contexts.measure(history, incoming),
            unfinished=partial(self._contexts.unfinished, session),
            wish=wish,
        )
        if report.compacted:
            words = STARTED_OVER if trigger.empties else COMPACTED
            words = EXCERPTED if report.reason == EXTRACTED else words
            words = " ".join(filter(None, (words, report.unsaved_in_words())))
            await when_space(self._clock, self._store.notice, session, words, "compaction")
            self._events.emit(NoticeGiven(session, words, "compaction"))
        return report

    def forget(self, session: SessionKey) -> None:
        """Forget what is known of the session's context, which is deleted."""
        self._due.discard(session)
        self._contexts.forget(session)
        self._compaction.forget(session)
        self._grants.end(session)

    def _fits(self, used: int) -> bool:
        """Whether a request of `used` tokens leaves at least half of the reserve for its answer."""
        return used < (self._limits.compact_at + self._limits.window) // 2

    def _is_over(self, past: History) -> bool:
        """Whether the session has been idle for `idle_reset`, so that the next message begins a new
        conversation. Alerts and silent turns do not count.
        """
        spoken = [row.at for row in past.rows if row.role is not RowRole.NOTICE]
        if not (self._idle_reset and spoken):
            return False
        return self._clock.now() - spoken[-1] >= self._idle_reset
