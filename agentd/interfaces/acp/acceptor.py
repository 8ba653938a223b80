"""Taking clients in, also when the socket is taken away from its place."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import structlog

from agentd.core.errors import ConfigError
from agentd.core.ports import Clock
from agentd.interfaces.acp.flow import PIECE
from agentd.interfaces.acp.listener import SocketPlace

log = structlog.get_logger()

LOOK_AGAIN = 3.0  # seconds until it is looked again whether the socket is in its place


class Acceptor:
    """Takes clients in on one listening socket at a time. Those who are in stay when it changes."""

    def __init__(
        self, accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], clock: Clock
    ) -> None:
        self._accept = accept
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._told = ""

    async def open(self, sock: socket.socket) -> None:
        """Take clients in on this one from now on, and close the one before."""
        server = await asyncio.start_unix_server(
            self._accept, sock=sock, limit=PIECE, start_serving=False
        )
        self.close()
        self._server = server  # before it starts: who is cancelled there leaves it to `close`
        await server.start_serving()

    def close(self) -> None:
        """Take nobody in any more."""
        if self._server:
            self._server.close()

    async def watch(self, place: SocketPlace) -> None:
        """Until cancelled, open another socket whenever the one in that place is gone, by a hand or with
        the folder that a logout removes. A daemon that nobody reaches could not even be stopped.
        """
        while True:
            await self._clock.sleep(LOOK_AGAIN)
            try:
                sock = place.bound_again()
            except ConfigError as error:
                self._warn(place, error.message, error.cure)
            except OSError as error:
                self._warn(place, str(error), "")
            else:
                self._told = ""
                if sock:
                    await self.open(sock)
                    log.warning("socket_was_gone", path=str(place.path), cure="none: it is back")

    def _warn(self, place: SocketPlace, reason: str, cure: str) -> None:
        if reason != self._told:
            self._told = reason
            log.warning("socket_unreachable", path=str(place.path), reason=reason, cure=cure)
