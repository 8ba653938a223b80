"""Alerts in the main conversation."""

from __future__ import annotations

from agentd.domain.alert import Alert
from agentd.domain.event import Noticed
from agentd.domain.turn import MAIN
from agentd.ports import EventSink, SessionStore

# A delivery that is tried again comes soon after the first try: the row is among the newest.
_TURNS_BACK = 20


class MainSessionSink:
    """Adds alerts to `main` as notices tagged `alert:ID`, each once, and shows them to `events`."""

    def __init__(self, sessions: SessionStore, events: EventSink) -> None:
        self._sessions = sessions
        self._events = events

    @property
    def name(self) -> str:
        """`main`."""
        return "main"

    async def send(self, alert: Alert) -> None:
        """Add the row unless a try before has done so. Raises StorageError."""
        tag = f"alert:{alert.id}"
        if any(row.tag == tag for row in await self._sessions.recent(MAIN, _TURNS_BACK)):
            return
        await self._sessions.notice(MAIN, alert.text, tag)
        self._events.emit(Noticed(MAIN, alert.text, tag))
