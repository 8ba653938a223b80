"""`_agentd/jobs/*`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from pydantic import Field

from agentd.domain.beat import Beat
from agentd.domain.job import JobRun
from agentd.domain.settings import format_duration
from agentd.errors import InvalidRequest
from agentd.jobs.agenda import Agenda
from agentd.jobs.order import Order
from agentd.ports import JobStore
from agentd.server.methods.params import Params, handler
from agentd.server.peer import Handler

HEARTBEAT = "heartbeat"  # the system's own job


class Jobs(Protocol):
    """What runs jobs."""

    async def run(self, job_id: int) -> JobRun:
        """Run it now. Raises NotFound."""


class Pulse(Protocol):
    """What beats."""

    async def run(self, *, force: bool = False) -> Beat:
        """Beat now."""

    async def status(self) -> dict[str, Any]:
        """Whether, when next, and what the last came to."""


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
    """The jobs as the commands see them, the heartbeat among them; `interval` is the heartbeat's."""

    def __init__(
        self,
        agenda: Agenda,
        jobs: Jobs,
        pulse: Pulse,
        beats: JobStore,
        interval: Callable[[], timedelta],
    ) -> None:
        self._agenda = agenda
        self._jobs = jobs
        self._pulse = pulse
        self._beats = beats
        self._interval = interval

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
        jobs = await self._agenda.jobs(past=params.past)
        return {"jobs": [await self._heartbeat(), *map(self._agenda.described, jobs)]}

    async def _add(self, params: AddParams) -> dict[str, Any]:
        words = params.model_dump(exclude={"ask"})
        job, first = self._agenda.read(Order(**words, kind="ask" if params.ask else "remind"))
        return self._agenda.described(await self._agenda.add(job, first))

    async def _remove(self, params: JobParams) -> dict[str, Any]:
        number = _number(params.id)
        if number is None:
            raise InvalidRequest(
                "the heartbeat cannot be removed",
                cure="pause it with `agentd heartbeat pause`, or set [heartbeat] enabled = false",
            )
        job = await self._agenda.remove(number)
        return {"removed": job.as_json()}

    async def _run(self, params: JobParams) -> dict[str, Any]:
        number = _number(params.id)
        if number is None:
            return _of_heartbeat(await self._pulse.run())
        return (await self._jobs.run(number)).as_json()

    async def _history(self, params: HistoryParams) -> dict[str, Any]:
        number = None if params.id is None else _number(params.id)
        if params.id is not None and number is None:
            beats = await self._beats.beats(params.limit)
            return {"runs": [_of_heartbeat(beat) for beat in beats]}
        runs = await self._agenda.runs(params.limit, number)
        return {"runs": [run.as_json() for run in runs]}

    async def _heartbeat(self) -> dict[str, Any]:
        state = await self._pulse.status()
        due = state["next_due"]
        return {
            "id": HEARTBEAT,
            "text": "go through HEARTBEAT.md",
            "kind": "system",
            "schedule": {"every": format_duration(self._interval())},
            "enabled": state["enabled"],
            "created_by": "system",
            "next_due": due,
            "next": [due] if due else [],
        }


def _number(given: int | str) -> int | None:
    """The job's number, None for the heartbeat. Raises InvalidRequest."""
    if isinstance(given, int):
        return given
    if given == HEARTBEAT:
        return None
    raise InvalidRequest(
        f"id: {given[:100]!r} is no job", cure="`agentd jobs list` shows the ids of all"
    )


def _of_heartbeat(beat: Beat) -> dict[str, Any]:
    return {**beat.as_json(), "job": HEARTBEAT}
