"""Builds the tools of the model: agentd's own, those of MCP servers, and those for the web."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentd.app.assembly.alerting import Alerting
from agentd.app.assembly.facts import FactParts
from agentd.app.assembly.graph import GraphParts
from agentd.app.assembly.memory import Memory
from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.assembly.storage import Stores
from agentd.automation.heartbeat.beat_sink import HEARTBEAT
from agentd.automation.jobs.agenda import Agenda
from agentd.core.errors import ShuttingDown
from agentd.core.health import Problem
from agentd.core.links import FETCH, SEARCH
from agentd.core.ports import Clock, FormAsker, Tool, ToolSource
from agentd.core.turn import Origin, TurnRequest
from agentd.interfaces.mcp.catalogue import Catalogue
from agentd.interfaces.mcp.client_servers import ClientServers
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.logins import Logins, LoginStore
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.mcp_source import McpSource, ServerLimits
from agentd.interfaces.mcp.reaching import check_installed, dial, is_installed, login_door, source
from agentd.interfaces.mcp.server import ToolServer
from agentd.interfaces.tools.forget import Forget
from agentd.interfaces.tools.graph_recall import GraphRecall
from agentd.interfaces.tools.look import LookSource
from agentd.interfaces.tools.memory_read import MemoryRead
from agentd.interfaces.tools.memory_search import MemorySearch
from agentd.interfaces.tools.memory_tree import MemoryTree
from agentd.interfaces.tools.memory_write import MemoryWrite
from agentd.interfaces.tools.notify import Notify
from agentd.interfaces.tools.remember import Remember
from agentd.interfaces.tools.schedule import ScheduleCancel, ScheduleCreate, ScheduleList
from agentd.interfaces.web.browser import Browser, opening
from agentd.interfaces.web.web_tools import WebFetch, WebSearch, WebSource

_AGAIN = 30.0  # seconds until a server whose tools are unknown is tried again; doubles
_LONGEST = 3600.0  # seconds


class Servers(Struct, frozen=True):
    """The configured MCP servers, the source of their tools, and the servers that clients offer.
    Without the SDK, `tool_source` and `guests` are None.
    """

    servers: tuple[ToolServer, ...]
    tool_source: McpSource | None
    guests: ClientServers | None
    logins: Logins
    clock: Clock

    @property
    def work(self) -> tuple[Work, ...]:
        """The background work that the servers need."""
        own = (self._run,) if self.servers else ()
        return (*own, self.guests.run) if self.guests else own

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems of all servers."""
        return tuple(problem for server in self._all for problem in server.problems())

    def as_json(self) -> tuple[Mapping[str, Any], ...]:
        """Return one entry of `agentd status` for each server."""
        return tuple(server.as_json() for server in self._all)

    @property
    def _all(self) -> tuple[ToolServer, ...]:
        return (*self.servers, *(self.guests.all if self.guests else ()))

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self.logins.open(group)
                for server in self.servers:
                    server.open(group)
                    if not server.catalogue.is_known:
                        group.create_task(self._get_to_know(server))
                await asyncio.Event().wait()
        finally:
            self.logins.close()
            for server in self.servers:
                server.close()

    async def _get_to_know(self, server: ToolServer) -> None:
        """Start the server once so that its tools become known, and retry until that succeeds: the
        model cannot call unknown tools.
        """
        pause = _AGAIN
        while not server.catalogue.is_known:
            try:
                await server.refresh()
            except ShuttingDown:
                return
            except ServerFault:
                await self.clock.sleep(pause)
                pause = min(_LONGEST, 2 * pause)


def build_servers(runtime: RuntimeContext, forms: FormAsker | None) -> Servers:
    """Build the servers that are enabled, without starting any. Raises ConfigError if the SDK is
    needed and not installed.
    """
    settings = runtime.config.mcp
    if settings.enabled:
        check_installed("[mcp.servers]")
    elif not is_installed():
        return Servers((), None, None, Logins({}, {}, runtime.clock), runtime.clock)
    folder = runtime.places.mcp_pins
    stores = {
        name: LoginStore(runtime.places.mcp_logins, name, one, runtime.redactor, runtime.clock.now)
        for name, one in settings.enabled.items()
        if one.auth
    }
    doors = {
        name: login_door(name, settings.enabled[name], runtime.environ, runtime.redactor, store)
        for name, store in stores.items()
    }

    def made(name: str, one: McpServer, kept: Path | None) -> ToolServer:
        return ToolServer(
            name,
            one,
            dial(
                name,
                one,
                runtime.environ,
                runtime.redactor,
                store=stores.get(name) if kept else None,
            ),
            Catalogue(kept, name, source(one)),
            runtime.clock,
            runtime.redactor,
        )

    servers = tuple(made(name, one, folder) for name, one in settings.enabled.items())
    guests = ClientServers(lambda name, one: made(name, one, None), frozenset(settings.servers))
    limits = ServerLimits(settings.prompt_bytes, runtime.config.agent.max_tool_output)
    tool_source = McpSource(servers, settings.vouched, limits, forms, guests.of)
    for server in servers:
        if server.name in stores and (fault := stores[server.name].fault()):
            server.restart(fault)  # reported before the first call
    logins = Logins({server.name: server for server in servers}, doors, runtime.clock)
    return Servers(servers, tool_source, guests, logins, runtime.clock)


class WebParts(Struct, frozen=True):
    """The browser, which reads pages and searches the web, and the source of the tools that
    use it.
    """

    browser: Browser
    tool_source: WebSource


def build_web(runtime: RuntimeContext) -> WebParts:
    """Build the tools for the web that are enabled, without loading or requesting anything."""
    settings, most = runtime.config.web, runtime.config.agent.max_tool_output
    folder = runtime.places.state_dir
    browser = Browser(settings, opening(settings, runtime.environ, folder, runtime.redactor))
    tools: dict[str, Tool] = {
        FETCH: WebFetch(browser, settings, most),
        SEARCH: WebSearch(browser, settings, most),
    }
    return WebParts(browser, WebSource([tools[name] for name in browser.offered], settings))


class ToolParts(Struct, frozen=True):
    """The tools that the model may call: agentd's own, those of servers, and those for the web."""

    own: tuple[Tool, ...]
    servers: Servers
    web: WebParts
    memory: Memory

    @property
    def tool_sources(self) -> tuple[ToolSource, ...]:
        """The sources of the tools that only some turns have."""
        others = (
            self.web.tool_source,
            *([self.servers.tool_source] if self.servers.tool_source else ()),
        )
        return (*others, LookSource(self.memory.checklist, partial(_names, others)))

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds of agentd's own tools and of those for the web, by name."""
        return {
            **{tool.spec.name: tool.spec.kind for tool in self.own},
            **self.web.tool_source.kinds,
        }


def build_tools(
    runtime: RuntimeContext,
    stores: Stores,
    memory: Memory,
    graph: GraphParts,
    facts: FactParts,
    alerts: Alerting,
    agenda: Agenda,
    *,
    forms: FormAsker | None,
) -> ToolParts:
    """Build all tools; agentd's own are in the order in which prompts list them. Raises ConfigError
    if the SDK of MCP servers is needed and not installed.
    """
    learnt = facts.learnt
    own = (
        MemorySearch(facts.recall),
        MemoryRead(facts.recall),
        MemoryRead(facts.recall, "memory_get"),
        MemoryWrite(memory.files, runtime.clock, runtime.redactor),
        MemoryTree(memory.files),
        *((Remember(learnt.service), Forget(learnt.service, facts.recall)) if learnt else ()),
        *((GraphRecall(graph.service),) if graph.service else ()),
        Notify(stores.outbox, alerts.targets, alerts.dispatcher.wake),
        ScheduleCreate(agenda, runtime.clock),
        ScheduleList(agenda),
        ScheduleCancel(agenda),
    )
    return ToolParts(own, build_servers(runtime, forms), build_web(runtime), memory)


def _names(tool_sources: Sequence[ToolSource]) -> tuple[str, ...]:
    """Return the names of the tools that these sources offer to beats."""
    beat = TurnRequest(HEARTBEAT, "", "", origin=Origin.HEARTBEAT)
    return tuple(spec.name for tool_source in tool_sources for spec in tool_source.specs(beat))
