"""Which clients get alerts, and which of them show them to somebody."""

from __future__ import annotations

from collections.abc import Callable

from agentd.server.peer import Peer


class Clients:
    """The connected clients that alerts can be shown to."""

    def __init__(self) -> None:
        self._listening: dict[Peer, bool] = {}  # whether it shows what it gets
        self._callbacks: list[Callable[[], None]] = []

    def when_one_arrives(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a client begins to show alerts."""
        self._callbacks.append(callback)

    def listen(self, peer: Peer, *, shows: bool = True) -> None:
        """Send alerts to the client from now on; `shows` says that it has asked for them, so that a
        person sees them there.
        """
        before = self._listening.get(peer, False)
        self._listening[peer] = before or shows
        if before or not shows:
            return
        for callback in self._callbacks:
            callback()

    def leave(self, peer: Peer) -> None:
        """Forget a client that has gone."""
        self._listening.pop(peer, None)

    @property
    def listening(self) -> tuple[Peer, ...]:
        """All of them, the longest connected first."""
        return tuple(peer for peer in self._listening if peer.role.is_owner)

    @property
    def showing(self) -> tuple[Peer, ...]:
        """Those that show alerts."""
        return tuple(peer for peer in self.listening if self._listening[peer])
