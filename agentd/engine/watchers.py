"""Audiences of turns: clients get all events, listeners ends and notices; nobody those of silent
turns.
"""

from __future__ import annotations

from collections.abc import Callable

from agentd.core.event import NoticeGiven, TurnEnded, TurnEvent
from agentd.core.ports import EventSink, TurnAudience
from agentd.core.turn import SessionKey


class Watchers:
    """An audience that hands every event to `shown`, and then ends of turns and notices to the
    `listeners`, in order. Turns wait for `shown` only; the single words do not concern any
    listener.
    """

    def __init__(self, shown: TurnAudience, *listeners: EventSink) -> None:
        self._shown = shown
        self._listeners = listeners

    def emit(self, event: TurnEvent) -> None:
        """Hand the event to `shown`, and the end of a turn or a notice to the listeners."""
        self._shown.emit(event)
        if isinstance(event, TurnEnded | NoticeGiven):
            for listener in self._listeners:
                listener.emit(event)

    async def wait_room(self, session: SessionKey) -> None:
        """Wait until `shown` has room for more of the session's events."""
        await self._shown.wait_room(session)


class NullSink:
    """An audience that drops the events of turns that nobody watches."""

    def emit(self, event: TurnEvent) -> None:
        """Drop the event."""

    async def wait_room(self, session: SessionKey) -> None:
        """Return at once: nobody watches."""


class TurnEndCallback:
    """A sink that calls back with the session of every turn that has ended."""

    def __init__(self, callback: Callable[[SessionKey], None]) -> None:
        self._callback = callback

    def emit(self, event: TurnEvent) -> None:
        """Call back if the event is the end of a turn."""
        if isinstance(event, TurnEnded):
            self._callback(event.session)


class NoticeCallback:
    """A sink that calls back for every notice of one tag."""

    def __init__(self, tag: str, callback: Callable[[], None]) -> None:
        self._tag = tag
        self._callback = callback

    def emit(self, event: TurnEvent) -> None:
        """Call back if the event is a notice with the tag."""
        if isinstance(event, NoticeGiven) and event.tag == self._tag:
            self._callback()
