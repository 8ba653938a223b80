"""Which clients somebody sits at."""

from __future__ import annotations

from collections.abc import Callable

from agentd.server.peer import Peer


class Clients:
    """The connected clients that alerts can be shown to."""

    def __init__(self) -> None:
        self._listening: dict[Peer, None] = {}
        self._callbacks: list[Callable[[], None]] = []

    def when_one_arrives(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a client begins to listen."""
        self._callbacks.append(callback)

    def listen(self, peer: Peer) -> None:
        """Show alerts to the client from now on."""
        if peer in self._listening:
            return
        self._listening[peer] = None
        for callback in self._callbacks:
            callback()

    def leave(self, peer: Peer) -> None:
        """Forget a client that has gone."""
        self._listening.pop(peer, None)

    @property
    def listening(self) -> tuple[Peer, ...]:
        """All of them, the longest connected first."""
        return tuple(peer for peer in self._listening if peer.role.is_owner)
