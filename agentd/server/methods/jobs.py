"""`_agentd/jobs/*`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pydantic import Field

from agentd.domain.job import JobRun
from agentd.errors import InvalidRequest
from agentd.jobs.agenda import Agenda
from agentd.jobs.order import Order
from agentd.server.methods.params import Params, handler
from agentd.server.methods.system_jobs import SystemJob
from agentd.server.peer import Handler


class Jobs(Protocol):
    """What runs jobs."""

    async def run(self, job_id: int) -> JobRun:
        """Run it now. Raises NotFound."""


class ListParams(Params):
    """Jobs; with `past` also those that are done."""

    past: bool = False


class AddParams(Params):
    """A job in the words of the command."""

    text: str
    at: str = ""
    within: str = Field("", alias="in")
    every: str = ""
    cron: str = ""
    zone: str = ""
    ask: bool = False
    session: str = "isolated"
    misfire: str = ""
    model: str = ""


class JobParams(Params):
    """One job."""

    id: int | str


class HistoryParams(Params):
    """The newest runs, of one job or of all."""

    id: int | str | None = None
    limit: int = Field(20, ge=1, le=1000)


class JobMethods:
    """The jobs as the commands see them, the daemon's own first."""

    def __init__(self, agenda: Agenda, jobs: Jobs, own: Sequence[SystemJob]) -> None:
        self._agenda = agenda
        self._jobs = jobs
        self._own = own

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/jobs/list": handler(ListParams, self._list),
            "_agentd/jobs/add": handler(AddParams, self._add),
            "_agentd/jobs/remove": handler(JobParams, self._remove),
            "_agentd/jobs/run": handler(JobParams, self._run),
            "_agentd/jobs/history": handler(HistoryParams, self._history),
        }

    async def _list(self, params: ListParams) -> dict[str, Any]:
        own = [await job.listed() for job in self._own]
        jobs = await self._agenda.jobs(past=params.past)
        return {"jobs": [*own, *map(self._agenda.described, jobs)]}

    async def _add(self, params: AddParams) -> dict[str, Any]:
        words = params.model_dump(exclude={"ask"})
        job, first = self._agenda.read(Order(**words, kind="ask" if params.ask else "remind"))
        return self._agenda.described(await self._agenda.add(job, first))

    async def _remove(self, params: JobParams) -> dict[str, Any]:
        job = self._meant(params.id)
        if not isinstance(job, int):
            raise InvalidRequest(f"the job {job.id} cannot be removed", cure=job.instead)
        return {"removed": (await self._agenda.remove(job)).as_json()}

    async def _run(self, params: JobParams) -> dict[str, Any]:
        job = self._meant(params.id)
        return (await self._jobs.run(job)).as_json() if isinstance(job, int) else await job.run()

    async def _history(self, params: HistoryParams) -> dict[str, Any]:
        job = None if params.id is None else self._meant(params.id)
        if job is None or isinstance(job, int):
            return {"runs": [run.as_json() for run in await self._agenda.runs(params.limit, job)]}
        return {"runs": await job.history(params.limit)}

    def _meant(self, given: int | str) -> int | SystemJob:
        """The job's number, or one of the daemon's own. Raises InvalidRequest."""
        if isinstance(given, int):
            return given
        for job in self._own:
            if job.id == given:
                return job
        cure = "`agentd jobs list` shows the ids of all"
        raise InvalidRequest(f"id: {given[:100]!r} is no job", cure=cure)
