"""The only code that makes a context smaller.

Every request for room (a threshold, an overflow, the user, a restart) goes through `make_room`:
plan, hooks in order, then summary and swap. Rows that leave a context have always been offered to
the hooks before, whole, from the durable log; nothing is ever deleted. What replaces them is made
in `replacement.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from math import ceil
from typing import Any
from weakref import WeakValueDictionary

import structlog
from msgspec import Struct
from msgspec.structs import replace

from agentd.core.compaction import Answer, CompactionPlan, CompactionReport, Question, Trigger
from agentd.core.errors import ProviderError, ShuttingDown
from agentd.core.failpoints import hit
from agentd.core.health import Problem
from agentd.core.offloading import offload_rows
from agentd.core.outside import without_outside_text
from agentd.core.ports import Clock, CompactionHook, SessionStore
from agentd.core.transcript import (
    AWAY,
    Coverage,
    History,
    Row,
    SessionInfo,
    unsaved_ranges,
)
from agentd.core.turn import SessionKey, SessionKind, kind_of
from agentd.engine import tokens
from agentd.engine.compaction.compaction_settings import CompactionSettings
from agentd.engine.compaction.plan import Thresholds, cut_point, first_apart, shorter_from
from agentd.engine.compaction.replacement import Replacements, spoken
from agentd.engine.compaction.summary import Summariser
from agentd.engine.durable import when_space

log = structlog.get_logger()
Ask = Callable[[Question], Awaitable[Answer]]

_EXCERPTED = 1000  # rows that an excerpt summarises at most, the newest ones
_CUTS = frozenset({Trigger.THRESHOLD, Trigger.OVERFLOW, Trigger.MANUAL, Trigger.NEW, Trigger.IDLE})


class CompactionNeed(Struct, frozen=True):
    """Whether a context is to be flushed or cut, and why; `tokens` is the next request's size."""

    tokens: int
    flush: bool
    cut: bool
    reason: str


class _FlushOutcome(Struct, frozen=True):
    """The outcome of offering rows to memory: whether any were saved, and why others were not."""

    has_saved: bool = False
    failure: str = ""

    def then(self, failure: str) -> _FlushOutcome:
        """Return the outcome with one more lot of rows; `failure` is "" if they were saved."""
        return _FlushOutcome(self.has_saved or not failure, self.failure or failure)


class _CutOutcome(Struct, frozen=True):
    """The outcome of a cut: whether rows left the context, the reason, and what was saved."""

    compacted: bool
    reason: str
    saving: _FlushOutcome


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
        self._clock = clock
        self._limits = limits
        self._settings = settings
        self._locks: WeakValueDictionary[SessionKey, asyncio.Lock] = WeakValueDictionary()
        self._replacements = Replacements(store, summariser, clock, settings.retry_daily_tokens)
        self.last: dict[str, Any] | None = None

    @property
    def limits(self) -> Thresholds:
        """The thresholds in force."""
        return self._limits

    def restore(self, sessions: Iterable[SessionInfo]) -> None:
        """Take over the failures of summaries that were stored before this start."""
        self._replacements.restore(sessions)

    def forget(self, session: SessionKey) -> None:
        """Forget the failures of the session's summaries: the session is deleted."""
        self._replacements.forget(session)

    def problems(self) -> tuple[Problem, ...]:
        """Return a problem for each session whose summaries fail, most failures first."""
        return self._replacements.problems()

    def is_working(self, session: SessionKey) -> bool:
        """Whether room is being made for the session right now."""
        lock = self._locks.get(session)
        return lock is not None and lock.locked()

    def alone(self, session: SessionKey) -> asyncio.Lock:
        """Return the lock of the session's context; while it is held, no room is made."""
        return self._locks.setdefault(session, asyncio.Lock())

    def need(self, history: History, used: int, trigger: Trigger) -> CompactionNeed:
        """Return what `trigger` calls for when the next request over these finished rows has `used`
        tokens.

        Between the thresholds one flush is enough, until rows of `compact_at - flush_at` more
        tokens have come; a cut flushes the rest in any case. A context that a service found too
        long is cut as one above `compact_at`. While a failed summary is paused, such a context is
        flushed, but not cut.
        """
        uncovered = [r for r in spoken(history.rows) if r.seq > history.covered_to]
        is_refused = trigger is Trigger.OVERFLOW
        if trigger is not Trigger.THRESHOLD and not is_refused:  # asked for, however small it is
            cut, flush, idle = trigger in _CUTS, bool(uncovered), "below_threshold"
        else:
            is_held = self._replacements.is_paused(history)
            cut = (is_refused or used >= self._limits.compact_at) and not is_held
            is_due = cut or history.flush_due or self._is_flush_due(history, used, uncovered)
            flush = is_due and bool(uncovered)
            idle = "summary_failed" if is_held else "below_threshold"
        return CompactionNeed(used, flush, cut, str(trigger) if cut or flush else idle)

    def _is_flush_due(self, history: History, used: int, uncovered: Sequence[Row]) -> bool:
        """Whether so much has been said since the last flush that the next one is due."""
        if used < self._limits.flush_at:
            return False
        is_first = history.covered_to <= history.swapped_at
        margin = self._limits.compact_at - self._limits.flush_at
        return is_first or tokens.of_rows(uncovered) >= margin

    def excerpt(self, history: History, used: int) -> History:
        """Return a context that is too long for the next request, as one turn can carry it: the
        recent rows whole, an extract of the older ones. Return `history` itself if nothing can be
        left out.
        """
        need = CompactionNeed(used, flush=False, cut=True, reason="")
        return self._part(history, self._keep_from(history, need, Trigger.THRESHOLD, None))

    def shorter(self, history: History, rows: Sequence[Row]) -> History:
        """Return a part of the context for a turn whose prompt the service found too long with
        these rows of it: the newest of them whole, and an extract of the older ones. Return
        `history` itself if no row can be left out.
        """
        return self._part(history, shorter_from(rows)) if spoken(rows) else history

    def _part(self, history: History, at: int) -> History:
        """Return the rows from `at` on, and an extract of the older ones as the summary."""
        old = tuple(r for r in history.rows if r.seq < at)
        if not spoken(old):
            return history
        old = old[-_EXCERPTED:]
        if kind_of(history.session) is SessionKind.OWNER:
            old = without_outside_text(history.session, old)
        summary = self._replacements.excerpt(old, history.summary)
        kept = tuple(r for r in history.rows if r.seq >= at)
        return replace(history, rows=kept, summary=summary, context_from=at)

    async def make_room(
        self,
        session: SessionKey,
        trigger: Trigger,
        ask: Ask,
        *,
        measure: Callable[[History], int],
        unfinished: Callable[[], frozenset[int]] = frozenset,
        wish: str = "",
    ) -> CompactionReport:
        """Flush what is due, cut what must go, and return the report. `measure` returns the tokens
        of the next request; `wish` is what the user wants from the summary. The trigger FLUSH also
        retries rows that were given up.

        Rows of `unfinished` turns are left alone. Never raises for a failure of the model: the
        report's reason says what could not be done, and the context is as it was. Raises
        ShuttingDown, StorageError.
        """
        async with self.alone(session):
            waiting = unfinished()
            whole = await self._load(session)
            waiting |= unfinished()  # one may have come meanwhile
            history = await offload_rows(whole.rows, lambda: whole.without_turns(waiting))
            used = await offload_rows(history.rows, lambda: measure(history))
            need = await offload_rows(history.rows, lambda: self.need(history, used, trigger))
            again = await self._again(history, trigger)
            if not need.flush and not need.cut and not again:
                return CompactionReport(False, False, need.reason, used, used)
            plan = await offload_rows(
                whole.rows,
                lambda: self._plan(history, trigger, need, first_apart(whole, history), wish),
            )
            try:
                saving = await self._save(plan, again, ask)
                hit("compaction.flushed")
                cut = _CutOutcome(False, str(trigger), saving)
                if need.cut:
                    cut = await self._cut(plan, saving, ask)
            except ProviderError as error:  # what is due stays due until the service is back
                return CompactionReport(False, False, error.reason, used, used)
            after, saving = used, cut.saving
            if cut.compacted:
                left = await self._load(session)
                after = await offload_rows(left.rows, lambda: measure(left))
            count = await self._count_unsaved(session) if saving.failure else 0
            why = saving.failure if count else ""
            report = CompactionReport(
                saving.has_saved, cut.compacted, cut.reason, used, after, count, why
            )
            self._remember(plan, report)
            return report

    async def _again(self, history: History, trigger: Trigger) -> list[tuple[tuple[Row, ...], int]]:
        """Return the given-up rows to be offered again, in lots with their numbers of tries: all
        for FLUSH, those in the context if it is to be emptied, those of an outage if a flush is
        due.
        """
        if trigger is Trigger.FLUSH:
            return await self._given_up(history.session)
        if trigger.empties:
            lots = await self._given_up(history.session)
            return [lot for lot in lots if lot[0][0].seq >= history.context_from]
        return await self._given_up(history.session, AWAY) if history.flush_due else []

    async def _save(
        self, plan: CompactionPlan, again: Sequence[tuple[tuple[Row, ...], int]], ask: Ask
    ) -> _FlushOutcome:
        """Offer the uncovered rows to memory, then the given-up lots until one fails: a model that
        fails would fail the others, too. Raises what `_run_hooks` raises.
        """
        saving = _FlushOutcome()
        if plan.uncovered:
            saving = saving.then(await self._run_hooks(plan, ask))
        for rows, times in again:
            if saving.failure:
                break
            once_more = replace(plan, uncovered=rows, failures=0, last_try=True, given_up=times)
            saving = saving.then(await self._run_hooks(once_more, ask))
        return saving

    async def _last_chance(
        self, plan: CompactionPlan, saving: _FlushOutcome, ask: Ask
    ) -> _FlushOutcome:
        """Offer to memory, for the last time, the uncovered rows that are about to leave the
        context.
        """
        history = await self._load(plan.session)
        left = tuple(row for row in plan.uncovered if row.seq > history.covered_to)
        if not left:
            return saving
        if saving.failure == AWAY:
            await self._lost(plan.session, left, AWAY)
            await when_space(self._clock, self._store.set_flush_due, (plan.session,))
            return saving
        last = replace(plan, uncovered=left, failures=history.flush_failures, last_try=True)
        return _FlushOutcome(saving.has_saved).then(await self._run_hooks(last, ask))

    async def _lost(self, session: SessionKey, rows: Sequence[Row], reason: str) -> None:
        lost = Coverage(rows[0].seq, rows[-1].seq, ok=False, reason=reason)
        await when_space(self._clock, self._store.cover, session, lost)

    async def _count_unsaved(self, session: SessionKey) -> int:
        lots = await self._given_up(session)
        return sum(len(rows) for rows, _ in lots)

    async def _given_up(
        self, session: SessionKey, reason: str = ""
    ) -> list[tuple[tuple[Row, ...], int]]:
        """Return the rows that no flush could save, in lots with their numbers of tries, also those
        that left the context; with a `reason`, only those given up for it.
        """
        coverages = await when_space(self._clock, self._store.coverages, session)
        if reason:
            coverages = tuple(one for one in coverages if one.is_settled or one.reason == reason)
        found = []
        for first, last, times in unsaved_ranges(coverages):
            count = last - first + 1
            rows = await when_space(self._clock, self._store.rows, session, first, count)
            lot = tuple(spoken(row for row in rows if row.seq <= last))
            if lot:
                found.append((lot, times))
        return found

    async def _load(self, session: SessionKey) -> History:
        return await when_space(self._clock, self._store.load, session)

    def _plan(
        self,
        history: History,
        trigger: Trigger,
        need: CompactionNeed,
        running: int | None,
        wish: str,
    ) -> CompactionPlan:
        rows = history.rows
        uncovered = tuple(r for r in spoken(rows) if r.seq > history.covered_to)
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
            trouble=history.trouble,
            ends_taint=trigger is Trigger.MANUAL and _carries_outside(history),
            wish=wish,
        )

    def _keep_from(
        self, history: History, need: CompactionNeed, trigger: Trigger, running: int | None
    ) -> int:
        """Return the row at which the context is to begin: at most `running`, the first row of the
        running turns.
        """
        rows = history.rows
        if not rows:
            return history.context_from
        end = rows[-1].seq + 1 if running is None else min(running, rows[-1].seq + 1)
        if trigger.empties:
            return end
        tail = int(self._limits.window * self._settings.tail_ratio)
        estimated = tokens.of_rows(rows)
        if estimated < need.tokens:  # rows take more tokens than estimated, those of the tail too
            tail = tail * estimated // need.tokens
        if trigger is Trigger.OVERFLOW:  # a quarter is what a shorter prompt has worked with
            tail = min(tail, estimated // 4)
        elif trigger is not Trigger.THRESHOLD:  # asked for room: half of what there is must go
            tail = min(tail, estimated // 2)
        return min(end, cut_point(rows, tail))

    async def _run_hooks(self, plan: CompactionPlan, ask: Ask) -> str:
        """Run every hook; on the last try record as lost what is not saved. Return why not all was
        saved, "" if it was. Raises ProviderError if the rows can wait for a service that is away.
        """
        reason = "not_covered"
        rows = plan.uncovered
        used = await offload_rows(rows, lambda: tokens.of_rows(rows))
        windows = max(1, ceil(used / self._limits.window))
        limit = self._settings.hook_timeout.total_seconds() * windows
        for hook in self._hooks:
            try:
                async with asyncio.timeout(limit):
                    await hook.before_compaction(plan, ask)
            except TimeoutError:
                reason = f"{hook.name}_timeout"
                log.warning("hook_timeout", hook=hook.name, session=plan.session)
            except ShuttingDown:
                raise
            except ProviderError as error:
                if error.away and plan.trigger is not Trigger.NEW:  # which does not wait it out
                    raise
                reason = AWAY if error.away else f"{hook.name}_failed"
                log.warning("hook_failed", hook=hook.name, session=plan.session, why=error.reason)
            except Exception:
                # Boundary: a hook that raises loses only its own work; the context still fits.
                reason = f"{hook.name}_failed"
                log.exception("hook_failed", hook=hook.name, session=plan.session)
        last = plan.uncovered[-1].seq
        left = (await self._load(plan.session)).covered_to + 1
        if left <= last and plan.last_try:
            await self._lost(plan.session, [r for r in plan.uncovered if r.seq >= left], reason)
        if left <= last:
            return reason
        covered = await when_space(self._clock, self._store.coverages, plan.session)
        found = next(one for one in reversed(covered) if one.first <= last <= one.last)
        return "" if found.ok else found.reason

    async def _cut(self, plan: CompactionPlan, saving: _FlushOutcome, ask: Ask) -> _CutOutcome:
        """Take the old rows out of the context. Rows that could not be saved are given up only once
        there is a summary or an extract to replace them.
        """
        if not plan.trigger.empties and not spoken(plan.old) and not plan.ends_taint:
            return _CutOutcome(False, "nothing_to_compact", saving)
        replacement = await self._replacements.of(plan)
        if replacement.failure:
            return _CutOutcome(False, replacement.failure, saving)
        hit("compaction.summarised")
        saving = await self._last_chance(plan, saving, ask)
        swapped = await when_space(
            self._clock,
            self._store.swap,
            plan.session,
            plan.generation,
            plan.keep_from,
            replacement.summary,
            replacement.outside,
        )
        hit("compaction.swapped")
        return _CutOutcome(swapped, replacement.reason if swapped else "stale", saving)

    def _remember(self, plan: CompactionPlan, report: CompactionReport) -> None:
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


def _carries_outside(history: History) -> bool:
    """Whether a swap would take text from outside out of the session's prompts."""
    if kind_of(history.session) is not SessionKind.OWNER:
        return False
    return any(r.source.tainted and r.seq > history.swapped_at for r in spoken(history.rows))
