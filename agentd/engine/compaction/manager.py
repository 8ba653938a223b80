"""The one door through which a context shrinks.

Whoever asks for room (a threshold, an overflow, the user, a restart) comes through `make_room`: plan,
hooks in order, then summary and swap. What is cut has always been offered to the hooks before, from
the durable log, whole; nothing is ever deleted.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from agentd.domain.compaction import Answer, CompactionPlan, Question, RoomReport, Trigger
from agentd.domain.outside import cleaned, from_outside
from agentd.domain.transcript import Coverage, History, Row
from agentd.domain.turn import Kind, SessionKey, kind_of
from agentd.engine import tokens
from agentd.engine.compaction.plan import Thresholds, cut_point
from agentd.engine.compaction.settings import CompactionSettings
from agentd.engine.compaction.summary import Summariser, SummaryRefused
from agentd.engine.durable import when_space
from agentd.errors import ProviderError, ShuttingDown
from agentd.failpoints import hit
from agentd.ports import Clock, CompactionHook, SessionStore

log = structlog.get_logger()
Ask = Callable[[Question], Awaitable[Answer]]

_CUTS = frozenset({Trigger.THRESHOLD, Trigger.OVERFLOW, Trigger.MANUAL, Trigger.NEW, Trigger.IDLE})


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

    def close(self) -> None:
        """Begin no more model calls: the daemon is stopping."""
        self._summariser.close()

    def is_working(self, session: SessionKey) -> bool:
        """Whether room is being made for the session right now."""
        return session in self._rooms and self._rooms[session].locked()

    def alone(self, session: SessionKey) -> asyncio.Lock:
        """While it is held no room is made for the session."""
        return self._rooms[session]

    def need(self, history: History, used: int, trigger: Trigger) -> Need:
        """What `trigger` calls for when the next request over these finished rows has `used` tokens.

        Between the thresholds one flush is enough, until as much again has been said: a cut flushes
        what is left in any case.
        """
        uncovered = [r for r in _spoken(history.rows) if r.seq > history.covered_to]
        over = used >= self._limits.compact_at
        margin = self._limits.compact_at - self._limits.flush_at
        due = trigger is not Trigger.THRESHOLD or history.flush_due or over
        if not due and used >= self._limits.flush_at:
            is_first = history.covered_to <= history.swapped_at
            due = is_first or tokens.of_rows(uncovered) >= margin
        cut = trigger in _CUTS and (over or trigger is not Trigger.THRESHOLD)
        flush = due and bool(uncovered)
        return Need(used, flush, cut, str(trigger) if cut or flush else "below_threshold")

    async def make_room(
        self,
        session: SessionKey,
        trigger: Trigger,
        ask: Ask,
        *,
        measure: Callable[[History], int],
        unfinished: Callable[[], frozenset[int]] = frozenset,
    ) -> RoomReport:
        """Flush what is due and cut what must go; `measure` gives the size of the next request.

        Rows of `unfinished` turns are left alone. Never raises for a model's failure: what could
        not be done is in the report's reason, and the context is as it was. Raises ShuttingDown,
        StorageError.
        """
        async with self._rooms[session]:
            waiting = unfinished()
            whole = await self._load(session)
            history = without_turns(whole, waiting | unfinished())  # one may have come meanwhile
            used = measure(history)
            need = self.need(history, used, trigger)
            if not need.flush and not need.cut:
                return RoomReport(False, False, need.reason, used, used)
            plan = self._plan(history, trigger, need, _first_apart(whole, history))
            flushed = await self._run_hooks(plan, ask) if plan.uncovered else False
            hit("compaction.flushed")
            compacted, reason = await self._cut(plan) if need.cut else (False, need.reason)
            after = used
            if compacted:
                after = measure(await self._load(session))
            report = RoomReport(flushed, compacted, reason, used, after)
            self._remember(plan, report)
            return report

    async def _load(self, session: SessionKey) -> History:
        return await when_space(self._clock, lambda: self._store.load(session))

    def _plan(
        self, history: History, trigger: Trigger, need: Need, running: int | None
    ) -> CompactionPlan:
        rows = history.rows
        uncovered = tuple(r for r in _spoken(rows) if r.seq > history.covered_to)
        keep_from = history.context_from
        if need.cut:
            keep_from = self._keep_from(history, need, trigger, running)
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
            ends_taint=trigger is Trigger.MANUAL and _carries_outside(history),
        )

    def _keep_from(
        self, history: History, need: Need, trigger: Trigger, running: int | None
    ) -> int:
        """Where the context is to begin; never behind `running`, the first row that is left alone."""
        rows = history.rows
        if not rows:
            return history.context_from
        end = rows[-1].seq + 1 if running is None else min(running, rows[-1].seq + 1)
        if trigger.empties:
            return end
        tail = int(self._limits.window * self._settings.tail_ratio)
        estimated = tokens.of_rows(rows)
        if estimated < need.tokens:  # rows weigh more than estimated, and so do those of the tail
            tail = tail * estimated // need.tokens
        if trigger is not Trigger.THRESHOLD:  # asked for room: half of what there is must go
            tail = min(tail, estimated // 2)
        if running is None or trigger is not Trigger.OVERFLOW:
            return min(end, cut_point(rows, tail))
        at = min(end, cut_point(rows, tail // 2))
        # The running turn brings the last user message, so all of the rest may go if it must.
        return at if _spoken(r for r in rows if r.seq < at) else end

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
        left = (await self._load(plan.session)).covered_to + 1
        if left <= last and plan.last_try:
            first = max(left, plan.uncovered[0].seq)
            lost = Coverage(first, last, ok=False, reason=reason)
            await when_space(self._clock, lambda: self._store.cover(plan.session, lost))
        if left <= last:
            return False
        covered = await when_space(self._clock, lambda: self._store.coverages(plan.session))
        return covered[-1].ok

    async def _cut(self, plan: CompactionPlan) -> tuple[bool, str]:
        if not plan.trigger.empties and not _spoken(plan.old) and not plan.ends_taint:
            return False, "nothing_to_compact"
        summary = outside = ""
        if not plan.trigger.empties:
            try:
                async with asyncio.timeout(self._settings.timeout.total_seconds()):
                    summary, outside = await self._summaries(plan)
            except (ProviderError, TimeoutError) as error:
                why = error.reason if isinstance(error, ProviderError) else "summary_timeout"
                log.warning("compaction_gave_up", session=plan.session, reason=why)
                return False, why
        hit("compaction.summarised")
        swapped = await when_space(
            self._clock,
            lambda: self._store.swap(
                plan.session, plan.generation, plan.keep_from, summary, outside
            ),
        )
        hit("compaction.swapped")
        return swapped, str(plan.trigger) if swapped else "stale"

    async def _summaries(self, plan: CompactionPlan) -> tuple[str, str]:
        """What the context goes on with, and apart from it what came from outside. Among others there is
        nothing else. Raises ProviderError.
        """
        ask = partial(self._summariser.summarise, plan.session)
        if kind_of(plan.session) is not Kind.MAIN:
            return await ask(plan.old, plan.summary), ""
        if not _spoken(plan.old):
            return plan.summary, ""
        summary = await ask(cleaned(plan.session, plan.old), plan.summary)
        outside = from_outside(_spoken(plan.old))
        if not outside:
            return summary, ""
        try:
            return summary, await ask(outside, "")
        except SummaryRefused as error:
            # Nothing is lost with it: the rows stay, and no context would have carried it.
            log.warning("outside_not_summarised", session=plan.session, reason=error.reason)
            return summary, ""

    def _remember(self, plan: CompactionPlan, report: RoomReport) -> None:
        self.last = {
            "session": plan.session,
            "trigger": str(plan.trigger),
            "at": self._clock.now().isoformat(),
            "flush_at": self._limits.flush_at,
            "compact_at": self._limits.compact_at,
            "generation": plan.generation,
            "uncovered": len(plan.uncovered),
            "old": len(plan.old),
            **report.as_json(),
        }
        log.info("room_made", **self.last)


def without_turns(history: History, turns: frozenset[int]) -> History:
    """The history as if these turns had not begun."""
    return replace(history, rows=tuple(r for r in history.rows if r.turn_id not in turns))


def _first_apart(whole: History, history: History) -> int | None:
    """The first row of `whole` that `history` leaves out."""
    held = {r.seq for r in history.rows}
    return next((r.seq for r in whole.rows if r.seq not in held), None)


def _carries_outside(history: History) -> bool:
    """Whether a swap would take text from outside out of the session's prompts."""
    if kind_of(history.session) is not Kind.MAIN:
        return False
    return any(r.source.tainted and r.seq > history.swapped_at for r in _spoken(history.rows))


def _spoken(rows: Iterable[Row]) -> list[Row]:
    return [r for r in rows if r.role.is_spoken]
