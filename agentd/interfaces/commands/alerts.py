"""`alerts`: the alerts that the daemon has sent or holds, and their delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Protocol

from agentd.interfaces.commands.declaration import QUICK_SECONDS, Caller, Group, Param
from agentd.interfaces.commands.plain import fields, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentd.core.alert import Alert
    from agentd.core.ports import Clock, Outbox

ALERTS = Group("alerts")

_FIRST_TRIES_SECONDS = 40.0  # longer than any sink may take by default
_LOOK_AGAIN_SECONDS = 0.05
_RECENT = 20
_OF_SINKS = (
    "sink",
    "severity",
    "quiet_hours",
    "digest",
    "waiting",
    "failed",
    "next_try",
    "sent_at",
    "error",
)
_COLUMNS = ("id", "at", "acked", "origin", "delivered", "text")


class AlertDispatcher(Protocol):
    """Port: delivers alerts."""

    async def test(self) -> Alert:
        """Send a test alert to every sink."""

    async def standings(self) -> Sequence[dict[str, Any]]:
        """Return the state of each sink."""


def _alerts_text(result: dict[str, Any]) -> str:
    return table(result["alerts"], _COLUMNS, "no alerts")


def _as_text(result: dict[str, Any]) -> str:
    """Return an alert with the state of each delivery and its last error."""
    delivered = {
        one["sink"]: ": ".join(filter(None, (one["state"], one["error"])))
        for one in result["deliveries"]
    }
    told = {key: value for key, value in result.items() if key != "deliveries"}
    return fields({**told, "delivered": delivered})


def _sinks_listed(result: dict[str, Any]) -> str:
    return table(result["sinks"], _OF_SINKS, "no sink is on: alerts are only recorded")


class AlertCommands:
    """The owner's commands for alerts."""

    def __init__(
        self,
        outbox: Outbox,
        dispatcher: AlertDispatcher,
        listen: Callable[[Any], None],
        clock: Clock,
    ) -> None:
        """`listen` sends alerts to a client from then on."""
        self._outbox = outbox
        self._dispatcher = dispatcher
        self._listen = listen
        self._clock = clock

    @ALERTS.command(_alerts_text, name="list")
    async def all(
        self,
        *,
        limit: Annotated[
            int, Param("How many, the newest first.", least=1, most=500, usual=20)
        ] = 50,
        unacked: Annotated[bool, Param("Only those still to be acknowledged.")] = False,
    ) -> dict[str, Any]:
        """List alerts."""
        alerts = await self._outbox.alerts(limit, unacked=unacked)
        return {"alerts": [alert.as_json() for alert in alerts]}

    @ALERTS.command(_sinks_listed)
    async def sinks(self) -> dict[str, Any]:
        """List the ways to reach you: which alerts each gets, what waits, and why it failed
        last.
        """
        return {"sinks": list(await self._dispatcher.standings())}

    @ALERTS.command(fields)
    async def follow(self, caller: Caller) -> dict[str, Any]:
        """Print alerts as they come, until Ctrl-C; a restart of the daemon does not end it."""
        self._listen(caller)
        return {"following": True}

    @ALERTS.command(_as_text)
    async def ack(
        self,
        id: Annotated[int, Param("The alert's id.", metavar="ID", least=1, below=2**63)],
    ) -> dict[str, Any]:
        """Mark an alert as seen."""
        return (await self._outbox.ack(id)).as_json()

    @ALERTS.command(_as_text, seconds=2 * QUICK_SECONDS)
    async def test(self) -> dict[str, Any]:
        """Send a test alert to every sink that is on, and see where it arrived."""
        alert = await self._dispatcher.test()
        end = self._clock.monotonic() + _FIRST_TRIES_SECONDS
        while self._clock.monotonic() < end and await self._is_due(alert.id):
            await self._clock.sleep(_LOOK_AGAIN_SECONDS)
        known = await self._outbox.alerts(_RECENT)
        return next((one for one in known if one.id == alert.id), alert).as_json()

    async def _is_due(self, alert_id: int) -> bool:
        return any(delivery.alert.id == alert_id for delivery in await self._outbox.due())
