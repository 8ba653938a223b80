"""A connected client as the rest of the server sees it, and those that alerts are shown to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from agentd.core.errors import AgentdError
from agentd.interfaces.acp.roles import ClientRole


class PeerGone(AgentdError):
    """The client has left."""

    code = "client_gone"


class PeerRefused(AgentdError):
    """The client answered a question with an error."""

    code = "client_refused"


class Withdrawn(AgentdError):
    """The client took its call back."""

    code = "withdrawn"


@dataclass(frozen=True, slots=True)
class Profile:
    """What a client said about itself in `initialize`.

    `denies` is a client that nobody sits at: it answers no question and sees no alert. `shows_forms`: it
    has its user fill in forms.
    """

    name: str = ""
    denies: bool = False
    has_greeted: bool = False
    shows_forms: bool = False


class Peer(Protocol):
    """One client."""

    profile: Profile

    @property
    def role(self) -> ClientRole:
        """Whose it is."""

    def send(self, frame: bytes) -> None:
        """Queue an encoded frame. Never blocks, never raises."""

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification."""

    async def wait_room(self) -> None:
        """Return when the client has read most of what waits for it, or has left."""

    async def push(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification of any size once nothing waits before it, or the client has left."""

    def is_withdrawn(self) -> bool:
        """Whether the client took back the call that is being answered by the current task, which
        was cancelled for that and for no other reason.
        """

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Ask the client; cancelling takes the question back. Raises PeerGone, PeerRefused."""


@dataclass(frozen=True, slots=True)
class PeerReply:
    """An answer and the notifications that follow it."""

    result: Any
    then: tuple[tuple[str, dict[str, Any]], ...] = ()


Handler = Callable[[dict[str, Any], Peer], Awaitable[Any]]
Listener = Callable[[dict[str, Any], Peer], None]


class Clients:
    """The connected clients that get alerts, and which of them show them to somebody."""

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
