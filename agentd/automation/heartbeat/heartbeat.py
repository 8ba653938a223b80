"""The heartbeat: runs one beat at a time, from the due time to the alert.

Pure modules decide about a beat (`hours.py`, `gate.py`, `core/checklist.py`, `core/verdict.py`);
this module keeps the schedule. Each due time leaves one row with its outcome, and a second one if a
busy session delays the beat. There is no row while the heartbeat is off or the daemon does not run;
in closed hours only the first due time has one, since the next is moved to the opening, and none if
a shorter interval has moved that one, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import structlog

from agentd.automation.heartbeat import hours
from agentd.automation.heartbeat.dependencies import BeatDependencies
from agentd.automation.heartbeat.gate import Run, Skip, Unreadable, answers, decide
from agentd.automation.heartbeat.heartbeat_settings import HeartbeatSettings
from agentd.automation.heartbeat.runner import BeatRunner
from agentd.automation.heartbeat.snapshot import Snapshot, SnapshotReader
from agentd.core import failpoints
from agentd.core.beat import MOST_ENTRIES, Beat, HeartbeatStatus, ItemState, Outcome, Reason
from agentd.core.health import Problem
from agentd.core.turn import SessionKey

log = structlog.get_logger()

_RETRY_BUSY = timedelta(seconds=30)
_STALLED = timedelta(minutes=5)
_MOST_EXPLAINED = 1000  # dated entries in one explanation, which must fit into a frame


class Heartbeat:
    """Keeps the schedule of beats. `runner` carries out a single beat."""

    def __init__(
        self, settings: HeartbeatSettings, deps: BeatDependencies, runner: BeatRunner
    ) -> None:
        self._deps = deps
        self._clock = deps.clock
        self._beats = deps.beats
        self.adopt(settings, runner)
        self._lock = asyncio.Lock()
        self._beats_asked = (
            0  # beats running or waiting; the lock alone is also held by ticks with nothing due
        )
        self._next_due: datetime | None = None
        self._last: Beat | None = None
        self._busy_slot: datetime | None = None  # a slot whose busy row is stored
        self._retry_at: float | None = None
        self._rested_at = 0.0  # monotonic seconds from when a dated entry may cause a beat
        self._peeked = ""  # the digest of the file whose dated entries the due time reflects

    @property
    def interval(self) -> timedelta:
        """The time between two beats."""
        return self._settings.interval

    @property
    def patience(self) -> timedelta:
        """How late after its due time a beat may be recorded: the timeout of a beat, but no less
        than the interval.
        """
        return max(self._settings.interval, self._settings.timeout)

    def adopt(self, settings: HeartbeatSettings, runner: BeatRunner) -> None:
        """Use these settings from the next beat on; the next tick adapts the due time."""
        self._settings = settings
        self.runner = runner
        self._hours = settings.hours(self._clock.zone)
        self._snapshots = SnapshotReader(
            self._deps,
            self._hours,
            SessionKey(settings.session),
            frozenset({runner.session, SessionKey(settings.session)}),
            is_on=settings.is_on,
            patience=settings.pause_after_idle,
        )
        self._peeked = ""

    async def tick(self) -> None:
        """Run a beat if one is due. To be called at the due time and at least once a minute. Raises
        StorageError.
        """
        if self._lock.locked():
            return
        async with self._lock:
            await self._tick()

    async def run(self, *, force: bool = False) -> Beat:
        """Run a beat now, if the gates allow it, and return it; `force` ignores all gates but those
        of the budget, the file and a busy session. The schedule stays unchanged. While another beat
        runs, this one is skipped as busy. The beat goes on even if the caller is cancelled.
        """
        if self._beats_asked:
            return await self._skip_now(Reason.BUSY)
        with self._beating():  # count the beat before its task has started
            return await self._deps.own(self._beat_by_hand(force=force))

    async def _beat_by_hand(self, *, force: bool) -> Beat:
        with self._beating():  # still counted after the caller was cancelled
            async with self._lock:
                return await self._beat_now(force=force)

    async def explain(self) -> dict[str, Any]:
        """Return what a beat would do now, the answer of each gate, and which gate decides: the
        shape of `agentd heartbeat explain`. It cannot tell whether a reply would be kept quiet.
        """
        sight = await self._snapshots.look()
        view = sight.view
        decision = decide(view)
        reason = None if isinstance(decision, Run) else decision.reason
        gates = answers(view)
        used, most = await self._deps.budget.tokens_today()
        watches = await self.runner.watches(view.checklist)
        states = await self._beats.items([item.hash for item in view.checklist.items])
        next_due = await self._due()
        return {
            "would_run": isinstance(decision, Run),
            "reason": reason or "",
            "decided_by": next((name for name, shut in gates.items() if shut), None),
            "gates": [{"gate": name, "reason": shut} for name, shut in gates.items()],
            "now": view.now.isoformat(),
            "next_due": _iso(next_due),
            "not_before": _iso(self._not_before(next_due, view.paused_until)),
            "next_opening": self._hours.next_opening(view.now).isoformat(),
            "zone": self._hours.zone.key,
            "hours": str(self._hours),
            "times_in": self._clock.zone.key,
            "enabled": view.is_on,
            "paused_until": _iso(view.paused_until),
            "idle": view.is_idle,
            "breaker_open": view.breaker_open,
            "over_budget": view.over_budget,
            "tokens_today": used,
            "daily_tokens": most,
            "busy": view.busy,
            "checklist": _checklist_json(sight, states),
            "tools": list(self.runner.tools()),
            "watched": [
                {"text": entry.text, **watch.as_json()}
                for entry in view.checklist.entries
                if (watch := watches.get(entry.hash)) is not None
            ],
        }

    async def entries(self) -> dict[str, str]:
        """Return the texts of the dated entries of HEARTBEAT.md by their hashes."""
        sight = await self._snapshots.look()
        return {item.hash: item.text for item in sight.view.checklist.items}

    async def status(self) -> HeartbeatStatus:
        """Return whether beats are on, the next due time, the last beat, and the tokens
        used today.
        """
        state = await self._beats.heartbeat()
        last = await self._beats.beats(1)
        used, most = await self._deps.budget.tokens_today()
        return HeartbeatStatus(
            self._settings.is_on,
            self._settled(state.next_due),
            state.pause_ends(self._clock.now()),
            last[0] if last else None,
            used,
            most,
        )

    async def next_due(self) -> datetime | None:
        """Return when to call `tick` next; None while beats are off. Uses the due time that the
        last tick found, without reading the store.
        """
        at = self._next_due or await self._due()
        if at is None or self._retry_at is None:
            return at
        wait = max(0.0, self._retry_at - self._clock.monotonic())
        return max(at, self._clock.now() + timedelta(seconds=wait))

    async def recover(self) -> int:
        """Close the rows of beats that a crash interrupted; return how many. These beats are not
        run again.
        """
        await self._snapshots.look_for_session()
        count = await self._beats.interrupt_beats()
        if count:
            log.warning("beats_interrupted", count=count)
        return count

    def problems(self) -> tuple[Problem, ...]:
        """Return what prevents beats from working."""
        found: list[Problem] = []
        if (error := self._snapshots.unreadable) is not None:
            text = f"HEARTBEAT.md cannot be read: {error.message}"
            found.append(Problem("heartbeat_unreadable", text, error.cure))
        if mistakes := self._snapshots.mistakes:
            more = f", and {len(mistakes) - 1} more" if len(mistakes) > 1 else ""
            text = f"HEARTBEAT.md has a time that counts as none, {mistakes[0]}{more}"
            found.append(Problem("heartbeat_times", text, "`agentd heartbeat explain` names them"))
        if self._snapshots.is_session_missing:
            text = (
                f"[heartbeat] session = {self._settings.session!r} does not exist; beats use main"
            )
            cure = "name one of `agentd sessions list`, or make it with `agentd send --session`"
            found.append(Problem("heartbeat_session", text, cure))
        if self._last is not None and self._last.outcome is Outcome.FAILED:
            text = f"the last heartbeat failed ({self._last.reason}): {self._last.text}"
            text = text.removesuffix(": ")
            found.append(Problem("heartbeat_failed", text, "see `agentd heartbeat history`"))
        late = max(_STALLED, 2 * self._settings.interval)
        waiting = None if self._lock.locked() else self._next_due  # a running beat is not late
        if waiting is not None and self._clock.now() > waiting + late:
            text = f"no heartbeat has been recorded since {waiting.isoformat()}"
            found.append(Problem("heartbeat_stalled", text, "run `agentd restart`"))
        return tuple(found)

    async def _tick(self) -> None:
        next_due = await self._settle()
        now = self._clock.now()
        if next_due is None:
            return
        if now < next_due:
            next_due = await self._pull(next_due)
        if now < next_due:
            return
        if self._retry_at is not None and self._clock.monotonic() < self._retry_at:
            return
        interval = self._settings.interval
        slot = hours.slot(next_due, now, interval)
        with self._beating():
            await self._beat_slot(slot, hours.following(slot, now, interval))

    @contextmanager
    def _beating(self) -> Iterator[None]:
        self._beats_asked += 1
        try:
            yield
        finally:
            self._beats_asked -= 1

    def _settled(self, stored: datetime | None) -> datetime | None:
        """Return the due time that follows from the stored one; None while beats are off."""
        if not self._settings.is_on:
            return None
        return hours.settle(stored, self._clock.now(), self._settings.interval, self._hours)

    async def _due(self) -> datetime | None:
        """Return the due time without storing it."""
        return self._settled((await self._beats.heartbeat()).next_due)

    def _not_before(
        self, next_due: datetime | None, paused_until: datetime | None
    ) -> datetime | None:
        """Return the first time from the due time on at which hours and pause let a beat run."""
        if next_due is None:
            return None
        return self._hours.next_opening(max(next_due, paused_until or next_due))

    async def _settle(self) -> datetime | None:
        """Return the due time; store it if it differs from the stored one, and likewise the end of
        a pause.
        """
        state = await self._beats.heartbeat()
        ends = state.pause_ends(self._clock.now())
        if ends != state.paused_until:
            log.warning("pause_brought_forward", until=_iso(ends))
            await self._beats.pause(ends)
        stored = state.next_due
        settled = self._settled(stored)
        if settled != stored:
            await self._beats.schedule(settled)
            self._peeked = ""
        self._next_due = settled
        return settled

    async def _pull(self, next_due: datetime) -> datetime:
        """Move the due time forward if a dated entry is due before it; return it. The file is
        parsed only if it or the schedule has changed.
        """
        digest, item_time = await self._snapshots.peek(self._peeked)
        rest = timedelta(seconds=max(0.0, self._rested_at - self._clock.monotonic()))
        at = hours.pull_forward(next_due, item_time, self._clock.now() + rest, self._hours)
        if at != next_due:
            await self._beats.schedule(at)
            self._next_due = at
        self._peeked = digest
        return at

    def _rest(self) -> None:
        spacing = hours.spacing(self._settings.interval).total_seconds()
        self._rested_at = self._clock.monotonic() + spacing

    async def _beat_now(self, *, force: bool) -> Beat:
        """Run a beat by request."""
        sight = await self._snapshots.look()
        decision = decide(sight.view, force=force)
        if isinstance(decision, Skip):
            return await self._skip_now(decision.reason, sight.digest)
        return await self._carry_out(decision, sight, None, await self._due(), force=force)

    async def _beat_slot(self, slot: datetime, next_due: datetime) -> Beat:
        """Run the beat of `slot`; `next_due` is the slot after it."""
        sight = await self._snapshots.look()
        decision = decide(sight.view)
        if isinstance(decision, Skip):
            return await self._skip_slot(slot, next_due, decision.reason, sight)
        return await self._carry_out(decision, sight, slot, next_due)

    async def _carry_out(
        self,
        decision: Run | Unreadable,
        sight: Snapshot,
        slot: datetime | None,
        next_due: datetime | None,
        *,
        force: bool = False,
    ) -> Beat:
        self._retry_at = self._busy_slot = None
        due = decision.due if isinstance(decision, Run) else ()
        beat_id = await self._beats.begin_beat(
            slot,
            next_due,
            sight.digest,
            listed=sight.listed,
            entries=[item.hash for item in due[:MOST_ENTRIES]],
            forced=force,
        )
        self._next_due = next_due
        failpoints.hit("beat.begun")
        if isinstance(decision, Run):
            beat = await self.runner.run(beat_id, decision, sight, force=force)
        else:
            beat = await self.runner.tell_unreadable(beat_id, decision.error)
        self._last = beat
        log.info("beat_done", beat=beat.id, outcome=beat.outcome, reason=beat.reason)
        self._peeked = ""
        self._rest()
        if next_due is not None:
            await self._pull(next_due)
        return beat

    async def _skip_slot(
        self, slot: datetime, next_due: datetime, reason: Reason, sight: Snapshot
    ) -> Beat:
        if reason is Reason.BUSY:
            self._retry_at = self._clock.monotonic() + _RETRY_BUSY.total_seconds()
            if self._busy_slot == slot and self._last is not None:
                return self._last
            self._busy_slot = next_due = slot
        else:
            self._retry_at = self._busy_slot = None
            now = sight.view.now
            if reason in {Reason.OUTSIDE_ACTIVE_HOURS, Reason.QUIET_HOURS}:
                next_due = self._hours.next_opening(now)
            else:
                earliest = now + hours.spacing(self._settings.interval)
                next_due = hours.pull_forward(next_due, sight.item_time, earliest, self._hours)
        self._last = await self._beats.skip_beat(slot, next_due, reason, sight.digest)
        self._next_due = next_due
        self._rest()
        log.info("beat_skipped", reason=reason, next_due=_iso(next_due))
        return self._last

    async def _skip_now(self, reason: Reason, digest: str = "") -> Beat:
        """Record a skipped beat that was requested; the schedule stays unchanged."""
        beat = await self._beats.skip_beat(None, None, reason, digest)
        self._rest()
        log.info("beat_skipped", reason=reason, next_due=_iso(self._next_due))
        return beat


def _checklist_json(snapshot: Snapshot, states: Mapping[str, ItemState]) -> dict[str, Any]:
    """Return HEARTBEAT.md as `explain` shows it: its entries, when each was done and comes next."""
    view = snapshot.view
    due = {item.hash for item in view.due}
    return {
        "file_hash": snapshot.digest,
        "missing": not snapshot.digest and view.unreadable is None,
        "unreadable": view.unreadable.message if view.unreadable else "",
        "mistakes": list(view.checklist.mistakes),
        "open": view.checklist.has_open,
        "items": [
            {
                "text": item.text,
                "due": item.hash in due,
                "done_at": _iso(states[item.hash].last_done),
                "next": _iso(item.next_time(states[item.hash], view.now)),
            }
            for item in view.checklist.items[:_MOST_EXPLAINED]
        ],
        "more_items": max(0, len(view.checklist.items) - _MOST_EXPLAINED),
    }


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
