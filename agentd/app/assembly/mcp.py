"""Servers of tools, as configured: started when they are called."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.core.errors import ShuttingDown
from agentd.core.health import Problem
from agentd.core.ports import Clock, FormAsker
from agentd.interfaces.mcp.catalogue import Catalogue
from agentd.interfaces.mcp.guests import Guests
from agentd.interfaces.mcp.link import ServerFault
from agentd.interfaces.mcp.logins import Logins, LoginStore
from agentd.interfaces.mcp.mcp_settings import McpServer
from agentd.interfaces.mcp.mcp_source import McpSource, ServerLimits
from agentd.interfaces.mcp.reaching import (
    check_installed,
    dial,
    is_installed,
    login_door,
    source,
)
from agentd.interfaces.mcp.server import RecallServer

_AGAIN = 30.0  # seconds until a server of which nothing is known is tried again; doubles
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class Servers:
    """All servers, the tool source with their tools, and those that clients bring along; None without the SDK."""

    servers: tuple[RecallServer, ...]
    tool_source: McpSource | None
    guests: Guests | None
    logins: Logins
    clock: Clock

    @property
    def work(self) -> tuple[Work, ...]:
        """What lets them run."""
        own = (self._run,) if self.servers else ()
        return (*own, self.guests.run) if self.guests else own

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with any of them."""
        return tuple(problem for server in self._all for problem in server.problems())

    def as_json(self) -> tuple[Mapping[str, Any], ...]:
        """A line of `agentd status` for each."""
        return tuple(server.as_json() for server in self._all)

    @property
    def _all(self) -> tuple[RecallServer, ...]:
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

    async def _get_to_know(self, server: RecallServer) -> None:
        """Start it once, since nobody could call what nobody knows of."""
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
    """Those that are on; none is started. Raises ConfigError where what they need is not installed."""
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

    def made(name: str, one: McpServer, kept: Path | None) -> RecallServer:
        return RecallServer(
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
    guests = Guests(lambda name, one: made(name, one, None), frozenset(settings.servers))
    limits = ServerLimits(settings.prompt_bytes, runtime.config.agent.max_tool_output)
    tool_source = McpSource(servers, settings.vouched, limits, forms, guests.of)
    for server in servers:
        if server.name in stores and (fault := stores[server.name].fault()):
            server.restart(fault)  # it is told before anybody calls it
    logins = Logins({server.name: server for server in servers}, doors, runtime.clock)
    return Servers(servers, tool_source, guests, logins, runtime.clock)
