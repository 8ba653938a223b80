"""The tools for jobs: `schedule_create`, `schedule_list`, `schedule_cancel`.

Only the owner's sessions have them; he is asked before a job is created or cancelled. Groups and
isolated sessions get nothing; silent turns may only list jobs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agentd.automation.jobs.agenda import Agenda
from agentd.core.clock import minute
from agentd.core.errors import NotFound, ToolFailed
from agentd.core.job import Job, JobRequest, NewJob, schedule_options
from agentd.core.ports import Clock, ToolHost
from agentd.core.prompt import Effect, ToolSpec
from agentd.core.tool import Approval, ToolCall, ToolOutput
from agentd.core.turn import SessionKind
from agentd.interfaces.tools.fence import printable

_TEXT = {"type": "string"}
_MOST_CHARS = 1_000  # characters of a job's text; all are shown in the question to the user


def _spec(name: str, told: str, fields: dict[str, Any], needed: list[str]) -> ToolSpec:
    effect = Effect.READ_ONLY if name == "schedule_list" else Effect.IDEMPOTENT
    schema = {
        "type": "object",
        "properties": fields,
        "required": needed,
        "additionalProperties": False,
    }
    is_guarded = effect is not Effect.READ_ONLY
    return ToolSpec(name, told, schema, effect, is_guarded=is_guarded, is_owners=True)


class ScheduleCreate:
    """Creates a job, once for each call even if a crash repeats the call."""

    spec = _spec(
        "schedule_create",
        'Schedule a reminder (text is sent) or kind "ask" (text is a prompt for you). One of '
        'at "2026-12-01 09:00", every "1d", cron "0 9 * * 1-5".',
        {
            "text": _TEXT,
            "at": _TEXT,
            "every": _TEXT,
            "cron": _TEXT,
            "zone": _TEXT,
            "kind": {"enum": ["remind", "ask"]},
            "session": {"enum": ["main", "isolated"]},
        },
        ["text"],
    )

    def __init__(self, agenda: Agenda, clock: Clock) -> None:
        self._agenda = agenda
        self._clock = clock

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return the job's number and first time. Raises ToolFailed, or InvalidRequest with an
        example.
        """
        _permit(call, "change")
        key = _key(call)
        if (known := await self._agenda.find(key)) is not None:
            return self._scheduled(known)
        words = {name: printable(str(value)) for name, value in call.input.items()}
        job, first = self._agenda.read(JobRequest(**words, created_by="model"))
        if len(job.text) > _MOST_CHARS:
            msg = f"the text has {len(job.text)} characters; at most {_MOST_CHARS} are allowed"
            raise ToolFailed(msg, cure="Put the details into a file and name it.")
        if not await host.approve(_approval(job, first, self._clock.zone)):
            return ToolOutput("The user did not allow this job.", is_error=True)
        return self._scheduled(await self._agenda.add(job, first, key=key))

    def _scheduled(self, job: Job) -> ToolOutput:
        due = "never" if job.next_due is None else _local(job.next_due, self._clock.zone)
        return ToolOutput(f"Job {job.id} is scheduled; next: {due}.")


class ScheduleList:
    """Lists the jobs."""

    spec = _spec("schedule_list", "List scheduled jobs.", {}, [])

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return one job a line, as JSON. Raises ToolFailed in a session that is not the
        owner's.
        """
        _permit(call, "see", silent=True)
        zone = ZoneInfo(self._agenda.zone)
        lines = [
            json.dumps(_in_zone(self._agenda.described(job), zone), ensure_ascii=False)
            for job in await self._agenda.jobs()
        ]
        return ToolOutput("\n".join(lines) or "No jobs are scheduled.")


class ScheduleCancel:
    """Cancels a job."""

    spec = _spec("schedule_cancel", "Cancel a job.", {"id": {"type": "integer"}}, ["id"])

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    async def run(self, call: ToolCall, host: ToolHost) -> ToolOutput:
        """Return that the job is cancelled, also if there is no such job any more. Raises
        ToolFailed.
        """
        _permit(call, "change")
        job_id = int(call.input["id"])
        try:
            job = await self._agenda.get(job_id)
        except NotFound:
            return ToolOutput(f"There is no job {job_id} (any more).")
        title = f"Cancel job {job.id}: “{_line(job.what.text)}”"
        if not await host.approve(
            Approval(title, _digest(["cancel", job.id, job.as_json()["text"]]))
        ):
            return ToolOutput("The user wants to keep this job.", is_error=True)
        try:
            await self._agenda.remove(job_id)
        except NotFound:
            return ToolOutput(f"There is no job {job_id} (any more).")
        return ToolOutput(f"Job {job_id} is cancelled.")


def _permit(call: ToolCall, what: str, *, silent: bool = False) -> None:
    if call.kind is not SessionKind.OWNER:
        msg = f"this session cannot {what} the owner's jobs"
        raise ToolFailed(msg)
    if not silent and call.origin.is_silent:
        msg = f"this turn runs without the user: it cannot {what} jobs"
        raise ToolFailed(msg, cure="Ask the user to do it, with `agentd jobs`.")


def _approval(job: NewJob, first: datetime, zone: ZoneInfo) -> Approval:
    schedule = schedule_options(job.schedule)
    when = " ".join(f"{name} {value}" for name, value in schedule.items() if name != "anchor")
    when = "at" if "at" in schedule else f"{when}, first"
    what = "Remind" if job.kind == "remind" else f"Ask the model ({job.session})"
    title = f"{what}: “{_line(job.text)}”, {when} {_local(first, zone)}"
    # The anchor is the moment of the call and differs when the call is repeated: not approved.
    bound = [job.text, {**schedule, "anchor": ""}, job.kind, job.session, job.misfire, job.model]
    return Approval(title, _digest(bound), new_text=job.text)


def _key(call: ToolCall) -> str:
    return _digest([call.session, call.id, dict(call.input)])


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _line(text: str) -> str:
    return " ".join(text.split())


def _in_zone(shown: Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    """Return what the model is told of a job; times are in the owner's zone, formatted as in `[Now:
    …]`.
    """
    told = {key: shown[key] for key in ("id", "kind", "text", "schedule", "next_due")}
    times = {key: _moment(told["schedule"].get(key), zone) for key in ("at", "anchor")}
    schedule = {**told["schedule"], **{key: at for key, at in times.items() if at}}
    return {**told, "schedule": schedule, "next_due": _moment(told["next_due"], zone)}


def _moment(text: str | None, zone: ZoneInfo) -> str | None:
    return minute(datetime.fromisoformat(text), zone) if text else None


def _local(at: datetime, zone: ZoneInfo) -> str:
    return f"{at.astimezone(zone):%A %Y-%m-%d %H:%M} ({zone.key})"
