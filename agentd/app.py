"""The composition root: the one place that names concrete classes.

`open_app` opens the parts in order of dependency and closes them in reverse. A part gets its own
settings, its ports and the clock; nobody gets the whole configuration.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from agentd import __version__
from agentd.alerts.command import CommandSink
from agentd.alerts.dispatch import Dispatcher
from agentd.alerts.journal import JournalSink
from agentd.alerts.main_session import MainSessionSink
from agentd.alerts.targets import Targets
from agentd.alerts.webhook import WebhookSink
from agentd.config import Config
from agentd.domain.health import Problem
from agentd.domain.turn import Kind, Origin, SessionKey
from agentd.domain.workspace import Reader
from agentd.engine.assembly import Engine, Outside, Wording, build_engine, slice_tokens
from agentd.engine.budget import Budget, SilentBudget
from agentd.engine.compaction.plan import Thresholds, smallest_window, thresholds
from agentd.engine.nudged import Nudged
from agentd.engine.sessions import Sessions
from agentd.engine.watchers import Watchers, WhenEnded, WhenNoticed
from agentd.errors import ConfigError
from agentd.heartbeat.examination import Examination
from agentd.heartbeat.pulse import Pulse
from agentd.heartbeat.surroundings import Surroundings
from agentd.jobs import questions
from agentd.jobs.agenda import Agenda
from agentd.jobs.jobs import Jobs
from agentd.logs import OpenLog
from agentd.memory.erasure import Erasure
from agentd.memory.flush import MemoryFlush
from agentd.memory.indexer import Indexer
from agentd.memory.recall import MemoryRecall
from agentd.parts import Alerting, Memory, Parts, Stores, Work, prompt
from agentd.paths import Places, ensure_private_dir, shipped
from agentd.ports import AlertSink, Clock, EventSink, Probe, Provider, Tool
from agentd.providers.assembly import Model, open_model
from agentd.providers.metered import Metered
from agentd.providers.settings import ServiceSettings
from agentd.scheduler.aps import Scheduler
from agentd.scheduler.triggers import Triggers
from agentd.server.alerts import SocketAlerts
from agentd.server.clients import Clients
from agentd.server.heartbeat_commands import HeartbeatCommands
from agentd.server.hub import Hub
from agentd.server.listener import inherited_socket
from agentd.server.memory_commands import MemoryCommands
from agentd.server.methods.alerts import AlertMethods
from agentd.server.methods.export import ExportMethods
from agentd.server.methods.heartbeat import HeartbeatMethods
from agentd.server.methods.jobs import JobMethods
from agentd.server.methods.memory import MemoryMethods
from agentd.server.methods.sessions import SessionMethods
from agentd.server.methods.status import StatusMethods, StatusParts
from agentd.server.peer import Handler
from agentd.server.permissions import Permissions
from agentd.server.server import Server
from agentd.server.sessions import Services
from agentd.storage.index import SqliteIndex
from agentd.storage.jobs import SqliteJobs
from agentd.storage.journal import SqliteJournal
from agentd.storage.ledger import SqliteLedger
from agentd.storage.migrations import INDEX, STATE
from agentd.storage.outbox import SqliteOutbox
from agentd.storage.schedule import SqliteJobBook
from agentd.storage.sessions import SqliteSessions
from agentd.storage.sqlite import Database
from agentd.tools.memory_read import MemoryRead
from agentd.tools.memory_search import MemorySearch
from agentd.tools.memory_tree import MemoryTree
from agentd.tools.memory_write import MemoryWrite
from agentd.tools.notify import Notify
from agentd.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList
from agentd.upkeep import Upkeep, check_prices
from agentd.workspace import template
from agentd.workspace.files import Files
from agentd.workspace.injection import Injection

log = structlog.get_logger()

HEARTBEAT = Reader(SessionKey("heartbeat:main"), Kind.MAIN)


class App:
    """The assembled daemon."""

    def __init__(
        self,
        sessions: Sessions,
        scheduler: Scheduler,
        store: Database,
        work: Sequence[Work],
        hangup: Callable[[], Awaitable[None]],
    ) -> None:
        self._sessions = sessions
        self._scheduler = scheduler
        self._work = tuple(work)
        self._hangup = hangup
        self.probes: tuple[Probe, ...] = (store, scheduler)
        self.stop_requested = asyncio.Event()

    async def serve(self) -> None:
        """Go on with what was cut, beat, deliver and index until cancelled."""
        async with asyncio.TaskGroup() as group, self._scheduler:
            for work in self._work:
                group.create_task(work())
            await self._sessions.start()
            await asyncio.Event().wait()

    async def reload(self) -> None:
        """Take a changed configuration into use, or say in the log why not."""
        await self._hangup()

    async def drain(self, seconds: float) -> None:
        """Take nothing new; running turns get `seconds` to finish, then they are put aside."""
        await self._sessions.drain(seconds)


@asynccontextmanager
async def open_app(
    config: Config,
    places: Places,
    clock: Clock,
    environ: MutableMapping[str, str],
    output: OpenLog,
) -> AsyncIterator[App]:
    """The daemon, recovered and listening; closed in reverse when the block ends.

    Raises ConfigError, StorageError, WorkspaceError.
    """
    async with AsyncExitStack() as stack:
        build = Assembly(config, places, clock, environ, stack, Budget(config.budget))
        stores = await build.stores()
        memory = await build.memory(stores)
        model = await build.model(stores)
        hub, clients = Hub(build.limits.window), Clients()
        events, audit = build.watching(hub, memory)
        alerts = await build.alerts(stores, clients, events)
        approver = Permissions(hub, config.server, clock, build.root)
        agenda = build.agenda(stores, lambda: scheduler.poke())
        tools = build.tools(stores, memory, alerts, agenda)
        engine = await build.engine(
            Outside(
                store=stores.sessions,
                journal=stores.journal,
                ledger=stores.ledger,
                provider=model.provider,
                approver=approver,
                events=events,
                clock=clock,
                tools=tools,
                sources=(memory.injection,),
                hooks=(build.flush(stores),),
                offer=model.offer,
            )
        )
        pulse = build.pulse(stores, model, memory, alerts, engine)
        await pulse.recover()
        jobs = build.jobs(stores, model, alerts, engine)
        await jobs.recover()
        scheduler = Scheduler(clock, {"heartbeat": pulse, **jobs.lines})
        warming = Nudged("warming", model.warm or _nothing)
        work = (*alerts.work, memory.indexer.run, audit, warming.run)
        parts = Parts(
            *(config, places, clock, environ, stores, memory, model, alerts, engine, pulse),
            *(jobs, scheduler, build.budget),
        )
        upkeep = Upkeep(parts, build.root, build.limits, output)
        app = App(engine.sessions, scheduler, stores.db, work, upkeep.hangup)
        methods = {**build.methods(parts, app, agenda, clients), **upkeep.routes()}
        services = build.services(parts, tools, warming.nudge)
        await build.listen(parts, hub, clients, methods, services, upkeep)
        yield app


@dataclass(frozen=True, slots=True)
class Assembly:
    """Builds the parts; what must be closed goes onto the stack."""

    config: Config
    places: Places
    clock: Clock
    environ: MutableMapping[str, str]
    stack: AsyncExitStack
    budget: Budget

    @property
    def root(self) -> Path:
        """The workspace: the configured place, else the usual one."""
        path = self.config.workspace.path
        return Path(path).expanduser() if path else self.places.workspace

    @property
    def limits(self) -> Thresholds:
        """When contexts are flushed and compacted."""
        compacting = self.config.compaction
        return thresholds(
            self.config.provider.context_window,
            compacting.memory_flush.soft_threshold_tokens,
            mode=compacting.mode,
            reserve=compacting.reserve_tokens,
        )

    async def stores(self) -> Stores:
        """The databases, open and migrated."""
        state = ensure_private_dir(self.places.state_dir)
        db = await self.stack.enter_async_context(Database.open(state / "state.db", STATE))
        index_db = await self.stack.enter_async_context(
            Database.open(state / "index.db", INDEX, synchronous="NORMAL")
        )
        return Stores(
            db,
            index_db,
            SqliteSessions(db, self.clock),
            SqliteJournal(db),
            SqliteLedger(db, self.clock),
            SqliteJobs(db, self.clock),
            SqliteJobBook(db, self.clock),
            SqliteOutbox(db, self.clock),
            SqliteIndex(index_db),
        )

    async def memory(self, stores: Stores) -> Memory:
        """The workspace, made from the template if there is none, and its index."""
        if not self.root.is_dir():
            template.create(self.root, shipped("workspace_template"))
        files = Files(
            self.root,
            self.config.workspace,
            self.clock,
            self.config.workspace.scopes(),
            self.places.state_dir / "versions",
        )
        await files.clear_strays()
        injection = Injection(files, self.config.workspace)
        await injection.audit(Kind.MAIN)
        indexer = Indexer(stores.index, files, stores.sessions, self.clock)
        recall = MemoryRecall(stores.index, indexer, stores.sessions, files)
        return Memory(files, injection, indexer, recall)

    async def model(self, stores: Stores) -> Model:
        """The provider that the configuration and the keys at hand call for, and its fallbacks."""
        budget, clock = self.budget, self.clock

        def metered(provider: Provider, service: ServiceSettings) -> Provider:
            return Metered(provider, stores.ledger, budget, clock, service.max_tokens)

        opening = open_model(self.config.provider, self.environ, clock, metered)
        model = await self.stack.enter_async_context(opening)
        check_prices(self.config, model)
        return model

    async def alerts(self, stores: Stores, clients: Clients, events: EventSink) -> Alerting:
        """The sinks that are on, and their dispatcher."""
        settings = self.config.alerts
        sinks: list[AlertSink] = []
        if settings.journal:
            sinks.append(JournalSink())
        socket_alerts = SocketAlerts(clients, stores.outbox)
        if settings.socket:
            sinks.append(socket_alerts)
        if settings.main:
            sinks.append(MainSessionSink(stores.sessions, events))
        if settings.command:
            sinks.append(CommandSink(settings.command, settings.timeout, self.environ))
        if url := settings.webhook(self.environ):
            sinks.append(await self.stack.enter_async_context(WebhookSink(url, settings.timeout)))
        dispatcher = Dispatcher(
            stores.outbox,
            sinks,
            self.clock,
            max_tries=settings.max_tries,
            retry_delay=settings.retry_delay,
        )
        usual = tuple(s.name for s in sinks)
        targets = Targets(usual, self.config.heartbeat.target, self.config.heartbeat.to)
        work = (dispatcher.run, socket_alerts.run)
        return Alerting(dispatcher, targets, work)

    async def engine(self, outside: Outside) -> Engine:
        """What runs turns, its journal repaired."""
        compacting = self.config.compaction
        wording = Wording(prompt("system"), prompt("light"), prompt("summary"))
        engine = build_engine(
            outside,
            wording,
            self.limits,
            agent=self.config.agent,
            compaction=compacting,
            price=self.budget.price,
        )
        fixed = await engine.fixed_tokens()
        if self.limits.flush_at < 2 * fixed:
            soft = compacting.memory_flush.soft_threshold_tokens
            least = smallest_window(fixed, soft, compacting.reserve_tokens)
            msg = f"[provider] context_window = {self.limits.window} is too small: the fixed prompt alone takes about {fixed} tokens"
            raise ConfigError(msg, cure=f"set it to {least} or more, or shorten the injected files")
        await self.stack.enter_async_context(engine.sessions.open())
        return engine

    def flush(self, stores: Stores) -> MemoryFlush:
        """What saves memories before messages leave a context."""
        settings = self.config.compaction.memory_flush
        return MemoryFlush(
            stores.sessions,
            settings,
            self.clock,
            lambda: slice_tokens(self.limits),
            self.config.workspace.daily_dir,
        )

    def tools(
        self, stores: Stores, memory: Memory, alerts: Alerting, agenda: Agenda
    ) -> tuple[Tool, ...]:
        """What the model may call, in the order it is told."""
        return (
            MemorySearch(memory.recall),
            MemoryRead(memory.recall),
            MemoryRead(memory.recall, "memory_get"),
            MemoryWrite(memory.files, self.clock),
            MemoryTree(memory.files),
            Notify(stores.outbox, alerts.targets),
            ScheduleCreate(agenda, self.clock),
            ScheduleList(agenda),
            ScheduleCancel(agenda),
        )

    def pulse(
        self, stores: Stores, model: Model, memory: Memory, alerts: Alerting, engine: Engine
    ) -> Pulse:
        """The heartbeat."""
        settings = self.config.heartbeat
        around = Surroundings(
            clock=self.clock,
            jobs=stores.jobs,
            ledger=stores.ledger,
            turns=engine.sessions,
            breaker=model.breaker,
            read=partial(memory.files.read, "HEARTBEAT.md", HEARTBEAT),
            last_heard=stores.sessions.last_heard,
            over_budget=self._budget(stores, Origin.HEARTBEAT),
            wake=alerts.dispatcher.wake,
        )
        sinks, to = alerts.targets(Origin.HEARTBEAT)
        text = settings.prompt or prompt("heartbeat")
        return Pulse(settings, around, Examination(settings, around, text, sinks=sinks, to=to))

    def agenda(self, stores: Stores, wake: Callable[[], None]) -> Agenda:
        """The list of jobs."""
        return Agenda(self.config.jobs, stores.book, Triggers(), self.clock, wake)

    def jobs(self, stores: Stores, model: Model, alerts: Alerting, engine: Engine) -> Jobs:
        """Reminders and questions at set times."""
        around = questions.Surroundings(
            clock=self.clock,
            book=stores.book,
            ledger=stores.ledger,
            turns=engine.sessions,
            breaker=model.breaker,
            over_budget=self._budget(stores, Origin.JOB),
            wake=alerts.dispatcher.wake,
        )
        sinks, to = alerts.targets(Origin.JOB)
        return Jobs(self.config.jobs, around, Triggers(), prompt("job"), sinks=sinks, to=to)

    def watching(self, hub: Hub, memory: Memory) -> tuple[Watchers, Work]:
        """Who watches turns, and the audit of required files that follows a compaction."""
        audit = Nudged("audit", partial(memory.injection.audit, Kind.MAIN))
        touched = WhenEnded(memory.indexer.touch)
        return Watchers(hub, touched, WhenNoticed("compaction", audit.nudge)), audit.run

    def services(
        self, parts: Parts, tools: Sequence[Tool], on_session: Callable[[], None]
    ) -> Services:
        """What sessions on the wire need of the other parts."""
        engine, memory = parts.engine, parts.memory
        notes = MemoryCommands(memory.files, memory.recall)
        return Services(
            erase=Erasure(engine.sessions, memory.indexer).delete,
            offer=parts.model.offer,
            commands=(*notes.all(), *HeartbeatCommands(parts.pulse).all()),
            on_session=on_session,
            kinds={tool.spec.name: tool.spec.kind for tool in tools},
        )

    def methods(
        self, parts: Parts, app: App, agenda: Agenda, clients: Clients
    ) -> dict[str, Handler]:
        """The commands on what the daemon does, by name."""
        stores, memory, pulse = parts.stores, parts.memory, parts.pulse
        jobs, dispatcher = parts.jobs, parts.alerts.dispatcher
        return {
            **self.status(app, parts).routes(),
            **self.sessions(stores, parts.engine, memory).routes(),
            **MemoryMethods(memory.files, memory.recall, memory.indexer).routes(),
            **HeartbeatMethods(pulse, stores.jobs, self.clock).routes(),
            **JobMethods(agenda, jobs, pulse, stores.jobs, lambda: pulse.interval).routes(),
            **AlertMethods(stores.outbox, dispatcher, clients, self.clock).routes(),
            **ExportMethods(stores.outbox, stores.jobs, stores.book, stores.ledger).routes(),
        }

    async def listen(
        self,
        parts: Parts,
        hub: Hub,
        clients: Clients,
        methods: Mapping[str, Handler],
        services: Services,
        upkeep: Upkeep,
    ) -> None:
        """Open the socket."""
        server = Server(
            self.config.server,
            parts.engine.sessions,
            parts.stores.sessions,
            hub=hub,
            clients=clients,
            methods=methods,
            clock=self.clock,
            services=services,
        )
        upkeep.look_after(server)
        place = inherited_socket(self.environ) or self.places.socket
        await self.stack.enter_async_context(server.listen(place))

    def _budget(self, stores: Stores, origin: Origin) -> Callable[[], Awaitable[bool]]:
        return SilentBudget(self.budget, stores.ledger, self.clock, origin).is_used_up

    def sessions(self, stores: Stores, engine: Engine, memory: Memory) -> SessionMethods:
        """The commands on conversations."""
        erase = Erasure(engine.sessions, memory.indexer).delete
        return SessionMethods(stores.sessions, engine.sessions, erase, stores.ledger, self.clock)

    def status(self, app: App, parts: Parts) -> StatusMethods:
        """How the daemon tells that it is well."""
        stores, memory, model, engine = parts.stores, parts.memory, parts.model, parts.engine

        def problems() -> tuple[Problem, ...]:
            told = (model, memory.files, memory.indexer, parts.pulse, parts.jobs)
            return tuple(p for part in told for p in part.problems())

        lines = StatusParts(
            version=__version__,
            started=self.clock.monotonic(),
            provider=lambda: {**model.status(), "effective_window": self.limits.window},
            heartbeat=parts.pulse.status,
            compaction=lambda: engine.compaction.last,
            index=memory.indexer.state,
            store=stores.sessions,
            turns=engine.sessions,
            ledger=stores.ledger,
            probes=(*app.probes, stores.index_db, parts.alerts.dispatcher),
            problems=problems,
        )
        return StatusMethods(lines, self.clock, app.stop_requested.set)


async def _nothing() -> None:
    """There is no library to load."""
