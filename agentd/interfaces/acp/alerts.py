"""Sends alerts to connected clients."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

import structlog

from agentd.core.alert import Alert, DeliveryState
from agentd.core.errors import AgentdError, StorageError
from agentd.core.ports import Outbox
from agentd.interfaces.acp.peer import Clients, Peer

log = structlog.get_logger()

_MISSED = 50  # the newest unacknowledged alerts, sent to a client that connects later


class NobodyListens(AgentdError):
    """No client is connected that shows alerts."""

    code = "no_client"


class SocketAlerts:
    """The AlertSink `socket`: sends `_agentd/alert` to every client that listens. An alert counts
    as delivered once it is queued for a client that shows alerts to a person.
    """

    def __init__(self, clients: Clients, outbox: Outbox) -> None:
        self._clients = clients
        self._outbox = outbox
        self._unseen: set[int] = set()  # ids of alerts sent, but to no client that shows them
        self._shown: WeakKeyDictionary[Peer, set[int]] = WeakKeyDictionary()
        self._arrived = asyncio.Event()
        clients.when_one_arrives(self._arrived.set)

    @property
    def name(self) -> str:
        """The sink's name, "socket"."""
        return "socket"

    async def send(self, alert: Alert) -> None:
        """Queue the alert for every listening client, at most once for each that shows alerts: the
        dispatcher and `run` may send the same alert at the same time. Raises NobodyListens if no
        client shows alerts; a repeated call then sends it only to clients that do.
        """
        showing = self._clients.showing
        peers = showing if alert.id in self._unseen else self._clients.listening
        for peer in peers:
            shown = self._shown.setdefault(peer, set()) if peer in showing else set()
            if alert.id not in shown:
                shown.add(alert.id)
                peer.notify("_agentd/alert", alert.as_json())
        if not showing:
            self._unseen.add(alert.id)
            raise NobodyListens(
                cure="it is shown as soon as a client connects that asks for alerts"
            )
        self._unseen.discard(alert.id)

    async def run(self) -> None:
        """Send missed alerts whenever a client begins to show alerts, until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            try:
                await self._catch_up()
            except StorageError as error:
                log.warning("missed_alerts_not_shown", reason=error.reason)

    async def _catch_up(self) -> None:
        """Send the unacknowledged alerts that this sink has not delivered, also those given up."""
        alerts = await self._outbox.alerts(_MISSED, unacked=True)
        for alert in reversed(alerts):
            if alert.delivered.get(self.name, DeliveryState.SENT) is DeliveryState.SENT:
                continue
            if not self._clients.showing:
                return
            await self.send(alert)
            await self._outbox.mark_sent(alert.id, self.name)
