"""Alerts in the log."""

from __future__ import annotations

import structlog

from agentd.domain.alert import Alert

log = structlog.get_logger()


class JournalSink:
    """Writes alerts to the log: the one place where an alert's text is logged."""

    @property
    def name(self) -> str:
        """`journal`."""
        return "journal"

    async def send(self, alert: Alert) -> None:
        """Log it as a warning."""
        log.warning("alert", id=alert.id, origin=alert.origin, text=alert.told)
