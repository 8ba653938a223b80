"""What is left of the protocol for connections that are bound to one session.

Named here is what they may call; a method that is not named does not exist for them, so a new one is
the owner's until somebody puts it here. Another session is absent by the very words of one that is not
there, and nobody looks whether it is.
"""

from __future__ import annotations

from typing import Any

from agentd.commands.keys import absent
from agentd.server.connection import Routes
from agentd.server.peer import Handler, Listener, Peer

_OF_NO_SESSION = ("initialize", "authenticate", "session/list")
_OF_ITS_SESSION = ("session/load", "session/resume", "session/close", "session/prompt")
_TOLD = ("session/cancel",)


def bound_routes(routes: Routes) -> Routes:
    """Those of the routes that a bound connection has, each narrowed to its session."""
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
