"""Checks of the daemon's work: ticks, flushes, retention, turns, alerts, model, budget, clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from agentd.core.alert import DeliveryState
from agentd.core.errors import BudgetReached
from agentd.core.health import Finding, Problem
from agentd.core.ports import Clock, Outbox, SessionStore
from agentd.core.retention import Retained
from agentd.core.times import format_duration
from agentd.core.transcript import Coverage, History, unsaved_ranges
from agentd.core.turn import Origin, SessionKey
from agentd.providers.resilience import LastHeard

_RECENT_ALERTS = 200
_WATCHED_SINK = "socket"  # fails whenever no client is connected, which is no fault
_SET_BACK = 60.0  # seconds


class TicksCheck(Struct, frozen=True):
    """Checks that the ticks still run. `ages` returns the seconds since each tick last ran,
    `interval` is the time between two runs in seconds.
    """

    ages: Callable[[], Mapping[str, float]]
    interval: float
    code: str = "ticks"

    async def look(self) -> Finding:
        """Fail if a tick last ran more than two intervals ago, or none has run."""
        ages = self.ages()
        late = {name: age for name, age in ages.items() if age > 2 * self.interval}
        if not ages or late:
            told = ", ".join(f"{name} {age:.0f} s ago" for name, age in late.items()) or "never"
            return Finding.fail(self.code, f"the schedule last woke: {told}", "`agentd restart`")
        return Finding.ok(
            self.code,
            f"heartbeats and jobs are seen to: the schedule woke {max(ages.values()):.0f} s ago",
        )


class FlushesCheck(Struct, frozen=True):
    """Checks that a flush handled all messages that left a context, and saved them."""

    store: SessionStore
    enabled: bool
    code: str = "flushes"

    async def look(self) -> Finding:
        """Warn of sessions with cut messages that no flush covered, or whose flush failed."""
        if not self.enabled:
            return Finding.ok(self.code, "saving memories before a cut is off")
        uncovered: list[str] = []
        failed: list[str] = []
        for info in await self.store.sessions():
            coverages = await self.store.coverages(info.key)
            history = await self.store.load(info.key)
            if await self._is_uncovered(history, coverages):
                uncovered.append(info.key)
            if history.flush_failures or await self._is_unsaved(info.key, coverages):
                failed.append(info.key)
        for keys, what in ((uncovered, "left the context unsaved"), (failed, "were not saved")):
            if keys:
                text = f"messages of {', '.join(keys)} {what}; they are still found by search"
                return Finding.warn(self.code, text, f"`agentd sessions flush {keys[0]}`")
        return Finding.ok(
            self.code, "what left the context of a conversation was saved as memories before"
        )

    async def _is_unsaved(self, session: SessionKey, coverages: Sequence[Coverage]) -> bool:
        """Whether a row still exists that its flush gave up saving."""
        for first, last, _ in unsaved_ranges(coverages):
            rows = await self.store.rows(session, first, 1)
            if any(row.seq <= last for row in rows):
                return True
        return False

    async def _is_uncovered(self, history: History, coverages: Sequence[Coverage]) -> bool:
        """Whether a spoken row was cut from the context and is in no coverage."""
        cut = history.context_from - 1
        if cut <= 0:
            return False
        rows = await self.store.rows(history.session, 1, cut)
        return any(
            row.seq <= cut
            and row.role.is_spoken
            and not any(c.first <= row.seq <= c.last for c in coverages)
            for row in rows
        )


class RetentionCheck(Struct, frozen=True):
    """Checks that rows older than `[storage] retention_days` are erased."""

    status: Callable[[], Retained]
    code: str = "retention"

    async def look(self) -> Finding:
        """Warn of old rows that stay because no flush saved them, with the reasons."""
        status = self.status()
        if not status.days:
            return Finding.ok(self.code, "conversations are kept for ever")
        if status.kept:
            why = ", ".join(f"{count} ({reason})" for reason, count in sorted(status.kept.items()))
            text = f"rows older than {status.days} days stay, since no flush has saved them: {why}"
            cure = "export what you want to keep, then `agentd sessions delete` those conversations"
            return Finding.warn(self.code, text, cure)
        last = status.last.isoformat() if status.last else "not yet"
        return Finding.ok(
            self.code, f"conversations are erased after {status.days} days; last looked: {last}"
        )


class UnfinishedTurnsCheck(Struct, frozen=True):
    """Looks for turns that were started again and did not end."""

    store: SessionStore
    code: str = "unfinished_turns"

    async def look(self) -> Finding:
        """Warn of pending turns that have begun twice or more."""
        again = [turn for turn in await self.store.pending() if turn.attempts >= 2]
        if again:
            keys = ", ".join(dict.fromkeys(turn.request.session for turn in again))
            text = f"{len(again)} turns of {keys} have begun twice or more and did not end"
            cure = (
                f"see why with `agentd logs --turn {again[0].turn_id}`; after "
                "three crashes they end"
            )
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, "no answer was begun again and again")


class DeliveryCheck(Struct, frozen=True):
    """Looks for alerts whose delivery to a sink was given up, except to the socket."""

    outbox: Outbox
    code: str = "undelivered_alerts"

    async def look(self) -> Finding:
        """Warn of such alerts among the newest unacknowledged ones."""
        lost = {
            alert.id: sink
            for alert in await self.outbox.alerts(_RECENT_ALERTS, unacked=True)
            for sink, state in alert.delivered.items()
            if state is DeliveryState.FAILED and sink != _WATCHED_SINK
        }
        if lost:
            told = ", ".join(f"{number} ({sink})" for number, sink in lost.items())
            first = next(iter(lost))
            cure = f"try the sink with `agentd alerts test`, then `agentd alerts ack {first}`"
            return Finding.warn(self.code, f"alerts that did not arrive: {told}", cure)
        return Finding.ok(self.code, "every alert has arrived or is still being tried")


class WindowCheck(Struct, frozen=True):
    """Checks that the context window leaves room for a conversation. All values are in tokens:
    `configured` and `effective` windows, a flush begins at a fill of `flush_at`; `fixed`
    returns what every prompt contains.
    """

    configured: int
    effective: int
    flush_at: int
    fixed: Callable[[], Awaitable[int]]
    code: str = "context_window"

    async def look(self) -> Finding:
        """Fail if every prompt fills more than half of `flush_at`; warn if more than a quarter, or
        if the effective window is not the configured one.
        """
        fixed = await self.fixed()
        text = (
            f"the context window has {self.effective:,} tokens, {fixed:,} of them in every prompt"
        )
        cure = (
            "shorten the injected files, or raise [provider] context_window if the model has more"
        )
        if self.flush_at < 2 * fixed:
            return Finding.fail(self.code, text, cure)
        if self.flush_at < 4 * fixed:
            return Finding.warn(self.code, text, cure)
        if self.effective != self.configured:
            cure = "set [provider] context_window to what the model has"
            return Finding.warn(self.code, f"{text}; configured are {self.configured:,}", cure)
        return Finding.ok(self.code, text)


class BudgetsCheck(Struct, frozen=True):
    """Checks the limits of `[budget]`. `all_turns` and `beats` return whether the budget of all
    turns, or of beats, is used up; `refusal` returns the error with which even the smallest
    call of an origin would be refused, None if it would be made.
    """

    all_turns: Callable[[], Awaitable[bool]]
    beats: Callable[[], Awaitable[bool]]
    refusal: Callable[[Origin], Awaitable[BudgetReached | None]]
    code: str = "budget"

    async def look(self) -> Finding:
        """Fail if no turn can call the model, warn if no beat can."""
        cure = "wait for the next day or month, or raise the limit in [budget]"
        if await self.all_turns():
            return Finding.fail(self.code, "the budget is used up: no model is called", cure)
        if error := await self.refusal(Origin.USER):
            return Finding.fail(self.code, f"no model is called: {error.message}", error.cure)
        if await self.beats():
            return Finding.warn(self.code, "the heartbeat's budget of today is used up", cure)
        if error := await self.refusal(Origin.HEARTBEAT):
            return Finding.warn(self.code, f"no beat calls the model: {error.message}", error.cure)
        return Finding.ok(self.code, "no limit of tokens or costs is reached")


class ProblemsCheck(Struct, frozen=True):
    """Reports the problems that parts of the daemon state; `fine` is the text if there is none."""

    parts: Callable[[], Sequence[Problem]]
    fine: str
    code: str

    async def look(self) -> Finding:
        """Fail with the first problem, and the number of the others."""
        found = self.parts()
        if found:
            more = f" (and {len(found) - 1} more: `agentd status`)" if len(found) > 1 else ""
            return Finding.fail(self.code, found[0].text + more, found[0].cure)
        return Finding.ok(self.code, self.fine)


class ServiceCheck(Struct, frozen=True):
    """Checks the model's service by the results of earlier calls since the daemon started; the
    check makes none. `heard` is None for the built-in model.
    """

    problems: Callable[[], Sequence[Problem]]
    heard: Callable[[], LastHeard] | None
    clock: Clock
    code: str = "provider"

    async def look(self) -> Finding:
        """Fail if the provider reports a problem or its last call failed. That failure is only a
        warning if the request was refused (`bad_request`), or if the service is away and has
        answered since the start.
        """
        if self.heard is None or self.problems():
            return await ProblemsCheck(
                self.problems, "the built-in model answers", self.code
            ).look()
        heard = self.heard()
        answered = "it has not answered since the start"
        if heard.answered is not None:
            ago = format_duration(timedelta(seconds=round(self._since(heard.answered))))
            answered = f"it last answered {ago} ago"
        if heard.error is None:
            told = answered if heard.answered else "it has not been asked since the start"
            return Finding.ok(self.code, f"the model's service: {told}")
        text = f"the last call to the model failed: {heard.error.message} And {answered}."
        passes = heard.error.kind == "bad_request" or (heard.error.away and heard.answered)
        return (Finding.warn if passes else Finding.fail)(self.code, text, heard.error.cure)

    def _since(self, when: datetime) -> float:
        return max(0.0, (self.clock.now() - when).total_seconds())


class ClockDriftCheck(Struct, frozen=True):
    """Checks that the wall clock was not set back since `wall` and `monotonic` were read."""

    clock: Clock
    wall: datetime
    monotonic: float
    code: str = "clock_steps"

    async def look(self) -> Finding:
        """Warn if the wall clock was set back by more than a minute. A clock that went ahead is no
        finding: after a suspend it looks the same.
        """
        passed = (self.clock.now() - self.wall).total_seconds()
        behind = self.clock.monotonic() - self.monotonic - passed
        if behind > _SET_BACK:
            text = f"the clock was set back by {behind:.0f} s while the daemon ran"
            cure = "keep it level with `timedatectl set-ntp true`, then `agentd restart`"
            return Finding.warn(self.code, text, cure)
        return Finding.ok(self.code, "the clock was not set back")
