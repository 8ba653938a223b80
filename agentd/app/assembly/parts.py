"""Opens all parts of the daemon in dependency order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from agentd.app.assembly.alerting import Alerting, open_alerting
from agentd.app.assembly.engine import open_engine
from agentd.app.assembly.facts import FactParts, open_facts
from agentd.app.assembly.graph import GraphParts, build_graph
from agentd.app.assembly.memory import Memory, open_memory
from agentd.app.assembly.model import build_completions, open_model
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.assembly.schedule import Schedule, build_agenda, open_schedule
from agentd.app.assembly.storage import Stores, open_stores
from agentd.app.assembly.tools import ToolParts, build_tools
from agentd.app.garbage_collection import PeriodicCollection
from agentd.app.logs import OpenLog
from agentd.automation.scheduler import Tick
from agentd.core.health import Problem
from agentd.core.ports import Approver, FormAsker, Provider, TurnAudience
from agentd.core.turn import SessionKey
from agentd.engine.assembly import Engine
from agentd.engine.watchers import TurnEndCallback, Watchers
from agentd.engine.workers import Supervisor
from agentd.interfaces.acp.peer import Clients
from agentd.memory.deletion import SessionErasure
from agentd.providers.assembly import ProviderModel


class Parts(Struct, frozen=True, kw_only=True):
    """The opened parts of the daemon, in the groups in which they are built."""

    runtime: RuntimeContext
    stores: Stores
    memory: Memory
    graph: GraphParts
    facts: FactParts
    model: ProviderModel
    alerts: Alerting
    tools: ToolParts
    engine: Engine
    erasure: SessionErasure
    schedule: Schedule
    background: Supervisor

    def problems(
        self, *, without: Iterable[Callable[[], Iterable[Problem]]] = ()
    ) -> tuple[Problem, ...]:
        """Return the problems that any part reports, without duplicates and without those that the
        functions in `without` return.
        """
        stores, memory, schedule = self.stores, self.memory, self.schedule
        asked = (
            self.model,
            memory,
            memory.retention,
            self.erasure,
            self.facts,
            self.graph,
            schedule.heartbeat,
            schedule.jobs,
            schedule.scheduler,
            stores.db,
            stores,
            stores.damages,
            stores.backups,
            stores.index_db,
            self.alerts.dispatcher,
            self.tools.servers,
            self.tools.web.browser,
            self.engine.compaction,
            self.engine.outage,
            self.engine.builder,
            self.background,
        )
        told = (problem for part in asked for problem in part.problems())
        left_out = {problem for problems in without for problem in problems()}
        # Several parts may report the same problem.
        return tuple(problem for problem in dict.fromkeys(told) if problem not in left_out)


@asynccontextmanager
async def open_parts(
    runtime: RuntimeContext,
    clients: Clients,
    approver: Approver,
    *,
    shown: TurnAudience,
    output: OpenLog,
    provider: Provider | None = None,
    forms: FormAsker | None = None,
) -> AsyncIterator[Parts]:
    """Open the parts in dependency order, and close them in reverse order when the block ends. No
    turn or beat runs before the sessions and the scheduler are started. `provider` replaces the
    configured provider. Raises ConfigError, StorageError, WorkspaceError.
    """
    async with AsyncExitStack() as stack:
        opened = stack.enter_async_context
        stores = await opened(open_stores(runtime))
        memory = await opened(open_memory(runtime, stores))
        model = await opened(open_model(runtime, stores, provider))
        completions = build_completions(runtime, stores, model)
        graph = build_graph(runtime, stores, memory)
        facts = await opened(
            open_facts(runtime, stores, memory, graph, completions, shown=shown, output=output)
        )
        events = _watchers(shown, memory, facts)
        alerts = await opened(open_alerting(runtime, stores, clients, events))
        # Tools need the agenda. The schedule comes last: it needs the engine with its tools.
        agenda = build_agenda(runtime, stores)
        tools = build_tools(runtime, stores, memory, graph, facts, alerts, agenda, forms=forms)
        engine = await opened(
            open_engine(
                runtime, stores, facts, completions, model, tools, events, approver=approver
            )
        )
        erasure = _erasure(stores, memory, graph, facts, engine)
        ticks: dict[str, Tick] = {"deletion": erasure, "retention": memory.retention}
        schedule = await opened(
            open_schedule(
                runtime, agenda, ticks, stores, alerts, model=model, memory=memory, engine=engine
            )
        )
        yield Parts(
            runtime=runtime,
            stores=stores,
            memory=memory,
            graph=graph,
            facts=facts,
            model=model,
            alerts=alerts,
            tools=tools,
            engine=engine,
            erasure=erasure,
            schedule=schedule,
            background=Supervisor(runtime.clock),
        )


def _erasure(
    stores: Stores, memory: Memory, graph: GraphParts, facts: FactParts, engine: Engine
) -> SessionErasure:
    """Build the SessionErasure, which deletes sessions from the transcripts and from every other
    place that keeps their words.
    """

    async def unlink(session: SessionKey) -> None:
        if graph.service is not None:
            graph.service.deleted(session)
        await facts.deleted(session)

    places = {
        "search index": memory.indexer.forget,
        "images": lambda _: stores.blobs.sweep(),
        "chat history": stores.typed.erase,
        "facts": unlink,
    }
    return SessionErasure(engine.requests, stores.sessions, places)


def _watchers(shown: TurnAudience, memory: Memory, facts: FactParts) -> Watchers:
    """Return one sink that passes the events of turns to the clients, memory, facts and the garbage
    collection.
    """
    looks = TurnEndCallback(PeriodicCollection().count_turn)
    return Watchers(shown, *memory.watchers, *facts.watchers, looks)
