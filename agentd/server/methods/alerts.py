"""`_agentd/alerts/*`."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import Field

from agentd.domain.alert import Alert
from agentd.ports import Clock, Outbox
from agentd.server.clients import Clients
from agentd.server.methods.params import NoParams, Params, handler, peer_handler
from agentd.server.peer import Handler, Peer

_FIRST_TRIES_SECONDS = 15.0  # longer than a command or a webhook may take by default
_LOOK_AGAIN_SECONDS = 0.05
_RECENT = 20


class Dispatcher(Protocol):
    """What delivers alerts."""

    async def test(self) -> Alert:
        """Send a test alert to every sink."""


class ListParams(Params):
    """The newest alerts."""

    limit: int = Field(50, ge=1, le=500)
    unacked: bool = False


class AckParams(Params):
    """One alert."""

    id: int = Field(ge=1, lt=2**63)


class AlertMethods:
    """Alerts as the commands see them."""

    def __init__(
        self, outbox: Outbox, dispatcher: Dispatcher, clients: Clients, clock: Clock
    ) -> None:
        self._outbox = outbox
        self._dispatcher = dispatcher
        self._clients = clients
        self._clock = clock

    def routes(self) -> dict[str, Handler]:
        """The methods by name."""
        return {
            "_agentd/alerts/list": handler(ListParams, self._list),
            "_agentd/alerts/ack": handler(AckParams, self._ack),
            "_agentd/alerts/test": handler(NoParams, self._test),
            "_agentd/alerts/follow": peer_handler(NoParams, self._follow),
        }

    async def _list(self, params: ListParams) -> dict[str, Any]:
        alerts = await self._outbox.alerts(params.limit, unacked=params.unacked)
        return {"alerts": [alert.as_json() for alert in alerts]}

    async def _ack(self, params: AckParams) -> dict[str, Any]:
        return (await self._outbox.ack(params.id)).as_json()

    async def _test(self, params: NoParams) -> dict[str, Any]:
        """Where the alert arrived at the first try."""
        alert = await self._dispatcher.test()
        end = self._clock.monotonic() + _FIRST_TRIES_SECONDS
        while self._clock.monotonic() < end and await self._is_due(alert.id):
            await self._clock.sleep(_LOOK_AGAIN_SECONDS)
        known = await self._outbox.alerts(_RECENT)
        return next((one for one in known if one.id == alert.id), alert).as_json()

    async def _is_due(self, alert_id: int) -> bool:
        return any(delivery.alert.id == alert_id for delivery in await self._outbox.due())

    async def _follow(self, params: NoParams, peer: Peer) -> dict[str, Any]:
        """From now on `_agentd/alert` notifications come on this connection."""
        self._clients.listen(peer)
        return {"following": True}
