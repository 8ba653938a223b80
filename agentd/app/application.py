"""The assembled daemon: opens every part, runs the parts' background work, and listens on the
socket.

How each part is built is in `agentd/app/assembly/`, in the module of its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager

from agentd.app.assembly.model import warming
from agentd.app.assembly.parts import Parts, open_parts
from agentd.app.assembly.runtime import RuntimeContext, Work
from agentd.app.assembly.server import (
    build_audience,
    build_commands,
    build_server,
    methods,
    place,
)
from agentd.app.assembly.upkeep import Upkeep
from agentd.app.config import Config
from agentd.app.logs import OpenLog
from agentd.app.loop_delay import LoopMonitor
from agentd.core.paths import DaemonPaths
from agentd.core.ports import Clock, Probe
from agentd.engine.budget import Budget


class App:
    """The assembled daemon."""

    def __init__(
        self,
        parts: Parts,
        work: Mapping[str, Sequence[Work]],
        hangup: Callable[[], Awaitable[None]],
        monitor: LoopMonitor,
    ) -> None:
        self._sessions = parts.engine.sessions
        self._scheduler = parts.schedule.scheduler
        self._background = parts.background
        self._work = work
        self._hangup = hangup
        self._monitor = monitor
        self.probes: tuple[Probe, ...] = (parts.stores.db, self._scheduler)

    async def serve(self) -> None:
        """Resume interrupted turns, and run the scheduler and the background work of all parts
        until cancelled. A background task that fails is restarted and stops no other.
        """
        async with self._monitor, asyncio.TaskGroup() as group, self._scheduler:
            for part, works in self._work.items():
                for work in works:
                    group.create_task(self._background.keep(part, work))
            await self._sessions.start()
            await asyncio.Event().wait()

    async def reload(self) -> None:
        """Reload the configuration; a refusal is logged."""
        await self._hangup()

    async def drain(self, seconds: float) -> None:
        """Accept no new turn, and give running turns `seconds` to finish; unfinished ones are
        resumed at the next start.
        """
        await self._sessions.drain(seconds)


@asynccontextmanager
async def open_app(
    config: Config,
    places: DaemonPaths,
    clock: Clock,
    environ: MutableMapping[str, str],
    output: OpenLog,
    stop: asyncio.Event,
) -> AsyncIterator[App]:
    """Open the daemon, recover from a crash, and listen on the socket; close the parts in reverse
    order when the block ends. `stop` is set when a client asks the daemon to end.

    Raises ConfigError, StorageError, WorkspaceError.
    """
    runtime = RuntimeContext(
        config, places, clock, environ, Budget(config.budget), redactor=output.redactor
    )
    audience = build_audience(runtime)
    clients, approver = audience.clients, audience.approver
    async with open_parts(
        runtime, clients, approver, shown=audience.hub, output=output, forms=approver
    ) as parts:
        warm, upkeep, monitor = warming(parts.model), Upkeep(parts, output), LoopMonitor(clock)
        app = App(
            parts,
            {
                "alerts": parts.alerts.work,
                "storage": parts.stores.work,
                "memory": parts.memory.work,
                "graph": parts.graph.work,
                "facts": parts.facts.work,
                "mcp": parts.tools.servers.work,
                "model": (warm.run,),
            },
            upkeep.hangup,
            monitor,
        )
        commands = build_commands(parts)
        own = methods(parts, commands, audience, stop.set, monitor.delays)
        routes = {**own, **upkeep.routes()}
        server = build_server(parts, commands, audience, routes, on_session=warm.nudge)
        upkeep.look_after(server)
        async with server.listen(place(runtime)):
            yield app
