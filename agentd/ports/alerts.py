"""Reaching the user."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Protocol

from agentd.domain.alert import Alert, Delivery, NewAlert


class Outbox(Protocol):
    """Where alerts are put, to be delivered to each of their sinks at least once."""

    async def put(self, alert: NewAlert) -> Alert | None:
        """Store an alert with a pending delivery to each of its sinks; None if one with the same digest
        was put within 24 hours and has been acknowledged, or a sink by which this one would be told
        (`told_by`) has taken it or still tries. One that went nowhere keeps no other from being told.
        """

    async def due(self) -> tuple[Delivery, ...]:
        """Deliveries whose time has come, oldest first."""

    async def next_due(self) -> datetime | None:
        """When the next delivery is to be tried; None if nothing is pending."""

    async def sent(self, alert_id: int, sink: str) -> None:
        """Record a delivery."""

    async def retry(self, alert_id: int, sink: str, after: timedelta | None) -> None:
        """Record a failed try; the next one comes `after` from now, None gives up."""

    async def alerts(self, limit: int, *, unacked: bool = False) -> tuple[Alert, ...]:
        """The newest alerts first."""

    async def ack(self, alert_id: int) -> Alert:
        """Mark an alert as seen. Raises NotFound."""


class AlertSink(Protocol):
    """One way to reach the user."""

    @property
    def name(self) -> str:
        """The word in `[heartbeat] target` and in `delivered`."""

    async def send(self, alert: Alert) -> None:
        """Deliver it. Raises AgentdError when it did not arrive; it is then tried again."""
