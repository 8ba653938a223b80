"""Opens the schedule: the heartbeat, the jobs, and the scheduler that starts them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog
from msgspec import Struct

from agentd.app.assembly.alerting import Alerting
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.model import smallest_calls
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.storage import Stores
from agentd.automation.heartbeat.dependencies import BeatDependencies
from agentd.automation.heartbeat.heartbeat import Heartbeat
from agentd.automation.heartbeat.lifesign import LifeSigns
from agentd.automation.heartbeat.runner import BeatRunner
from agentd.automation.heartbeat.watched import WatchedEntries
from agentd.automation.jobs import runs
from agentd.automation.jobs.agenda import Agenda
from agentd.automation.jobs.jobs import Jobs
from agentd.automation.scheduler import Scheduler, SchedulerTriggers, Tick
from agentd.core.paths import prompt
from agentd.core.turn import Origin
from agentd.engine.assembly import Engine
from agentd.providers.assembly import ProviderModel

log = structlog.get_logger()


class Schedule(Struct, frozen=True):
    """The heartbeat, the jobs, and the scheduler that calls them when they are due."""

    agenda: Agenda
    heartbeat: Heartbeat
    jobs: Jobs
    scheduler: Scheduler


@asynccontextmanager
async def open_schedule(
    runtime: RuntimeContext,
    agenda: Agenda,
    others: Mapping[str, Tick],
    stores: Stores,
    alerts: Alerting,
    *,
    model: ProviderModel,
    memory: Memory,
    engine: Engine,
) -> AsyncIterator[Schedule]:
    """Open the schedule, and close the rows of beats and jobs that a crash interrupted. Nothing is
    started before the scheduler is. The scheduler calls the ticks in `others`, too.
    """
    heartbeat = _heartbeat(runtime, stores, model, memory, alerts, engine)
    await heartbeat.recover()
    jobs = _jobs(runtime, stores, model, alerts, engine)
    await jobs.recover()
    signs = LifeSigns(heartbeat, runtime.places.life_sign, runtime.clock)
    scheduler = Scheduler(runtime.clock, {"heartbeat": signs, **jobs.lines, **others})
    agenda.listen(scheduler.poke)
    yield Schedule(agenda, heartbeat, jobs, scheduler)
    await _say_good_bye(signs)  # not after a failure, which has to show as missing signs of life


async def _say_good_bye(signs: LifeSigns) -> None:
    try:
        await signs.end()
    except OSError as error:  # the next start will report this stop as a failure
        log.warning("life_sign_not_left", error=str(error))


def build_agenda(runtime: RuntimeContext, stores: Stores) -> Agenda:
    """Build the list of jobs. Changes of it wake the scheduler once `open_schedule` has opened
    that.
    """
    return Agenda(runtime.config.jobs, stores.jobs, SchedulerTriggers(), runtime.clock)


def _heartbeat(
    runtime: RuntimeContext,
    stores: Stores,
    model: ProviderModel,
    memory: Memory,
    alerts: Alerting,
    engine: Engine,
) -> Heartbeat:
    settings = runtime.config.heartbeat
    deps = BeatDependencies(
        clock=runtime.clock,
        beats=stores.beats,
        ledger=stores.ledger,
        turns=engine.sessions,
        breaker=model.breaker,
        read=memory.checklist,
        last_heard=stores.sessions.last_heard,
        budget=runtime.budget_of(
            stores.ledger, Origin.HEARTBEAT, smallest_calls(runtime, model, settings.model)
        ),
        wake=alerts.dispatcher.wake,
        exists=stores.sessions.exists,
        own=engine.tasks.owned,
    )
    recipients = alerts.targets(Origin.HEARTBEAT)
    text = settings.prompt or prompt("heartbeat")
    watching = WatchedEntries(
        settings, engine.sessions, engine.toolbox, runtime.clock, prompt("watch"), recipients
    )
    return Heartbeat(settings, deps, BeatRunner(settings, deps, text, watching, recipients))


def _jobs(
    runtime: RuntimeContext, stores: Stores, model: ProviderModel, alerts: Alerting, engine: Engine
) -> Jobs:
    deps = runs.RunDependencies(
        clock=runtime.clock,
        book=stores.jobs,
        ledger=stores.ledger,
        turns=engine.sessions,
        breaker=model.breaker,
        own=engine.tasks.owned,
        over_budget=runtime.budget_of(
            stores.ledger, Origin.JOB, smallest_calls(runtime, model)
        ).is_used_up,
        wake=alerts.dispatcher.wake,
    )
    recipients = alerts.targets(Origin.JOB)
    return Jobs(runtime.config.jobs, deps, SchedulerTriggers(), prompt("job"), recipients)
