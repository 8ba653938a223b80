"""Builds what clients reach: the sessions, the commands, the socket server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentd import __version__
from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.model import smallest_calls
from agentd.app.assembly.parts import Parts
from agentd.app.assembly.runtime import RuntimeContext
from agentd.app.loop_delay import Delays
from agentd.core.errors import FactsOff
from agentd.core.ports import Approver, Blobs, Clock, SessionStore
from agentd.core.transcript import NOTHING_OFFERED, AvailableChoices
from agentd.core.turn import Origin, SessionKey
from agentd.engine.workers import DAY
from agentd.interfaces.acp import declared
from agentd.interfaces.acp.acp_sessions import AcpSessions, ServerOffers, SessionHooks, SessionView
from agentd.interfaces.acp.connection import Access, Routes
from agentd.interfaces.acp.hub import Hub
from agentd.interfaces.acp.importer import Importer
from agentd.interfaces.acp.listener import inherited_socket
from agentd.interfaces.acp.options import SessionOptions
from agentd.interfaces.acp.peer import Clients, Handler, Peer
from agentd.interfaces.acp.permissions import Permissions
from agentd.interfaces.acp.pictures import Pictures
from agentd.interfaces.acp.prompts import AddMentioned, Prompts, SessionTurns
from agentd.interfaces.acp.server import Server, bound_routes
from agentd.interfaces.acp.slash_commands import Commands, SlashCommand
from agentd.interfaces.acp.socket_settings import ServerSettings
from agentd.interfaces.commands.alerts import ALERTS, AlertCommands
from agentd.interfaces.commands.conversation import CONVERSATION, ConversationCommands
from agentd.interfaces.commands.declaration import Group
from agentd.interfaces.commands.exchange import (
    EXCHANGE,
    PROGRAMS,
    ExchangeCommands,
    ProgramCommands,
)
from agentd.interfaces.commands.export import EXPORT, ExportCommands
from agentd.interfaces.commands.fact_changes import FACT_CHANGES, ChangeCommands
from agentd.interfaces.commands.facts import FACTS, GRAPH, FactCommands, GraphCommands, graph_is_off
from agentd.interfaces.commands.heartbeat import HEARTBEAT, HeartbeatCommands
from agentd.interfaces.commands.history import HISTORY, HistoryCommands
from agentd.interfaces.commands.jobs import (
    JOBS,
    ConsolidationJob,
    HeartbeatJob,
    JobCommands,
    SystemJob,
)
from agentd.interfaces.commands.memory import IN_NOTES, MEMORY, MemoryCommands, NoteLineFinder
from agentd.interfaces.commands.offers import OFFERS, OfferCommands
from agentd.interfaces.commands.proposals import PROPOSALS, ProposalCommands
from agentd.interfaces.commands.sessions import SESSIONS, SessionCommands, WorkingContexts
from agentd.interfaces.commands.status import STATUS, StatusCommands, StatusParts
from agentd.interfaces.commands.tool_servers import (
    LOGINS,
    RESOURCES,
    LoginCommands,
    ResourceCommands,
)
from agentd.interfaces.mcp.mentions import Mentions
from agentd.memory.facts.exchange import take_in
from agentd.memory.graph.service import GraphAnswers
from agentd.zero.delta import as_json


class ConnectedAudience(Struct, frozen=True):
    """The connected clients: `hub` has those that watch sessions, `clients` those that show alerts,
    `approver` asks the owner.
    """

    hub: Hub
    clients: Clients
    approver: Permissions


def build_audience(runtime: RuntimeContext) -> ConnectedAudience:
    """Build an audience without clients."""
    hub = Hub(runtime.limits.window, runtime.config.server.max_sessions_per_client)
    approver = Permissions(hub, runtime.config.server, runtime.clock, runtime.workspace)
    return ConnectedAudience(hub, Clients(), approver)


class BuiltCommands(Struct, frozen=True, kw_only=True):
    """The commands that clients reach in more than one way: as a method, as a slash command, or as
    part of the status.
    """

    sessions: SessionCommands
    heartbeat: HeartbeatCommands
    notes: NoteLineFinder
    facts: tuple[tuple[Group, object | None], ...]  # None where facts are off


def build_commands(parts: Parts) -> BuiltCommands:
    """Build the commands that `methods` and `build_server` share."""
    notes = NoteLineFinder(parts.facts.recall)
    return BuiltCommands(
        sessions=_sessions(parts),
        heartbeat=HeartbeatCommands(
            parts.schedule.heartbeat, parts.stores.beats, parts.runtime.clock
        ),
        notes=notes,
        facts=_fact_groups(parts, notes),
    )


def build_server(
    parts: Parts,
    commands: BuiltCommands,
    audience: ConnectedAudience,
    methods: Mapping[str, Handler],
    on_session: Callable[[], None],
) -> Server:
    """Build the server, which does not listen yet. `on_session` is called when a client opens a
    session.
    """
    settings, clock = parts.runtime.config.server, parts.runtime.clock
    access = partial(
        build_access,
        settings=settings,
        turns=parts.engine.sessions,
        store=parts.stores.sessions,
        hub=audience.hub,
        clients=audience.clients,
        methods=methods,
        clock=clock,
        uses=_client_uses(parts, commands, audience.approver, on_session),
    )
    return Server(settings, access, hub=audience.hub, clients=audience.clients, clock=clock)


class ClientUses(Struct, frozen=True):
    """What clients have of other parts of agentd, besides turns and stored sessions.

    `hooks` are called for what happens to sessions, `contexts` is what the owner may ask of their
    contexts, `offer` has the available choices, `commands` are the slash commands of other parts,
    `blobs` stores images, `patience` is how long prompts wait for the model's service, and
    `add_mentioned` adds what a message mentions.
    """

    hooks: SessionHooks
    contexts: WorkingContexts
    offer: AvailableChoices = NOTHING_OFFERED
    commands: tuple[SlashCommand, ...] = ()
    blobs: Blobs | None = None
    patience: timedelta = timedelta(0)
    add_mentioned: AddMentioned | None = None


def build_access(
    group: asyncio.TaskGroup,
    *,
    settings: ServerSettings,
    turns: SessionTurns,
    store: SessionStore,
    hub: Hub,
    clients: Clients,
    methods: Mapping[str, Handler],
    clock: Clock,
    uses: ClientUses,
) -> Access:
    """Build what clients may call: the methods of ACP, and `methods`, which only the owner may
    call. Tasks that store messages run in `group`.
    """
    options = SessionOptions(store, hub, uses.offer)
    typed = declared.typed(CONVERSATION, ConversationCommands(turns, uses.contexts, store, options))
    pictures = Pictures(uses.blobs, settings)
    prompts = Prompts(
        turns,
        hub,
        Commands((*typed, *uses.commands)),
        pictures,
        group,
        uses.patience,
        uses.add_mentioned,
    )
    acp = AcpSessions(
        turns=turns,
        store=store,
        hub=hub,
        clients=clients,
        prompts=prompts,
        options=options,
        hooks=uses.hooks,
        view=SessionView(settings.replay_turns, clock.zone.key, settings.max_frame_bytes, pictures),
        group=group,
    ).routes()
    own = {name: _listen_first(clients, method) for name, method in methods.items()}
    return Access(Routes({**acp.calls, **own}, acp.notifications), bound_routes(acp))


def _listen_first(clients: Clients, method: Handler) -> Handler:
    """Wrap a method so that a call also subscribes the client to alerts, if the client has
    initialized its connection and a user is present.
    """

    async def handle(params: dict[str, Any], peer: Peer) -> Any:
        if peer.profile.has_greeted and not peer.profile.denies:
            # A client that calls agentd's own methods may know alerts; it need not show them.
            clients.listen(peer, shows=False)
        return await method(params, peer)

    return handle


def place(runtime: RuntimeContext) -> Path | socket.socket:
    """Return where the server listens: on the socket that systemd passed, else at the default
    path.
    """
    return inherited_socket(runtime.environ) or runtime.places.socket


def methods(
    parts: Parts,
    commands: BuiltCommands,
    audience: ConnectedAudience,
    stop: Callable[[], None],
    delays: Delays,
) -> dict[str, Handler]:
    """Return the methods of what the daemon does, by name. `Upkeep` has the methods about the
    daemon itself.
    """
    stores, memory, schedule = parts.stores, parts.memory, parts.schedule
    clients = audience.clients
    clock, dispatcher = parts.runtime.clock, parts.alerts.dispatcher
    status = _status(parts, commands.sessions, delays)
    return {
        **declared.methods(STATUS, StatusCommands(status, clock, stop)),
        **declared.methods(SESSIONS, commands.sessions),
        **declared.methods(MEMORY, _memory(parts)),
        **declared.methods(HISTORY, HistoryCommands(memory.files)),
        **_facts(commands),
        **_offers(parts, audience.approver),
        **_graph(parts.graph, clock),
        **declared.methods(HEARTBEAT, commands.heartbeat),
        **declared.methods(JOBS, JobCommands(schedule.agenda, schedule.jobs, _own_jobs(parts))),
        **declared.methods(ALERTS, AlertCommands(stores.outbox, dispatcher, clients.listen, clock)),
        **declared.methods(EXPORT, _export(parts)),
        **declared.methods(LOGINS, LoginCommands(parts.tools.servers.logins)),
        **declared.methods(RESOURCES, ResourceCommands(parts.tools.servers.servers)),
    }


def _sessions(parts: Parts) -> SessionCommands:
    stores, memory, learnt = parts.stores, parts.memory, parts.facts.learnt

    def imported(session: SessionKey) -> None:
        memory.indexer.touch(session)
        if learnt is not None:
            learnt.learning.touch(session)

    importer = Importer(
        stores.sessions,
        parts.runtime.clock,
        stores.blobs,
        on_import=imported,
        workspace=memory.files,
    )
    return SessionCommands(
        stores.sessions,
        parts.engine.sessions,
        parts.engine.requests,
        parts.erasure.delete,
        stores.ledger,
        importer,
    )


def _export(parts: Parts) -> ExportCommands:
    stores = parts.stores
    pictures = (stores.sessions, stores.blobs)
    return ExportCommands(stores.outbox, stores.beats, stores.jobs, stores.ledger, pictures)


def _memory(parts: Parts) -> MemoryCommands:
    memory = parts.memory
    return MemoryCommands(
        memory.files,
        parts.facts.recall,
        memory.indexer,
        memory.embedders.exporter.export,
        parts.facts.erase,
        parts.facts.preview_erasure,
        embedder=memory.embedders.status,
        problems=memory.problems,
    )


def _own_jobs(parts: Parts) -> tuple[SystemJob, ...]:
    heartbeat = parts.schedule.heartbeat
    beats = HeartbeatJob(heartbeat, parts.stores.beats, lambda: heartbeat.interval)
    return beats, ConsolidationJob(parts.graph, timedelta(seconds=DAY))


def _facts(commands: BuiltCommands) -> dict[str, Handler]:
    """Return the methods of facts. While facts are off, each raises FactsOff."""
    routes: dict[str, Handler] = {}
    for group, built in commands.facts:
        routes |= (
            declared.methods(group, built) if built else declared.refused(group, _facts_are_off)
        )
    return routes


def _offers(parts: Parts, owner: Permissions) -> dict[str, Handler]:
    """Return the methods by which other programs offer facts. While facts are off, each raises
    FactsOff.
    """
    if (learnt := parts.facts.learnt) is None:
        return declared.refused(OFFERS, _facts_are_off)
    return declared.methods(OFFERS, OfferCommands(learnt.service, owner))


def _typed_facts(commands: BuiltCommands) -> tuple[SlashCommand, ...]:
    """Return the slash commands of facts. While facts are off, `/forget` searches the notes for a
    text.
    """
    typed: list[SlashCommand] = []
    for group, built in commands.facts:
        typed += (
            declared.typed(group, built)
            if built
            else declared.refused_typed(group, "Facts are switched off", _facts_are_off)
        )
    if not any(built for _, built in commands.facts):
        typed += declared.typed(IN_NOTES, commands.notes)
    return tuple(typed)


def _fact_groups(parts: Parts, notes: NoteLineFinder) -> tuple[tuple[Group, object | None], ...]:
    """Return the command groups of facts, each with the object that implements it, or None while
    facts are off.
    """
    if (learnt := parts.facts.learnt) is None:
        return (FACTS, None), (FACT_CHANGES, None), (PROPOSALS, None)
    book, service = learnt.book, learnt.service
    return (
        (FACTS, FactCommands(book, service, partial(take_in, book), notes)),
        (FACT_CHANGES, ChangeCommands(book, service, learnt.review.validate)),
        (PROPOSALS, ProposalCommands(learnt.proposals)),
    )


def _facts_are_off() -> FactsOff:
    return FactsOff(
        "facts are switched off: nothing about you is kept or recalled",
        cure="set `enabled = true` in the [facts] table of config.toml, then `agentd restart`",
    )


def _graph(graph: GraphParts, clock: Clock) -> dict[str, Handler]:
    """Return the methods of the graph. While the graph is off, each refuses."""
    if graph.service is None:
        off = (declared.refused(group, graph_is_off) for group in (GRAPH, EXCHANGE, PROGRAMS))
        return {name: handler for routes in off for name, handler in routes.items()}
    exchanged = ExchangeCommands(graph.exchange, graph.sharing, as_json)
    return {
        **declared.methods(GRAPH, GraphCommands(GraphAnswers(graph.service))),
        **declared.methods(EXCHANGE, exchanged),
        **declared.methods(PROGRAMS, ProgramCommands(graph.programs, clock)),
    }


def _client_uses(
    parts: Parts, commands: BuiltCommands, approver: Approver, on_session: Callable[[], None]
) -> ClientUses:
    learnt = parts.facts.learnt
    hooks = SessionHooks(
        erase=parts.erasure.delete,
        on_session=on_session,
        closed=learnt.learning.finish if learnt else lambda _: None,
        forked=learnt.learning.forked if learnt else None,
        kinds=parts.tools.kinds,
        welcome=_welcome(parts, approver),
    )
    return ClientUses(
        hooks,
        parts.engine.requests,
        offer=parts.model.offer,
        commands=(*_typed_facts(commands), *declared.typed(HEARTBEAT, commands.heartbeat)),
        blobs=parts.stores.blobs,
        patience=parts.runtime.config.provider.patience,
        add_mentioned=_mentions(parts, approver),
    )


def _welcome(parts: Parts, approver: Approver) -> ServerOffers | None:
    """Return the function that takes the MCP servers that clients offer; None if the SDK is not
    installed.
    """
    guests = parts.tools.servers.guests
    return partial(guests.offered, approver) if guests else None


def _mentions(parts: Parts, approver: Approver) -> AddMentioned | None:
    """Return the function that adds the resources that a message mentions; None without MCP
    servers.
    """
    servers = parts.tools.servers.servers
    if not servers:
        return None
    return Mentions(servers, approver, parts.runtime.config.agent.max_tool_output).attached


def _status(parts: Parts, sessions: SessionCommands, delays: Delays) -> StatusParts:
    """Collect the sources of `agentd status`."""
    stores, memory, model, schedule = parts.stores, parts.memory, parts.model, parts.schedule
    window = parts.runtime.limits.window
    budget = parts.runtime.budget_of(
        stores.ledger, Origin.USER, smallest_calls(parts.runtime, model)
    )

    return StatusParts(
        version=__version__,
        started=parts.runtime.clock.monotonic(),
        provider=lambda: {**model.status(), "effective_window": window},
        heartbeat=schedule.heartbeat.status,
        compaction=lambda: parts.engine.compaction.last,
        index=memory.indexer.state,
        embedder=memory.embedders.status,
        retention=memory.retention.status,
        graph=parts.graph.status,
        facts=parts.facts.counts,
        sessions=sessions.used,
        ledger=stores.ledger,
        refused=budget.least_refusal,
        loop=delays.as_json,
        mcp=parts.tools.servers.as_json,
        web=parts.tools.web.browser.as_json,
        alerts=parts.alerts.dispatcher.standings,
        problems=parts.problems,
    )
