"""A connected client as the rest of the server sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from agentd.errors import AgentdError
from agentd.server.roles import Role


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

    `denies` is a client that nobody sits at: it answers no question and sees no alert.
    """

    name: str = ""
    denies: bool = False
    has_greeted: bool = False


class Peer(Protocol):
    """One client."""

    profile: Profile

    @property
    def role(self) -> Role:
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
class Reply:
    """An answer and the notifications that follow it."""

    result: Any
    then: tuple[tuple[str, dict[str, Any]], ...] = ()


Handler = Callable[[dict[str, Any], Peer], Awaitable[Any]]
Listener = Callable[[dict[str, Any], Peer], None]
