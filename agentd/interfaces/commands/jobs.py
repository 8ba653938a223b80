"""`jobs`: reminders and scheduled questions, and the daemon's own jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.core.errors import GraphOff, InvalidRequest
from agentd.core.job import JobRequest
from agentd.core.times import format_duration
from agentd.interfaces.commands.declaration import MODEL_SECONDS, Group, Param, outcome_failed
from agentd.interfaces.commands.plain import fields, table, visible, words

if TYPE_CHECKING:
    from agentd.automation.jobs.agenda import Agenda
    from agentd.core.beat import Beat, HeartbeatStatus
    from agentd.core.evidence import Consolidated
    from agentd.core.job import JobRun
    from agentd.core.ports import BeatStore


class SystemJob(Protocol):
    """A job of the daemon itself, which `_agentd/jobs/*` lists before the owner's jobs."""

    @property
    def id(self) -> str:
        """The job's id in commands."""

    @property
    def instead(self) -> str:
        """What to do instead of removing the job."""

    async def listed(self) -> dict[str, Any]:
        """Return the job's entry in the list. `last` is its newest run, or None."""

    async def run(self) -> dict[str, Any]:
        """Run the job now; its schedule does not change."""

    async def history(self, limit: int) -> list[dict[str, Any]]:
        """Return the job's runs, the newest first."""


class JobsHeartbeat(Protocol):
    """Port: the heartbeat."""

    async def run(self, *, force: bool = False) -> Beat:
        """Run a beat now."""

    async def status(self) -> HeartbeatStatus:
        """Return whether the heartbeat is on, when the next beat is due, and how the last one
        ended.
        """


class JobUpkeep(Protocol):
    """Port: consolidates the concept graph."""

    @property
    def is_on(self) -> bool:
        """Whether there is a graph."""

    @property
    def next_due(self) -> datetime | None:
        """When the next consolidation is due."""

    async def consolidate(self) -> Consolidated:
        """Consolidate now. Raises WorkspaceError, StorageError."""

    async def consolidations(self, limit: int) -> Sequence[Consolidated]:
        """Return the past consolidations, the newest first."""


class HeartbeatJob:
    """The heartbeat as a job; a beat is due every `interval`."""

    id = "heartbeat"
    instead = "pause it with `agentd heartbeat pause`, or set [heartbeat] enabled = false"

    def __init__(
        self, heartbeat: JobsHeartbeat, beats: BeatStore, interval: Callable[[], timedelta]
    ) -> None:
        self._heartbeat = heartbeat
        self._beats = beats
        self._interval = interval

    async def listed(self) -> dict[str, Any]:
        """See SystemJob."""
        state = await self._heartbeat.status()
        return {
            **_line(self.id, "go through HEARTBEAT.md", self._interval()),
            "enabled": state.is_on,
            "last": self._as_json(state.last) if state.last else None,
            **_due(state.next_due),
        }

    async def run(self) -> dict[str, Any]:
        """See SystemJob."""
        return self._as_json(await self._heartbeat.run())

    async def history(self, limit: int) -> list[dict[str, Any]]:
        """See SystemJob."""
        return [self._as_json(beat) for beat in await self._beats.beats(limit)]

    def _as_json(self, beat: Beat) -> dict[str, Any]:
        return {**beat.as_json(), "job": self.id}


class ConsolidationJob:
    """The daily consolidation of the concept graph as a job."""

    id = "graph"
    instead = "set [graph] enabled = false to switch the concept graph off"

    def __init__(self, upkeep: JobUpkeep, interval: timedelta) -> None:
        self._upkeep = upkeep
        self._interval = interval

    async def listed(self) -> dict[str, Any]:
        """See SystemJob."""
        last, due = await self.history(1), self._upkeep.next_due
        return {
            **_line(self.id, "consolidate the concept graph", self._interval),
            "enabled": self._upkeep.is_on,
            "last": last[0] if last else None,
            **_due(due if self._upkeep.is_on else None),
        }

    async def run(self) -> dict[str, Any]:
        """See SystemJob. Raises GraphOff if there is no graph."""
        if not self._upkeep.is_on:
            raise GraphOff(
                "the concept graph is switched off",
                cure="set [graph] enabled = true, then `agentd restart`",
            )
        return self._as_json(await self._upkeep.consolidate())

    async def history(self, limit: int) -> list[dict[str, Any]]:
        """See SystemJob."""
        return [self._as_json(done) for done in await self._upkeep.consolidations(limit)]

    def _as_json(self, done: Consolidated) -> dict[str, Any]:
        return {
            "outcome": "quiet",
            "reason": "consolidated",
            "text": f"promoted {done.promoted}, swept {done.swept}",
            "tokens": 0,
            "cost_usd": 0.0,
            "at": done.at.isoformat(),
            "due": None,
            "job": self.id,
            "promoted": done.promoted,
            "swept": done.swept,
        }


def _line(name: str, text: str, every: timedelta) -> dict[str, Any]:
    schedule = {"every": format_duration(every)}
    return {
        "id": name,
        "text": text,
        "kind": "system",
        "schedule": schedule,
        "created_by": "system",
    }


def _due(at: datetime | None) -> dict[str, Any]:
    return {
        "next_due": at.isoformat() if at else None,
        "next": [at.isoformat()] if at else [],
    }


JOBS = Group("jobs")

_ID = Annotated[int | str, Param("The job's id, heartbeat or graph.", metavar="ID")]
_RUN_COLUMNS = ("job", "due", "until", "at", "outcome", "reason", "tokens", "cost_usd", "text")


class Runner(Protocol):
    """Port: runs jobs."""

    async def run(self, job_id: int) -> JobRun:
        """Run the job now. Raises NotFound."""


def _jobs_text(result: dict[str, Any]) -> str:
    lines = (line for job in result["jobs"] for line in _lines(job))
    return "\n".join([_where(result), *lines])


def _lines(job: dict[str, Any]) -> list[str]:
    when = ", ".join(f"{name} {value}" for name, value in job["schedule"].items())
    head = f"{job['id']}  {job['kind']}  {when}  {visible(' '.join(job['text'].split()))}"
    times = job["next"] or ["nothing to come" if job["enabled"] else "off"]
    return [head, *(f"    {at}" for at in times), *_last(job.get("last"))]


def _last(run: dict[str, Any] | None) -> list[str]:
    """Return a line on the last run of a job of the daemon; none if it never ran."""
    if run is None:
        return []
    told = ": ".join(filter(None, (_outcome(run), visible(" ".join(run["text"].split())))))
    return [f"    last {run['at']}  {told}"]


def _ran(run: dict[str, Any]) -> str:
    return f"{_outcome(run)}\n{run['text']}" if run.get("text") else _outcome(run)


def _outcome(run: dict[str, Any]) -> str:
    outcome, reason = words(run.get("outcome")), words(run.get("reason"))
    return outcome if outcome == reason else f"{outcome}: {reason}"


def _added(job: dict[str, Any]) -> str:
    """Return a new job, without what is not set and what concerns questions alone."""
    unasked = set() if job["kind"] == "ask" else {"session", "model"}
    return fields({k: v for k, v in job.items() if k not in unasked and v not in (None, "")})


def _removed_text(result: dict[str, Any]) -> str:
    return f"removed {result['removed']['id']}"


def _runs(result: dict[str, Any]) -> str:
    if not result["runs"]:
        return "no job has run yet"
    return f"{_where(result)}\n{table(result['runs'], _RUN_COLUMNS, '')}"


def _where(result: dict[str, Any]) -> str:
    return f"times are those of {result['times_in']}"


class JobCommands:
    """Commands for jobs; the daemon's own are listed first."""

    def __init__(self, agenda: Agenda, runner: Runner, own: Sequence[SystemJob]) -> None:
        self._agenda = agenda
        self._runner = runner
        self._own = own

    @JOBS.command(_jobs_text, name="list")
    async def all(
        self, *, past: Annotated[bool, Param("Also those that are done.")] = False
    ) -> dict[str, Any]:
        """List the jobs and their next five times."""
        own = [await job.listed() for job in self._own]
        jobs = await self._agenda.jobs(past=past)
        return {"jobs": [*own, *map(self._agenda.described, jobs)], **self._zone()}

    @JOBS.command(_added)
    async def add(
        self,
        text: Annotated[str, Param("What to tell you, or what to ask the model.")],
        *,
        at: Annotated[str, Param('Once: "2026-12-01 09:00"; also in words: "tomorrow 9am".')] = "",
        within: Annotated[str, Param('Once, from now: "2h".', key="in")] = "",
        every: Annotated[str, Param('Again and again: "1d".')] = "",
        cron: Annotated[str, Param('By the clock: "0 9 * * 1-5".')] = "",
        zone: Annotated[str, Param("IANA zone; yours without it.")] = "",
        ask: Annotated[bool, Param("Ask the model; else TEXT is told.", ("--ask",))] = False,
        session: Annotated[
            str, Param('What a question sees: "main" or "isolated".', usual=None)
        ] = "isolated",
        misfire: Annotated[str, Param('Missed times: "skip", "once" or "all".')] = "",
        model: Annotated[str, Param("Another model for the question.")] = "",
    ) -> dict[str, Any]:
        """Add a job."""
        kind = "ask" if ask else "remind"
        order = JobRequest(text, at, within, every, cron, zone, kind, session, misfire, model)
        job, first = self._agenda.read(order)
        return {**self._agenda.described(await self._agenda.add(job, first)), **self._zone()}

    @JOBS.command(_removed_text)
    async def remove(self, id: _ID) -> dict[str, Any]:
        """Remove a job and its history."""
        job = self._resolve(id)
        if not isinstance(job, int):
            raise InvalidRequest(f"the job {job.id} cannot be removed", cure=job.instead)
        return {"removed": (await self._agenda.remove(job)).as_json()}

    @JOBS.command(_ran, seconds=MODEL_SECONDS, has_failed=outcome_failed)
    async def run(self, id: _ID) -> dict[str, Any]:
        """Run a job now; its times stay as they are."""
        job = self._resolve(id)
        return (await self._runner.run(job)).as_json() if isinstance(job, int) else await job.run()

    @JOBS.command(_runs)
    async def history(
        self,
        id: Annotated[int | str | None, Param("One job's alone.", metavar="ID")] = None,
        *,
        limit: Annotated[int, Param("How many, the newest first.", least=1, most=1000)] = 20,
    ) -> dict[str, Any]:
        """List what jobs came to, and which times were missed."""
        job = None if id is None else self._resolve(id)
        if job is None or isinstance(job, int):
            runs = [run.as_json() for run in await self._agenda.runs(limit, job)]
        else:
            runs = await job.history(limit)
        return {"runs": runs, **self._zone()}

    def _zone(self) -> dict[str, str]:
        """Return the zone in which times are shown; a job's own zone may be another."""
        return {"times_in": self._agenda.zone}

    def _resolve(self, given: int | str) -> int | SystemJob:
        """Return the number of an owner's job, or the daemon's job with that id. Raises
        InvalidRequest.
        """
        if isinstance(given, int):
            return given
        for job in self._own:
            if job.id == given:
                return job
        cure = "`agentd jobs list` shows the ids of all"
        raise InvalidRequest(f"id: {given[:100]!r} is no job", cure=cure)
