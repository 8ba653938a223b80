"""Doubles of the stores of the heartbeat and the jobs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.alert import Alert, NewAlert
from agentd.core.beat import (
    Beat,
    BeatFinding,
    HeartbeatState,
    ItemState,
    Outcome,
    Reason,
    main_finding,
    text_of,
)
from agentd.core.errors import (
    Busy,
    NotFound,
)
from agentd.core.job import Ending, Job, JobOutcome, JobReason, JobRun, JobStep, NewJob
from agentd.core.ports import Clock
from agentd.core.redaction import Redactor
from agentd.core.turn import Turn
from agentd.core.watch import WatchedEntry
from agentd.testing.stores import MemoryOutbox


class FakeTicket(Struct, frozen=True):
    """The ticket of a submitted turn that has ended as `turn`, or never ends if that is None."""

    turn: Turn | None

    async def wait(self) -> Turn:
        if self.turn is None:
            await asyncio.get_running_loop().create_future()
        assert self.turn is not None
        return self.turn


class MemoryBeats:
    """A BeatStore in memory. Its alerts go to `outbox`."""

    def __init__(self, clock: Clock, outbox: MemoryOutbox | None = None) -> None:
        self._clock = clock
        self._outbox = outbox or MemoryOutbox(clock)
        self._state = HeartbeatState()
        self._running: dict[int, Beat] = {}
        self._finished: dict[int, Beat] = {}
        self._items: dict[str, ItemState] = {}
        self._watches: dict[str, WatchedEntry] = {}
        self._ids = itertools.count(1)

    async def heartbeat(self) -> HeartbeatState:
        return self._state

    async def schedule(self, next_due: datetime | None) -> None:
        self._state = replace(self._state, next_due=next_due)

    async def pause(self, until: datetime | None) -> None:
        at = self._clock.now() if until else None
        self._state = replace(self._state, paused_until=until, paused_at=at)

    async def begin_beat(
        self,
        due: datetime | None,
        next_due: datetime | None,
        file_hash: str,
        *,
        listed: Collection[str] | None = None,
        entries: Sequence[str] = (),
        forced: bool = False,
    ) -> int:
        await self.schedule(next_due)
        if listed is not None:
            self._items = {h: item for h, item in self._items.items() if h in listed}
            self._watches = {e: watch for e, watch in self._watches.items() if e in listed}
        beat = self._beat(due, Outcome.FAILED, Reason.INTERRUPTED, file_hash)
        self._running[beat.id] = replace(beat, entries=tuple(entries), forced=forced)
        return beat.id

    async def end_beat(
        self,
        beat_id: int,
        findings: Sequence[BeatFinding],
        *,
        tokens: int = 0,
        cost_usd: float = 0.0,
    ) -> tuple[Beat, tuple[Alert, ...]]:
        if beat_id not in self._running:
            raise NotFound(f"there is no running beat {beat_id}")
        told: list[BeatFinding] = []
        put: list[Alert] = []
        for found in findings:
            repeats = None if found.alert is None else self._outbox.repeated_by(found.alert)
            alert = await self._outbox.put(found.alert) if found.alert is not None else None
            told.append(found if repeats is None else found.untold(repeats))
            put += [alert] if alert is not None else []
        self._watches.update((f.watch.entry, f.watch) for f in findings if f.watch is not None)
        main = main_finding(told)
        beat = replace(
            self._running.pop(beat_id),
            outcome=main.outcome,
            reason=main.reason,
            text=text_of(findings),
            tokens=tokens,
            cost_usd=cost_usd,
            repeats=main.repeats,
            repeats_at=self._outbox.put_at(main.repeats),
        )
        self._finished[beat_id] = beat
        now = self._clock.now()
        for item in (item for found in findings for item in found.done_items):
            known = self._items.get(item, ItemState(item, now))
            self._items[item] = replace(known, last_done=now)
        return beat, tuple(put)

    async def skip_beat(
        self, due: datetime | None, next_due: datetime | None, reason: Reason, file_hash: str = ""
    ) -> Beat:
        if due is not None:
            await self.schedule(next_due)
        beat = self._beat(due, Outcome.SKIPPED, reason, file_hash)
        self._finished[beat.id] = beat
        return beat

    async def interrupt_beats(self) -> int:
        cut = len(self._running)
        self._finished.update(self._running)
        self._running.clear()
        return cut

    async def beats(self, limit: int) -> tuple[Beat, ...]:
        newest = sorted(self._finished.values(), key=lambda b: -b.id)
        return tuple(newest[:limit])

    async def items(self, hashes: Sequence[str]) -> Mapping[str, ItemState]:
        now = self._clock.now()
        return {h: self._items.setdefault(h, ItemState(h, now)) for h in hashes}

    async def watches(self, entries: Sequence[str]) -> Mapping[str, WatchedEntry]:
        return {e: self._watches[e] for e in entries if e in self._watches}

    def _beat(self, due: datetime | None, outcome: Outcome, reason: Reason, file_hash: str) -> Beat:
        return Beat(next(self._ids), self._clock.now(), due, outcome, reason, file_hash=file_hash)


class MemoryJobStore:
    """A JobStore in memory. Its alerts go to `outbox`."""

    def __init__(self, clock: Clock, outbox: MemoryOutbox | None = None) -> None:
        self._clock = clock
        self._outbox = outbox or MemoryOutbox(clock)
        self._jobs: dict[int, Job] = {}
        self._keys: dict[str, int] = {}
        self._runs: dict[int, JobRun] = {}
        self._running: set[int] = set()
        self._job_ids, self._run_ids = itertools.count(1), itertools.count(1)

    async def add(self, job: NewJob, next_due: datetime, *, most: int, key: str = "") -> Job:
        if (known := await self.by_key(key)) is not None:
            return known
        if len(await self.jobs()) >= most:
            raise Busy(f"there are {most} jobs already")
        job = replace(job, text=Redactor().kept(job.text).text)
        stored = Job(next(self._job_ids), job, self._clock.now(), next_due)
        self._jobs[stored.id] = stored
        if key:
            self._keys[key] = stored.id
        return stored

    async def by_key(self, key: str) -> Job | None:
        return self._jobs.get(self._keys.get(key, 0))

    async def jobs(self, *, past: bool = False) -> tuple[Job, ...]:
        return tuple(job for job in self._jobs.values() if past or job.next_due is not None)

    async def get(self, job_id: int) -> Job:
        if job_id not in self._jobs:
            raise NotFound(f"there is no job {job_id}")
        return self._jobs[job_id]

    async def remove(self, job_id: int) -> Job:
        job = await self.get(job_id)
        del self._jobs[job_id]
        self._runs = {n: run for n, run in self._runs.items() if run.job_id != job_id}
        return job

    async def pass_over(self, step: JobStep) -> None:
        if step.job_id not in self._jobs:
            return
        if (missed := step.missed) is not None:
            late = Ending(JobOutcome.MISSED, JobReason.LATE)
            self._add_run(step.job_id, missed.first, missed.last, late)
        job = self._jobs[step.job_id]
        self._jobs[step.job_id] = replace(job, next_due=step.next_due)

    async def begin(self, step: JobStep) -> int | None:
        if step.job_id not in self._jobs:
            return None
        if step.due is not None:
            await self.pass_over(step)
            if any(r.job_id == step.job_id and r.due == step.due for r in self._used_runs()):
                return None
        job = self._jobs[step.job_id]
        self._jobs[step.job_id] = replace(job, runs=job.runs + 1)
        cut = Ending(JobOutcome.FAILED, JobReason.INTERRUPTED)
        run_id = self._add_run(step.job_id, step.due, None, cut)
        self._running.add(run_id)
        return run_id

    async def record(
        self, step: JobStep, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        run_id = await self.begin(step)
        return None if run_id is None else await self.end(run_id, ending, alert)

    async def end(
        self, run_id: int, ending: Ending, alert: NewAlert | None = None
    ) -> JobRun | None:
        if run_id not in self._runs:
            return None
        if run_id not in self._running:
            raise NotFound(f"run {run_id} has ended already")
        if alert is not None and await self._outbox.put(alert) is None:
            ending = replace(ending, outcome=JobOutcome.QUIET, reason=JobReason.DUPLICATE)
        self._running.discard(run_id)
        self._runs[run_id] = replace(self._runs[run_id], ending=ending)
        return self._runs[run_id]

    async def interrupt(self) -> int:
        cut = len(self._running & self._runs.keys())
        self._running.clear()
        return cut

    async def runs(self, limit: int, job_id: int | None = None) -> tuple[JobRun, ...]:
        newest = [
            run
            for run in sorted(self._runs.values(), key=lambda r: -r.id)
            if run.id not in self._running and job_id in (None, run.job_id)
        ]
        return tuple(newest[:limit])

    async def used(self, job_id: int, since: datetime) -> frozenset[datetime]:
        runs = (run for run in self._used_runs() if run.job_id == job_id)
        return frozenset(run.due for run in runs if run.due is not None and run.due > since)

    def _used_runs(self) -> list[JobRun]:
        return [run for run in self._runs.values() if run.until is None]

    def _add_run(
        self, job_id: int, due: datetime | None, until: datetime | None, ending: Ending
    ) -> int:
        run_id = next(self._run_ids)
        self._runs[run_id] = JobRun(run_id, job_id, self._clock.now(), due, until, ending)
        return run_id
