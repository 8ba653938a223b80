"""When a sink is handed what waits for it, and what it gets as one message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from agentd.automation.heartbeat.hours import Hours
from agentd.core.alert import Alert, AlertSeverity, Delivery


@dataclass(frozen=True, slots=True)
class SinkTiming:
    """How one sink wants its alerts: those `least` severe or more, outside of the `quiet` hours, and
    gathered for as long as `digest`. Urgent ones come at once.
    """

    least: AlertSeverity = AlertSeverity.INFO
    quiet: Hours | None = None
    digest: timedelta = timedelta()
    told: Mapping[str, Any] | None = None  # the same in words

    @property
    def gathers(self) -> bool:
        """Whether alerts that are due together come as one message."""
        return self.quiet is not None or bool(self.digest)

    def hold_until(self, waiting: Sequence[Delivery], now: datetime) -> datetime | None:
        """Until when these, none of them urgent, wait; None if they are to be sent now."""
        if self.quiet is not None and self.quiet.closed(now) is not None:
            return self.quiet.next_opening(now)
        if not self.digest or any(delivery.attempts for delivery in waiting):
            return None
        first = min(delivery.alert.at for delivery in waiting)
        # A clock that was set back does not make them wait for longer.
        ready = min(first, now) + self.digest
        return ready if ready > now else None


def as_one(waiting: Sequence[Delivery], zone: ZoneInfo) -> Alert:
    """The alerts as one: with several each has its time of day before it, and the number is the newest
    one's.
    """
    alerts = sorted((delivery.alert for delivery in waiting), key=lambda alert: alert.id)
    newest = alerts[-1]
    if len(alerts) == 1:
        return newest
    lines = [f"{alert.at.astimezone(zone):%a %H:%M} {alert.told}" for alert in alerts]
    text = "\n\n".join((f"{len(alerts)} alerts", *lines))
    most = max((alert.severity for alert in alerts), key=tuple(AlertSeverity).index)
    return Alert(newest.id, newest.at, text, "digest", newest.to, severity=most)


def urgent_first(waiting: Sequence[Delivery]) -> tuple[list[Delivery], list[Delivery]]:
    """The urgent ones, and the others."""
    urgent = [one for one in waiting if one.alert.severity is AlertSeverity.URGENT]
    return urgent, [one for one in waiting if one.alert.severity is not AlertSeverity.URGENT]
