"""Whose a connection is: the owner's, or bound for good to one session. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from agentd.core.errors import InvalidRequest
from agentd.core.turn import SessionKey
from agentd.interfaces.commands.sessions import parse_key

BIND = "agentd/bind"  # in the `_meta` of `initialize`
NOTIFY = "agentd/notify"  # in the `_meta` of its `clientCapabilities`

_NO_SESSION = SessionKey(
    ""
)  # whoever asks for a session that cannot be is shut out of all others too
_BEFORE_ACTING = frozenset({"initialize", "authenticate"})


@dataclass(frozen=True, slots=True)
class ClientRole:
    """What a connection may know of: everything, or nothing but one `session`.

    `has_acted`: it has called more than a greeting, so it stays the owner's. `asks`: it wants the
    notifications that are no part of the protocol.
    """

    session: SessionKey | None = None
    has_acted: bool = False
    asks: bool = False

    @property
    def is_owner(self) -> bool:
        """Whether it is the owner's."""
        return self.session is None

    @property
    def is_notified(self) -> bool:
        """Whether it gets notifications of agentd's own."""
        return self.is_owner and self.asks

    def sees(self, session: str) -> bool:
        """Whether the session exists for it."""
        return self.session is None or self.session == session

    def after(self, method: str, params: dict[str, Any]) -> ClientRole:
        """The role in which a call is answered, and all that come after it.

        Raises InvalidRequest where it asks to be bound and cannot be; the role stays as it was. A
        connection that asks for no possible session is bound all the same, to none: its client meant
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
    """The session that the `_meta` of `initialize` asks to be bound to. Raises InvalidRequest for what
    can be none.
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
