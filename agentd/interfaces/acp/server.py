"""The ACP server: accepts clients on a Unix socket and serves each independently."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from agentd.core.errors import ShuttingDown
from agentd.core.ports import Clock
from agentd.interfaces.acp import frames
from agentd.interfaces.acp.connection import Access, ClientConnection, Routes
from agentd.interfaces.acp.flow import Unfinished, time_limit
from agentd.interfaces.acp.hub import Hub
from agentd.interfaces.acp.listener import Acceptor, SocketPlace, peer_uid
from agentd.interfaces.acp.peer import Clients, Handler, Listener, Peer
from agentd.interfaces.acp.socket_settings import ServerSettings
from agentd.interfaces.commands.sessions import absent

log = structlog.get_logger()

_OF_NO_SESSION = ("initialize", "authenticate", "session/list")
_OF_ITS_SESSION = ("session/load", "session/resume", "session/close", "session/prompt")
_TOLD = ("session/cancel",)
_TOO_MANY = frames.error(
    None,
    frames.BUSY,
    "too many clients are connected",
    {"code": "busy", "cure": "close another client, then try again"},
)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_FAREWELL = 1.0  # seconds that clients have to read what is queued when the daemon stops


class Server:
    """Serves the Agent Client Protocol and agentd's own methods."""

    def __init__(
        self,
        settings: ServerSettings,
        build_access: Callable[[asyncio.TaskGroup], Access],
        *,
        hub: Hub,
        clients: Clients,
        clock: Clock,
        owner_uid: int | None = None,
    ) -> None:
        """`build_access` makes what clients may call; what their calls leave running belongs to the
        group it gets, which ends with `listen`.
        """
        self._settings = settings
        self._build_access = build_access
        self._hub = hub
        self._clients = clients
        self._clock = clock
        self._owner_uid = os.getuid() if owner_uid is None else owner_uid
        self._connections: set[ClientConnection] = set()
        self._unfinished = Unfinished(settings.max_frame_bytes)
        self._all_gone = asyncio.Event()
        self._all_gone.set()

    def adopt(self, settings: ServerSettings) -> None:
        """Use these limits for clients that connect from now on. Unchanged stay the longest line,
        the replay, and how long questions wait.
        """
        self._settings = settings

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._connections)

    @asynccontextmanager
    async def listen(self, place: Path | socket.socket) -> AsyncIterator[None]:
        """Serve at a path, or on a listening socket that systemd handed over, during the block. A
        socket that is removed from its path is bound there again within seconds.

        At its end nobody new is taken, calls in flight are answered with ShuttingDown, and clients
        have a second to read. Raises ConfigError for a place that cannot be used.
        """
        if isinstance(place, Path):
            at_path = SocketPlace(place)
            with at_path.bound() as sock:
                async with self._serve(sock, at_path):
                    yield
        else:
            async with self._serve(place):
                yield

    @asynccontextmanager
    async def _serve(
        self, sock: socket.socket, place: SocketPlace | None = None
    ) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            access = self._build_access(group)

            def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                self._accept((reader, writer), access, group)

            acceptor = Acceptor(accept, self._clock)
            await acceptor.open(sock)
            watching = group.create_task(acceptor.watch(place)) if place else None
            try:
                yield
            finally:
                if watching:
                    watching.cancel()
                acceptor.close()
                await self._drain(group)

    def _accept(self, streams: Streams, access: Access, group: asyncio.TaskGroup) -> None:
        writer = streams[1]
        uid = peer_uid(writer.get_extra_info("socket"))
        if uid != self._owner_uid:
            # Without a word: whoever should not be here learns nothing, not even what this is.
            writer.transport.abort()
            log.warning("foreign_client_refused", uid=uid)
        elif len(self._connections) >= self._settings.max_connections:
            log.warning("client_refused", reason="too_many", connections=len(self._connections))
            group.create_task(_turn_away(writer, _TOO_MANY))
        else:
            connection = ClientConnection(
                streams, access, self._settings, self._clock, self._unfinished
            )
            self._connections.add(connection)
            self._all_gone.clear()
            group.create_task(self._run(connection))

    async def _run(self, connection: ClientConnection) -> None:
        try:
            await connection.run()
        except Exception:  # one client's trouble must not end the others
            log.exception("connection_failed", client=connection.profile.name)
        finally:
            self._connections.discard(connection)
            if not self._connections:
                self._all_gone.set()
            self._hub.leave(connection)
            self._clients.leave(connection)

    async def _drain(self, group: asyncio.TaskGroup) -> None:
        stopping = ShuttingDown()
        for connection in tuple(self._connections):
            if connection.role.is_notified:
                connection.notify("_agentd/stopping", {"message": stopping.message})
            connection.stop()
        try:
            async with time_limit(group, self._clock, _FAREWELL):
                await self._all_gone.wait()
        except TimeoutError:
            log.info("clients_cut", connections=len(self._connections))
            for connection in tuple(self._connections):
                connection.abort()


def bound_routes(routes: Routes) -> Routes:
    """Return the routes for a connection that is bound to one session, each restricted to that
    session.

    The allowed methods are listed here; any other method does not exist for such a connection, so
    new methods are the owner's by default. Another session gets the same answer as one that does
    not exist, without a look whether it exists.
    """
    calls = {name: routes.calls[name] for name in _OF_NO_SESSION}
    calls |= {name: _call(routes.calls[name]) for name in _OF_ITS_SESSION}
    return Routes(calls, {name: _notification(routes.notifications[name]) for name in _TOLD})


def _call(handler: Handler) -> Handler:
    async def handle(params: dict[str, Any], peer: Peer) -> Any:
        session = params.get("sessionId")
        if isinstance(session, str) and not peer.role.sees(session):
            raise absent(session)
        return await handler(params, peer)

    return handle


def _notification(listener: Listener) -> Listener:
    def listen(params: dict[str, Any], peer: Peer) -> None:
        session = params.get("sessionId")
        if isinstance(session, str) and peer.role.sees(session):
            listener(params, peer)

    return listen


async def _turn_away(writer: asyncio.StreamWriter, refusal: dict[str, Any]) -> None:
    """Send the refusal and close. The frame is small enough for the kernel to take it at once."""
    try:
        writer.write(frames.encode(refusal))
        writer.close()
        await writer.wait_closed()
    except OSError:
        log.debug("refused_client_left")
