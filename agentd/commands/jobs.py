"""`jobs`: reminders and questions at set times, the daemon's own among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.commands.declaration import MODEL_SECONDS, Group, Param
from agentd.commands.plain import fields, table, visible, words
from agentd.errors import InvalidRequest
from agentd.jobs.order import Order

if TYPE_CHECKING:
    from agentd.commands.system_jobs import SystemJob
    from agentd.domain.job import JobRun
    from agentd.jobs.agenda import Agenda

JOBS = Group("jobs")

_ID = Annotated[int | str, Param("The job's id, heartbeat or graph.", metavar="ID")]
_RUN_COLUMNS = ("job", "due", "until", "at", "outcome", "reason", "tokens", "cost_usd", "text")


class Runner(Protocol):
    """What runs jobs."""

    async def run(self, job_id: int) -> JobRun:
        """Run it now. Raises NotFound."""


def _listed(result: dict[str, Any]) -> str:
    return "\n".join(line for job in result["jobs"] for line in _lines(job))


def _lines(job: dict[str, Any]) -> list[str]:
    when = ", ".join(f"{name} {value}" for name, value in job["schedule"].items())
    head = f"{job['id']}  {job['kind']}  {when}  {visible(' '.join(job['text'].split()))}"
    times = job["next"] or ["nothing to come" if job["enabled"] else "off"]
    return [head, *(f"    {at}" for at in times), *_last(job.get("last"))]


def _last(run: dict[str, Any] | None) -> list[str]:
    """What a job of the daemon's own came to when it was done last."""
    return [] if run is None else [f"    last {run['at']}  {visible(' '.join(_ran(run).split()))}"]


def _ran(run: dict[str, Any]) -> str:
    line = f"{words(run.get('outcome'))}: {words(run.get('reason'))}"
    return f"{line}\n{run['text']}" if run.get("text") else line


def _removed(result: dict[str, Any]) -> str:
    return f"removed {result['removed']['id']}"


def _runs(result: dict[str, Any]) -> str:
    return table(result["runs"], _RUN_COLUMNS, "no job has run yet")


class JobCommands:
    """The jobs of the owner's, behind those of the daemon's own."""

    def __init__(self, agenda: Agenda, runner: Runner, own: Sequence[SystemJob]) -> None:
        self._agenda = agenda
        self._runner = runner
        self._own = own

    @JOBS.command(_listed, name="list")
    async def all(
        self, *, past: Annotated[bool, Param("Also those that are done.")] = False
    ) -> dict[str, Any]:
        """List the jobs and their next five times."""
        own = [await job.listed() for job in self._own]
        jobs = await self._agenda.jobs(past=past)
        return {"jobs": [*own, *map(self._agenda.described, jobs)]}

    @JOBS.command(fields)
    async def add(
        self,
        text: Annotated[str, Param("What to tell you, or what to ask the model.")],
        *,
        at: Annotated[str, Param('Once: "2026-12-01 09:00".')] = "",
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
        order = Order(text, at, within, every, cron, zone, kind, session, misfire, model)
        job, first = self._agenda.read(order)
        return self._agenda.described(await self._agenda.add(job, first))

    @JOBS.command(_removed)
    async def remove(self, id: _ID) -> dict[str, Any]:
        """Remove a job and its history."""
        job = self._meant(id)
        if not isinstance(job, int):
            raise InvalidRequest(f"the job {job.id} cannot be removed", cure=job.instead)
        return {"removed": (await self._agenda.remove(job)).as_json()}

    @JOBS.command(_ran, seconds=MODEL_SECONDS)
    async def run(self, id: _ID) -> dict[str, Any]:
        """Run a job now; its times stay as they are."""
        job = self._meant(id)
        return (await self._runner.run(job)).as_json() if isinstance(job, int) else await job.run()

    @JOBS.command(_runs)
    async def history(
        self,
        id: Annotated[int | str | None, Param("One job's alone.", metavar="ID")] = None,
        *,
        limit: Annotated[int, Param("How many, the newest first.", least=1, most=1000)] = 20,
    ) -> dict[str, Any]:
        """List what jobs came to, and which times were missed."""
        job = None if id is None else self._meant(id)
        if job is None or isinstance(job, int):
            return {"runs": [run.as_json() for run in await self._agenda.runs(limit, job)]}
        return {"runs": await job.history(limit)}

    def _meant(self, given: int | str) -> int | SystemJob:
        """The job's number, or one of the daemon's own. Raises InvalidRequest."""
        if isinstance(given, int):
            return given
        for job in self._own:
            if job.id == given:
                return job
        cure = "`agentd jobs list` shows the ids of all"
        raise InvalidRequest(f"id: {given[:100]!r} is no job", cure=cure)
