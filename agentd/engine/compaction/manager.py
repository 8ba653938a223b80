"""The one door through which a context shrinks.

Whoever asks for room (a threshold, an overflow, the user, a restart) comes through `make_room`: plan,
hooks in order, then summary and swap. What is cut has always been offered to the hooks before, from
the durable log, whole; nothing is ever deleted.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog

from agentd.domain.compaction import Answer, CompactionPlan, Question, RoomReport, Trigger
from agentd.domain.transcript import Coverage, History, Row, RowRole
from agentd.domain.turn import SessionKey
from agentd.engine import tokens
from agentd.engine.compaction.plan import Thresholds, cut_point
from agentd.engine.compaction.settings import CompactionSettings
from agentd.engine.compaction.summary import Summariser
from agentd.errors import ProviderError, ShuttingDown
from agentd.failpoints import hit
from agentd.ports import Clock, CompactionHook, SessionStore

log = structlog.get_logger()
Ask = Callable[[Question], Awaitable[Answer]]

_CUTS = frozenset({Trigger.THRESHOLD, Trigger.OVERFLOW, Trigger.MANUAL, Trigger.NEW})


@dataclass(frozen=True, slots=True)
class Need:
    """What a session's context is like, and what that calls for."""

    tokens: int
    flush: bool
    cut: bool
    reason: str


class Compaction:
    """Makes room in sessions' contexts, one at a time for each session."""

    def __init__(
        self,
        store: SessionStore,
        hooks: Sequence[CompactionHook],
        summariser: Summariser,
        clock: Clock,
        limits: Thresholds,
        settings: CompactionSettings,
    ) -> None:
        self._store = store
        self._hooks = tuple(hooks)
        self._summariser = summariser
        self._clock = clock
        self._limits = limits
        self._settings = settings
        self._rooms: dict[SessionKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.last: dict[str, Any] | None = None

    @property
    def limits(self) -> Thresholds:
        """The thresholds in force."""
        return self._limits

    def is_working(self, session: SessionKey) -> bool:
        """Whether room is being made for the session right now."""
        return session in self._rooms and self._rooms[session].locked()

    def need(self, history: History, used: int, trigger: Trigger) -> Need:
        """What `trigger` calls for when the next request has `used` tokens."""
        uncovered = bool(finished(history, None)) and history.covered_to < _last_spoken(history)
        due = used >= self._limits.flush_at or history.flush_due or trigger is not Trigger.THRESHOLD
        over = used >= self._limits.compact_at
        cut = trigger in _CUTS and (over or trigger is not Trigger.THRESHOLD)
        reason = str(trigger) if cut or (due and uncovered) else "below_threshold"
        return Need(used, uncovered and due, cut, reason)

    async def make_room(
        self,
        session: SessionKey,
        trigger: Trigger,
        ask: Ask,
        *,
        measure: Callable[[History], int],
        turn_id: int | None = None,
    ) -> RoomReport:
        """Flush what is due and cut what must go; `measure` gives the size of the next request.

        Rows of the running turn `turn_id` are left alone. Never raises for a model's failure: what
        could not be done is in the report's reason, and the context is as it was.
        """
        async with self._rooms[session]:
            history = await self._store.load(session)
            used = measure(history)
            need = self.need(history, used, trigger)
            if not need.flush and not need.cut:
                return RoomReport(False, False, need.reason, used, used)
            plan = self._plan(history, trigger, need, turn_id)
            flushed = await self._run_hooks(plan, ask) if plan.uncovered else False
            hit("compaction.flushed")
            compacted, reason = await self._cut(plan) if need.cut else (False, need.reason)
            after = used
            if compacted:
                after = measure(await self._store.load(session))
            report = RoomReport(flushed, compacted, reason, used, after)
            self._remember(plan, report)
            return report

    def _plan(
        self, history: History, trigger: Trigger, need: Need, turn_id: int | None
    ) -> CompactionPlan:
        rows = finished(history, turn_id)
        uncovered = tuple(
            r
            for r in rows
            if r.seq > history.covered_to and r.role in (RowRole.USER, RowRole.ASSISTANT)
        )
        keep_from = history.context_from
        if need.cut:
            keep_from = self._keep_from(history, rows, trigger, turn_id)
        return CompactionPlan(
            session=history.session,
            trigger=trigger,
            generation=history.generation,
            uncovered=uncovered if need.flush or need.cut else (),
            old=tuple(r for r in rows if r.seq < keep_from),
            keep_from=keep_from,
            summary=history.summary,
            failures=history.flush_failures,
            last_try=need.cut,
        )

    def _keep_from(
        self, history: History, rows: Sequence[Row], trigger: Trigger, turn_id: int | None
    ) -> int:
        if trigger is Trigger.NEW:
            return (history.rows[-1].seq if history.rows else history.context_from - 1) + 1
        tail = int(self._limits.window * self._settings.tail_ratio)
        if trigger is not Trigger.THRESHOLD:  # asked for room: half of what there is must go
            tail = min(tail, tokens.of_rows(rows) // 2)
        if not rows:
            return history.context_from
        running = [r.seq for r in history.rows if turn_id is not None and r.turn_id == turn_id]
        if running and trigger is Trigger.OVERFLOW:
            return min(running[0], max(cut_point(rows, tail // 2), history.context_from))
        return cut_point(rows, tail)

    async def _run_hooks(self, plan: CompactionPlan, ask: Ask) -> bool:
        """Let every hook act, then make sure that what is about to be cut is accounted for."""
        reason = "not_covered"
        for hook in self._hooks:
            try:
                async with asyncio.timeout(self._settings.hook_timeout.total_seconds()):
                    await hook.before_compaction(plan, ask)
            except TimeoutError:
                reason = f"{hook.name}_timeout"
                log.warning("hook_timeout", hook=hook.name, session=plan.session)
            except ShuttingDown:
                raise
            except Exception:
                # A hook may lose only its own work; the trace is in the log, the context still fits.
                reason = f"{hook.name}_failed"
                log.exception("hook_failed", hook=hook.name, session=plan.session)
        last = plan.uncovered[-1].seq
        left = (await self._store.load(plan.session)).covered_to + 1
        if left <= last and plan.last_try:
            first = max(left, plan.uncovered[0].seq)
            await self._store.cover(plan.session, Coverage(first, last, ok=False, reason=reason))
        if left <= last:
            return False
        return (await self._store.coverages(plan.session))[-1].ok

    async def _cut(self, plan: CompactionPlan) -> tuple[bool, str]:
        if plan.trigger is not Trigger.NEW and not _spoken(plan.old):
            return False, "nothing_to_compact"
        summary = ""
        if plan.trigger is not Trigger.NEW:
            try:
                async with asyncio.timeout(self._settings.timeout.total_seconds()):
                    summary = await self._summariser.summarise(plan.session, plan.old, plan.summary)
            except (ProviderError, TimeoutError) as error:
                why = error.reason if isinstance(error, ProviderError) else "summary_timeout"
                log.warning("compaction_gave_up", session=plan.session, reason=why)
                return False, why
        hit("compaction.summarised")
        swapped = await self._store.swap(plan.session, plan.generation, plan.keep_from, summary)
        hit("compaction.swapped")
        return swapped, str(plan.trigger) if swapped else "stale"

    def _remember(self, plan: CompactionPlan, report: RoomReport) -> None:
        self.last = {
            "session": plan.session,
            "trigger": str(plan.trigger),
            "at": self._clock.now().isoformat(),
            "generation": plan.generation,
            "uncovered": len(plan.uncovered),
            "old": len(plan.old),
            **report.as_json(),
        }
        log.info("room_made", **self.last)


def finished(history: History, turn_id: int | None) -> tuple[Row, ...]:
    """The rows of the context that do not belong to the running turn."""
    return tuple(r for r in history.rows if turn_id is None or r.turn_id != turn_id)


def without_turn(history: History, turn_id: int) -> History:
    """The history as it was before the turn began."""
    return replace(history, rows=finished(history, turn_id))


def _last_spoken(history: History) -> int:
    spoken = _spoken(history.rows)
    return spoken[-1].seq if spoken else 0


def _spoken(rows: Sequence[Row]) -> list[Row]:
    return [r for r in rows if r.role in (RowRole.USER, RowRole.ASSISTANT)]
