"""Alerts to connected clients."""

from __future__ import annotations

from agentd.domain.alert import Alert
from agentd.errors import AgentdError
from agentd.server.clients import Clients


class NobodyListens(AgentdError):
    """No client is connected that could show an alert."""

    code = "no_client"


class SocketAlerts:
    """The AlertSink `socket`: `_agentd/alert` to every client that somebody sits at."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    @property
    def name(self) -> str:
        """`socket`."""
        return "socket"

    async def send(self, alert: Alert) -> None:
        """Queue it for all of them. Raises NobodyListens: it then waits for one to connect."""
        peers = self._clients.listening
        if not peers:
            raise NobodyListens(cure="it is shown as soon as a client connects")
        for peer in peers:
            peer.notify("_agentd/alert", alert.as_json())
