"""Decides when a sink gets its waiting alerts, and merges alerts into one message. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from msgspec import Struct

from agentd.automation.heartbeat.hours import Hours
from agentd.core.alert import Alert, AlertSeverity, Delivery


class SinkTiming(Struct, frozen=True):
    """The timing of one sink: it gets alerts of severity `least` or more, outside of the `quiet`
    hours, collected for the time `digest`. Urgent alerts are sent at once.
    """

    least: AlertSeverity = AlertSeverity.INFO
    quiet: Hours | None = None
    digest: timedelta = timedelta()
    told: Mapping[str, Any] | None = None  # these settings as `agentd alerts sinks` shows them

    @property
    def gathers(self) -> bool:
        """Whether alerts that are due together are sent as one message."""
        return self.quiet is not None or bool(self.digest)

    def hold_until(self, waiting: Sequence[Delivery], now: datetime) -> datetime | None:
        """Return until when these alerts, none of them urgent, are held; None if they are to be
        sent now.
        """
        if self.quiet is not None and self.quiet.closed(now) is not None:
            return self.quiet.next_opening(now)
        if not self.digest or any(delivery.attempts for delivery in waiting):
            return None
        first = min(delivery.alert.at for delivery in waiting)
        # min: a clock that was set back must not make them wait longer.
        ready = min(first, now) + self.digest
        return ready if ready > now else None


def as_one(waiting: Sequence[Delivery], zone: ZoneInfo) -> Alert:
    """Return the alerts as one alert. If there are several, the text has the time of day before
    each, the severity is the highest, and the id is that of the newest.
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
    """Split deliveries into urgent ones and others."""
    urgent = [one for one in waiting if one.alert.severity is AlertSeverity.URGENT]
    return urgent, [one for one in waiting if one.alert.severity is not AlertSeverity.URGENT]
