"""A connected client as the server's other parts see it: its role (the owner's, or bound to one
session), its profile, and the set of clients that get alerts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from agentd.core.errors import AgentdError, InvalidRequest
from agentd.core.turn import SessionKey
from agentd.interfaces.commands.sessions import parse_key

BIND = "agentd/bind"  # in the `_meta` of `initialize`
NOTIFY = "agentd/notify"  # in the `_meta` of its `clientCapabilities`

# Whoever asks for a session that cannot be is shut out of all others, too.
_NO_SESSION = SessionKey("")
_BEFORE_ACTING = frozenset({"initialize", "authenticate"})


class ClientRole(Struct, frozen=True):
    """What a connection may access: everything, or only one `session`, for good.

    `has_acted`: it has called a method other than `initialize`, so it can no longer be bound.
    `asks`: it wants agentd's own notifications, which are not part of the protocol.
    """

    session: SessionKey | None = None
    has_acted: bool = False
    asks: bool = False

    @property
    def is_owner(self) -> bool:
        """Whether the connection is the owner's."""
        return self.session is None

    @property
    def is_notified(self) -> bool:
        """Whether the connection gets agentd's own notifications."""
        return self.is_owner and self.asks

    def sees(self, session: str) -> bool:
        """Return whether the connection may access the session."""
        return self.session is None or self.session == session

    def after(self, method: str, params: dict[str, Any]) -> ClientRole:
        """Return the role in which this call and all later ones are answered.

        Raises InvalidRequest for a binding that is not possible; the role does not change. A
        connection that names an impossible session is bound all the same, to none: its client meant
        to give up everything else.
        """
        role = self
        if method == "initialize":
            wanted = _in(params.get("_meta"))
            if BIND in wanted:
                role = self._bound(_session(wanted[BIND]))
            if _in(_in(params.get("clientCapabilities")).get("_meta")).get(NOTIFY):
                role = replace(role, asks=True)
        elif method not in _BEFORE_ACTING:
            is_own = method.startswith("_agentd/")
            role = replace(self, has_acted=True, asks=self.asks or is_own)
        return role

    def _bound(self, session: SessionKey) -> ClientRole:
        if self.session is not None and self.session != session:
            raise InvalidRequest(
                "this connection is bound to a session and stays so",
                cure="open another connection for another session",
            )
        if self.session is None and self.has_acted:
            raise InvalidRequest(
                "this connection was used as the owner's before, so it cannot be bound",
                cure="open another connection and bind that with its first call",
            )
        return replace(self, session=session)


def read_bind(meta: dict[str, Any]) -> SessionKey | None:
    """Return the session to which the `_meta` of `initialize` asks to be bound, None if it does not
    ask. Raises InvalidRequest for an impossible session.
    """
    if BIND not in meta:
        return None
    wanted = meta[BIND]
    if not isinstance(wanted, str):
        raise InvalidRequest(f"_meta.{BIND}: is no text")
    return parse_key(wanted)


def _session(wanted: Any) -> SessionKey:
    try:
        return read_bind({BIND: wanted}) or _NO_SESSION
    except InvalidRequest:
        return _NO_SESSION


def _in(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


class PeerGone(AgentdError):
    """The client has left."""

    code = "client_gone"


class PeerRefused(AgentdError):
    """The client answered a request with an error."""

    code = "client_refused"


class Withdrawn(AgentdError):
    """The client cancelled its call."""

    code = "withdrawn"


class Profile(Struct, frozen=True):
    """What a client said about itself in `initialize`.

    `denies`: no user is present, so the client is asked nothing and shows no alerts. `shows_forms`:
    it can have its user fill in forms.
    """

    name: str = ""
    denies: bool = False
    has_greeted: bool = False
    shows_forms: bool = False


class Peer(Protocol):
    """Port: a connected client."""

    profile: Profile

    @property
    def role(self) -> ClientRole:
        """The connection's role."""

    def send(self, frame: bytes) -> None:
        """Queue an encoded frame. Never blocks, never raises."""

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification."""

    async def wait_room(self) -> None:
        """Return when the client has read most of what is queued for it, or has left."""

    async def push(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification of any size once the queue is empty, or the client has left."""

    def is_withdrawn(self) -> bool:
        """Return whether the client has cancelled the call that the current task answers; that is
        then the only reason why the task was cancelled.
        """

    async def call(self, method: str, params: dict[str, Any]) -> Any:
        """Call a method of the client; cancelling withdraws the call. Raises PeerGone,
        PeerRefused.
        """


class PeerReply(Struct, frozen=True):
    """An answer and the notifications that follow it."""

    result: Any
    then: tuple[tuple[str, dict[str, Any]], ...] = ()


Handler = Callable[[dict[str, Any], Peer], Awaitable[Any]]
Listener = Callable[[dict[str, Any], Peer], None]


class Clients:
    """The connected clients that get alerts, and which of them show alerts to a person."""

    def __init__(self) -> None:
        self._listening: dict[Peer, bool] = {}  # whether it shows what it gets
        self._callbacks: list[Callable[[], None]] = []

    def when_one_arrives(self, callback: Callable[[], None]) -> None:
        """Call `callback` whenever a client begins to show alerts."""
        self._callbacks.append(callback)

    def listen(self, peer: Peer, *, shows: bool = True) -> None:
        """Send alerts to the client from now on; `shows` says that it asked for alerts and shows
        them to a person.
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
        """The owner's clients that get alerts, the longest connected first."""
        return tuple(peer for peer in self._listening if peer.role.is_owner)

    @property
    def showing(self) -> tuple[Peer, ...]:
        """The clients that show alerts to a person."""
        return tuple(peer for peer in self.listening if self._listening[peer])
