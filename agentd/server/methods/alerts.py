"""`_agentd/alerts/*`."""

from __future__ import annotations

from typing import Any, Protocol

from pydantic import Field

from agentd.domain.alert import Alert
from agentd.ports import Outbox
from agentd.server.clients import Clients
from agentd.server.methods.params import NoParams, Params, handler, peer_handler
from agentd.server.peer import Handler, Peer


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

    def __init__(self, outbox: Outbox, dispatcher: Dispatcher, clients: Clients) -> None:
        self._outbox = outbox
        self._dispatcher = dispatcher
        self._clients = clients

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
        return (await self._dispatcher.test()).as_json()

    async def _follow(self, params: NoParams, peer: Peer) -> dict[str, Any]:
        """From now on `_agentd/alert` notifications come on this connection."""
        self._clients.listen(peer)
        return {"following": True}
