"""Alerts in the main conversation. Of one that text from outside had a part in no word enters it: a line
says where it is.
"""

from __future__ import annotations

from agentd.domain.alert import Alert
from agentd.domain.event import Noticed
from agentd.domain.turn import MAIN
from agentd.ports import EventSink, SessionStore

# A delivery that is tried again comes soon after the first try: the row is among the newest.
_TURNS_BACK = 20
_ELSEWHERE = "Alert {id} may come from outside: `agentd alerts list` shows it."


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
        text = _ELSEWHERE.format(id=alert.id) if alert.tainted else alert.text
        await self._sessions.notice(MAIN, text, tag)
        self._events.emit(Noticed(MAIN, text, tag))
